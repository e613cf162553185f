//! Options: by `CONFIG`, in the configuration file, as arguments of the module.

use redis::Value;

use crate::support::{Client, Server, log_of_refused_load, module};

/// Name, default, the greatest; those that are numbers begin at 0.
const NUMBERS: [(&str, &str, &str); 4] = [
    ("top-keys", "1000", "100000"),
    ("window-limit", "100000", "1000000"),
    ("key-classes", "0", "10000"),
    ("class-depth", "0", "100"),
];

fn set(client: &mut Client, name: &str, value: &str) -> Result<String, String> {
    let words = ["CONFIG", "SET", name, value];
    client.try_ask::<String>(&words).map_err(|_| client.error(&words))
}

#[test]
fn has_its_default_and_takes_its_range_and_no_more() {
    let server = Server::start();
    let mut client = server.connect();
    for (name, default, greatest) in NUMBERS {
        let name = format!("rl.{name}");
        assert_eq!(client.config(&name), default, "{name}");
        let above = (greatest.parse::<u64>().unwrap() + 1).to_string();
        for value in ["0", "1", greatest] {
            assert_eq!(set(&mut client, &name, value), Ok("OK".into()), "{name} {value}");
            assert_eq!(client.config(&name), value);
        }
        for value in [&above, "-1", "x", "", "1.5"] {
            let refused = set(&mut client, &name, value).unwrap_err();
            assert!(refused.starts_with("ERR CONFIG SET failed"), "{name} {value}: {refused}");
            assert_eq!(client.config(&name), greatest, "{name} {value}");
        }
    }
    assert_eq!(client.config("rl.class-separator"), ":");
    assert_eq!(set(&mut client, "rl.class-separator", "/"), Ok("OK".into()));
    assert_eq!(client.config("rl.class-separator"), "/");
    for value in ["", "::", "é"] {
        let refused = set(&mut client, "rl.class-separator", value).unwrap_err();
        assert!(refused.ends_with("rl.class-separator must be one byte"), "{refused}");
        assert_eq!(client.config("rl.class-separator"), "/");
    }
    assert_eq!(client.config("rl.cl-throttle"), "no");
    let refused = set(&mut client, "rl.cl-throttle", "yes").unwrap_err();
    assert!(refused.contains("can't set immutable config"), "{refused}");
    let all: Vec<(String, String)> = client.line("CONFIG GET rl.*");
    assert_eq!(all.len(), 6, "{all:?}");
}

#[test]
fn is_read_from_the_configuration_file_and_rewritten_there() {
    let file = format!("loadmodule {}\nrl.top-keys 7\nrl.class-separator /\nrl.cl-throttle yes\n", module().display());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.conf");
    std::fs::write(&path, file).unwrap();
    let mut server = Server::bare(&[path.to_str().unwrap()]);
    let mut client = server.connect();
    let told = |client: &mut Client| {
        ["rl.top-keys", "rl.class-separator", "rl.cl-throttle", "rl.window-limit"].map(|name| client.config(name))
    };
    assert_eq!(told(&mut client), ["7", "/", "yes", "100000"]);
    assert_eq!(client.five("CL.THROTTLE key 4 1 60")[..3], [0, 5, 4]);
    assert_eq!(set(&mut client, "rl.window-limit", "5000"), Ok("OK".into()));
    assert_eq!(client.line::<String>("CONFIG REWRITE"), "OK");
    server.restart();
    assert_eq!(told(&mut server.connect()), ["7", "/", "yes", "5000"]);
}

#[test]
fn is_taken_from_the_arguments_of_the_module_unless_the_configuration_says_otherwise() {
    let arguments = ["top-keys", "5", "window-limit", "50", "key-classes", "3", "class-depth", "1"];
    let more = ["class-separator", "/", "cl-throttle", "yes"];
    let server = Server::loaded_with(&[&arguments[..], &more].concat(), &[]);
    let mut client = server.connect();
    let names = ["top-keys", "window-limit", "key-classes", "class-depth", "class-separator", "cl-throttle"];
    let told = names.map(|name| client.config(&format!("rl.{name}")));
    assert_eq!(told, ["5", "50", "3", "1", "/", "yes"]);
    let refused = client.error(&["RL.WINDOW", "key", "51", "1h"]);
    assert!(refused.starts_with("ERR limit must be at most rl.window-limit"), "{refused}");

    let server = Server::loaded_with(&["top-keys", "5", "window-limit", "50"], &["--rl.top-keys", "6"]);
    let mut client = server.connect();
    assert_eq!((client.config("rl.top-keys"), client.config("rl.window-limit")), ("6".into(), "50".into()));
}

#[test]
fn a_wrong_argument_refuses_the_load_and_the_log_says_why() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, why) in [
        (&["top-keys"][..], "librl's argument top-keys has no value"),
        (&["rl.top-keys", "5"], "librl has no argument rl.top-keys"),
        (&["TOP-KEYS", "5"], "librl has no argument TOP-KEYS"),
        (&["yes"], "librl's argument yes has no value"),
        (&["top-keys", "100001"], "librl's top-keys must be an integer from 0 to 100000"),
        (&["top-keys", "-1"], "librl's top-keys must be an integer from 0 to 100000"),
        (&["top-keys", "5", "window-limit", "x"], "librl's window-limit must be an integer from 0 to 1000000"),
        (&["cl-throttle", "true"], "librl's cl-throttle must be yes or no"),
        (&["class-separator", "::"], "librl's class-separator must be one byte"),
    ] {
        let log = log_of_refused_load(folder.path(), arguments, &[]);
        assert!(log.contains(why), "{arguments:?}: {log}");
        assert!(!log.contains("panicked") && !log.contains("crashed"), "{arguments:?}: {log}");
        std::fs::remove_file(folder.path().join("log")).unwrap();
    }
}

#[test]
fn is_taken_from_a_module_that_is_loaded_later() {
    let server = Server::bare(&["--enable-module-command", "yes"]);
    let mut client = server.connect();
    let path = module();
    let path = path.to_str().unwrap();
    let wrong = client.error(&["MODULE", "LOADEX", path, "ARGS", "top-keys", "x"]);
    assert!(wrong.starts_with("ERR Error loading the extension"), "{wrong}");
    let words =
        ["MODULE", "LOADEX", path, "CONFIG", "rl.top-keys", "8", "ARGS", "window-limit", "9", "cl-throttle", "yes"];
    assert_eq!(client.ask::<String>(&words), "OK");
    assert_eq!((client.config("rl.top-keys"), client.config("rl.window-limit")), ("8".into(), "9".into()));
    assert_eq!(client.five("CL.THROTTLE key 4 1 60")[..3], [0, 5, 4]);
    let refused = client.error(&["MODULE", "UNLOAD", "rl"]);
    assert!(refused.starts_with("ERR Error unloading module"), "{refused}");
    assert_eq!(client.five("RL.TAKE key 5 1/60 4")[..2], [1, 0], "and it is still there");
}

/// The README has the rows of the options; what they say is what the server does.
#[test]
fn the_readme_tells_the_range_and_the_default_of_each() {
    let readme = include_str!("../../README.md");
    let server = Server::start();
    let mut client = server.connect();
    let all: Vec<(String, String)> = client.line("CONFIG GET rl.*");
    for (name, default) in &all {
        let row = readme.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).expect(name);
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[3].trim_matches('`'), default, "{row}");
        if let Some((least, greatest)) = cells[2].split_once(" to ") {
            let greatest = greatest.split(' ').next().unwrap();
            for bound in [least, greatest] {
                assert_eq!(set(&mut client, name, bound), Ok("OK".into()), "{row}");
            }
            let above = (greatest.parse::<u64>().unwrap() + 1).to_string();
            assert!(set(&mut client, name, &above).is_err(), "{row}");
        }
    }
    let rows = readme.lines().filter(|line| line.starts_with("| `rl.") && line.matches('|').count() == 5).count();
    assert_eq!(rows, all.len());
    let _: Value = client.line("PING");
}
