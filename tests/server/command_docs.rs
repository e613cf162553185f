//! What the server tells of the commands: to clients, to clusters' proxies and to people.

use std::collections::HashMap;

use redis::{Value, from_redis_value};

use crate::support::{Client, Server};

struct Described {
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    key_flags: &'static [&'static str],
    arguments: &'static str,
}

/// Those with one key, the first argument.
const COMMANDS: [Described; 11] = [
    Described {
        name: "RL.TAKE",
        arity: -4,
        flags: &["fast", "module", "write"],
        key_flags: &["RW", "access", "update"],
        arguments: "key:key capacity:integer rate:string [cost:integer]",
    },
    Described {
        name: "RL.PEEK",
        arity: -2,
        flags: &["fast", "module", "readonly"],
        key_flags: &["RO", "access"],
        arguments: "key:key [limit:block{capacity:integer rate:string [cost:integer]}]",
    },
    Described {
        name: "RL.GIVE",
        arity: 3,
        flags: &["fast", "module", "write"],
        key_flags: &["RW", "access", "update"],
        arguments: "key:key tokens:integer",
    },
    Described {
        name: "RL.LEASE",
        arity: 5,
        flags: &["fast", "module", "write"],
        key_flags: &["RW", "access", "update"],
        arguments: "key:key capacity:integer rate:string tokens:integer",
    },
    Described {
        name: "RL.RESERVE",
        arity: 6,
        flags: &["fast", "module", "write"],
        key_flags: &["RW", "access", "update"],
        arguments: "key:key capacity:integer rate:string cost:integer max_wait:string",
    },
    Described {
        name: "RL.WINDOW",
        arity: -4,
        flags: &["fast", "module", "write"],
        key_flags: &["RW", "access", "update"],
        arguments: "key:key limit:integer window:string [cost:integer]",
    },
    Described {
        name: "RL.COUNTER",
        arity: -4,
        flags: &["fast", "module", "write"],
        key_flags: &["RW", "access", "update"],
        arguments: "key:key limit:integer window:string [cost:integer]",
    },
    Described {
        name: "RL.QUOTA",
        arity: -4,
        flags: &["fast", "module", "write"],
        key_flags: &["RW", "access", "update"],
        arguments: "key:key limit:integer period:string [cost:integer]",
    },
    Described {
        name: "CL.THROTTLE",
        arity: -5,
        flags: &["fast", "module", "write"],
        key_flags: &["RW", "access", "update"],
        arguments: "key:key max_burst:integer count:integer period:integer [quantity:integer]",
    },
    Described {
        name: "RL.INFO",
        arity: 2,
        flags: &["fast", "module", "readonly"],
        key_flags: &["RO", "access"],
        arguments: "key:key",
    },
    Described {
        name: "RL.RESTORE",
        arity: 3,
        flags: &["module", "write"],
        key_flags: &["OW", "update"],
        arguments: "key:key payload:string",
    },
];

fn words(value: &Value) -> Vec<String> {
    let mut words: Vec<String> = from_redis_value(value.clone()).unwrap();
    words.sort();
    words
}

fn map(value: &Value) -> HashMap<String, Value> {
    from_redis_value(value.clone()).unwrap()
}

fn text(value: &Value) -> String {
    from_redis_value(value.clone()).unwrap()
}

/// A server that has the commands, too, which are there only if the module is told so.
fn with_all_commands() -> Server {
    Server::loaded_with(&["cl-throttle", "yes"], &[])
}

#[test]
fn arity_flags_and_keys_are_as_they_should_be() {
    let server = with_all_commands();
    let mut client = server.connect();
    for command in COMMANDS {
        let [info]: [Vec<Value>; 1] = client.ask(&["COMMAND", "INFO", command.name]);
        assert_eq!(text(&info[0]).to_uppercase(), command.name);
        assert_eq!(info[1], Value::Int(command.arity), "{}", command.name);
        assert_eq!(words(&info[2]), command.flags, "{}", command.name);
        assert_eq!(info[3..6], [1, 1, 1].map(Value::Int), "{}: first key, last key, step", command.name);
        let specs: Vec<Value> = from_redis_value(info[8].clone()).unwrap();
        assert_eq!(specs.len(), 1, "{}", command.name);
        let spec = map(&specs[0]);
        assert_eq!(words(&spec["flags"]), command.key_flags, "{}", command.name);
        let begin = map(&spec["begin_search"]);
        assert_eq!((text(&begin["type"]).as_str(), &map(&begin["spec"])["index"]), ("index", &Value::Int(1)));
        let find = map(&spec["find_keys"]);
        let range = map(&find["spec"]);
        assert_eq!(text(&find["type"]), "range");
        assert_eq!(["lastkey", "keystep", "limit"].map(|part| range[part].clone()), [0, 1, 0].map(Value::Int));
    }
}

#[test]
fn the_docs_tell_what_a_command_does_and_takes() {
    let server = with_all_commands();
    let mut client = server.connect();
    for command in COMMANDS {
        let all: HashMap<String, Value> = client.ask(&["COMMAND", "DOCS", command.name]);
        let docs = map(all.values().next().unwrap());
        let summary = text(&docs["summary"]);
        assert!(summary.len() > 20 && summary.ends_with('.'), "{}: {summary}", command.name);
        assert!(text(&docs["complexity"]).starts_with("O(1)"), "{}", command.name);
        assert_eq!((text(&docs["group"]).as_str(), text(&docs["module"]).as_str()), ("module", "rl"));
        assert_eq!(text(&docs["since"]).split('.').count(), 3, "{}", command.name);
        assert_eq!(signature(&docs["arguments"]), command.arguments, "{}", command.name);
    }
}

#[test]
fn a_command_whose_keys_are_counted_or_that_has_none_says_so() {
    let server = with_all_commands();
    let mut client = server.connect();
    let described: [(&str, i64, &[&str], &str); 2] = [
        ("RL.MTAKE", -6, &["module", "movablekeys", "write"], MTAKE_ARGUMENTS),
        ("RL.TOP", -1, &["module", "readonly"], "[count:integer] [reset:pure-token]"),
    ];
    for (name, arity, flags, arguments) in described {
        let [info]: [Vec<Value>; 1] = client.ask(&["COMMAND", "INFO", name]);
        assert_eq!(info[1], Value::Int(arity), "{name}");
        assert_eq!(words(&info[2]), words_of(flags), "{name}");
        assert_eq!(info[3..6], [0, 0, 0].map(Value::Int), "{name}: first key, last key, step");
        let all: HashMap<String, Value> = client.ask(&["COMMAND", "DOCS", name]);
        assert_eq!(signature(&map(all.values().next().unwrap())["arguments"]), arguments, "{name}");
    }
}

const MTAKE_ARGUMENTS: &str = "numkeys:integer key:key limit:block{capacity:integer rate:string cost:integer}";

/// Arguments as people write them: name and type, `[]` around what may be left out.
fn signature(arguments: &Value) -> String {
    let arguments: Vec<Value> = from_redis_value(arguments.clone()).unwrap();
    let written = arguments.iter().map(map).map(|argument| {
        let mut written = format!("{}:{}", text(&argument["name"]), text(&argument["type"]));
        if let Some(inner) = argument.get("arguments") {
            written = format!("{written}{{{}}}", signature(inner));
        }
        let optional = argument.get("flags").is_some_and(|flags| words(flags) == ["optional"]);
        if optional { format!("[{written}]") } else { written }
    });
    written.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_key_is_found_in_a_command_line() {
    const LINES: [(&str, &str, &[&str]); 13] = [
        ("RL.GIVE a 1", "a", &["RW", "access", "update"]),
        ("RL.LEASE a 10 5 1", "a", &["RW", "access", "update"]),
        ("RL.RESERVE a 10 5 1 1s", "a", &["RW", "access", "update"]),
        ("RL.TAKE a 10 5", "a", &["RW", "access", "update"]),
        ("RL.TAKE a 10 5 1", "a", &["RW", "access", "update"]),
        ("RL.WINDOW a 10 1h", "a", &["RW", "access", "update"]),
        ("RL.COUNTER a 10 1h 1", "a", &["RW", "access", "update"]),
        ("RL.QUOTA a 10 month", "a", &["RW", "access", "update"]),
        ("CL.THROTTLE a 10 5 1", "a", &["RW", "access", "update"]),
        ("RL.PEEK a", "a", &["RO", "access"]),
        ("RL.PEEK a 10 5 1", "a", &["RO", "access"]),
        ("RL.INFO a", "a", &["RO", "access"]),
        ("RL.RESTORE a payload", "a", &["OW", "update"]),
    ];
    let server = with_all_commands();
    let mut client = server.connect();
    for (line, key, flags) in LINES {
        assert_eq!(client.line::<Vec<String>>(&format!("COMMAND GETKEYS {line}")), [key], "{line}");
        let found: Vec<(String, Value)> = client.line(&format!("COMMAND GETKEYSANDFLAGS {line}"));
        assert_eq!(found.len(), 1, "{line}");
        assert_eq!((found[0].0.as_str(), words(&found[0].1)), (key, words_of(flags)), "{line}");
    }
}

fn words_of(flags: &[&str]) -> Vec<String> {
    flags.iter().map(|flag| (*flag).to_owned()).collect()
}

#[test]
fn the_module_brings_these_commands_and_no_other() {
    const OURS: [&str; 12] =
        ["COUNTER", "GIVE", "INFO", "LEASE", "MTAKE", "PEEK", "QUOTA", "RESERVE", "RESTORE", "TAKE", "TOP", "WINDOW"];
    let ours = OURS.map(|name| format!("RL.{name}"));
    assert_eq!(names(&mut Server::start().connect()), ours);
    let server = with_all_commands();
    let mut client = server.connect();
    assert_eq!(names(&mut client), [&["CL.THROTTLE".to_owned()], &ours[..]].concat());
    assert_eq!(module_version(&mut client), 100);
}

/// What the server knows and what the README tells: name, flags and arguments of each command, and no other.
#[test]
fn the_readme_tells_of_each_command_what_the_server_does() {
    let readme = include_str!("../../README.md");
    let server = with_all_commands();
    let mut client = server.connect();
    let rows: HashMap<&str, (&str, &str)> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .filter_map(|(syntax, rest)| Some((syntax, rest.rsplit(" | ").next()?.trim_end_matches(" |"))))
        .map(|(syntax, flags)| (syntax.split(' ').next().unwrap(), (syntax, flags)))
        .filter(|(name, _)| name.starts_with("RL.") || name.starts_with("CL."))
        .filter(|(_, (_, flags))| flags.starts_with("write") || flags.starts_with("readonly"))
        .collect();
    let names = names(&mut client);
    assert_eq!(rows.len(), names.len(), "{rows:?}");
    for name in names {
        let (syntax, flags) = rows[name.as_str()];
        let [info]: [Vec<Value>; 1] = client.ask(&["COMMAND", "INFO", &name]);
        let mut shown: Vec<String> = words(&info[2]);
        shown.retain(|flag| flag != "module" && flag != "movablekeys");
        let mut told: Vec<&str> = flags.split(' ').collect();
        told.sort_unstable();
        assert_eq!(shown, told, "{name}");
        let all: HashMap<String, Value> = client.ask(&["COMMAND", "DOCS", &name]);
        let signature = signature(&map(all.values().next().unwrap()).remove("arguments").unwrap());
        for argument in signature.split([' ', '[', ']', '{', '}']).filter(|word| word.contains(':')) {
            let (argument, kind) = argument.split_once(':').unwrap();
            let is_there = syntax.to_lowercase().split([' ', '[', ']']).any(|word| word == argument);
            assert!(kind == "block" || is_there, "{name}: {argument} is not in {syntax}");
        }
    }
}

/// The module's commands, in order.
fn names(client: &mut Client) -> Vec<String> {
    let mut names: Vec<String> = client.line("COMMAND LIST FILTERBY MODULE rl");
    names.iter_mut().for_each(|name| name.make_ascii_uppercase());
    names.sort();
    names
}

fn module_version(client: &mut Client) -> i64 {
    let modules: Vec<HashMap<String, Value>> = client.line("MODULE LIST");
    let ours = modules.iter().find(|module| text(&module["name"]) == "rl").unwrap();
    from_redis_value(ours["ver"].clone()).unwrap()
}
