//! Access control: what a user must be allowed to do.

use std::collections::HashMap;

use crate::support::{Client, Server};

/// A connection as a user with `rules`.
fn user(server: &Server, rules: &[&str]) -> Client {
    let mut client = server.connect();
    let words = [&["ACL", "SETUSER", "someone", "reset", "on", ">secret"], rules].concat();
    assert_eq!(client.ask::<String>(&words), "OK");
    assert_eq!(client.line::<String>("AUTH someone secret"), "OK");
    client
}

fn refuses(client: &mut Client, lines: &[&str]) {
    for line in lines {
        let error = client.error(&line.split(' ').collect::<Vec<_>>());
        assert!(error.starts_with("NOPERM "), "{line}: {error}");
    }
}

#[test]
fn a_user_for_takes_on_some_keys_can_do_that_and_nothing_else() {
    let server = Server::start();
    let mut client = user(&server, &["+rl.take", "~rl:*"]);
    assert_eq!(client.five("RL.TAKE rl:key 2 0"), [1, 1, 0, -1, 2]);
    assert_eq!(client.five("RL.TAKE rl:key 2 0 2"), [0, 1, -1, -1, 2]);
    refuses(&mut client, &["RL.TAKE key 2 0", "RL.TAKE rl 2 0", "RL.TAKE RL:key 2 0"]);
    refuses(&mut client, &["RL.PEEK rl:key", "RL.INFO rl:key", "RL.RESTORE rl:key x", "GET rl:key", "DEL rl:key"]);
    assert_eq!(server.connect().five("RL.PEEK rl:key"), [1, 1, 0, -1, 2]);
    assert_eq!(server.connect().line::<i64>("DBSIZE"), 1);
}

#[test]
fn a_bad_argument_does_not_come_before_a_missing_permission() {
    let server = Server::start();
    let mut client = user(&server, &["+rl.take", "~rl:*"]);
    refuses(&mut client, &["RL.TAKE key -1 x", "RL.RESTORE key x"]);
}

#[test]
fn who_may_only_read_a_key_can_look_and_not_take() {
    let server = Server::start();
    server.connect().reply("RL.TAKE key 2 0");
    let mut client = user(&server, &["+@all", "%R~key"]);
    assert_eq!(client.five("RL.PEEK key"), [1, 1, 0, -1, 2]);
    assert_eq!(client.five("RL.PEEK key 2 0 2"), [0, 1, -1, -1, 2]);
    let info: Vec<String> = client.line("RL.INFO key");
    assert_eq!(info[1], "token-bucket");
    refuses(&mut client, &["RL.TAKE key 2 0", "RL.TAKE key 2 0 0", "RL.RESTORE key x", "RL.PEEK other"]);
    assert_eq!(client.five("RL.PEEK key"), [1, 1, 0, -1, 2]);
}

#[test]
fn who_may_only_write_a_key_can_neither_take_nor_look_for_both_tell_what_it_holds() {
    let server = Server::start();
    server.connect().reply("RL.TAKE key 2 0");
    let mut client = user(&server, &["+@all", "%W~key"]);
    refuses(&mut client, &["RL.TAKE key 2 0", "RL.PEEK key", "RL.INFO key"]);
    assert_eq!(
        client.error(&["RL.RESTORE", "key", ""]),
        "ERR payload must be a whole record of RL.RESTORE: it ends too early"
    );
    let mut client = user(&server, &["+@all", "%RW~key"]);
    assert_eq!(client.five("RL.TAKE key 2 0"), [1, 0, 0, -1, 2]);
}

#[test]
fn a_selector_gives_takes_on_some_keys_and_looks_on_others() {
    let server = Server::start();
    let mut client = user(&server, &["+rl.take", "~own:*", "(+rl.peek %R~all:*)"]);
    assert_eq!(client.five("RL.TAKE own:key 2 0"), [1, 1, 0, -1, 2]);
    assert_eq!(client.five("RL.PEEK all:key 2 0"), [1, 2, 0, 0, 2]);
    refuses(&mut client, &["RL.PEEK own:key 2 0", "RL.TAKE all:key 2 0"]);
}

#[test]
fn a_script_is_held_to_the_same_permissions() {
    const CALLS: [(&str, &str, [&str; 2]); 3] = [
        ("RL.TAKE", "rl:key", ["command", "rl.take"]),
        ("RL.TAKE", "key", ["command", "rl.take"]),
        ("RL.PEEK", "key", ["key", "key"]),
    ];
    let server = Server::start();
    let mut admin = server.connect();
    let mut client = user(&server, &["+eval", "+rl.peek", "~rl:*", "~key"]);
    admin.ask::<String>(&["ACL", "SETUSER", "someone", "resetkeys", "~rl:*", "(+eval ~key)"]);
    for (command, key, [reason, object]) in CALLS {
        assert_eq!(admin.line::<String>("ACL LOG RESET"), "OK");
        client.error(&["EVAL", &format!("return redis.call('{command}', KEYS[1], 2, 0)"), "1", key]);
        let [log]: [HashMap<String, String>; 1] = admin.line("ACL LOG");
        let logged = [&log["reason"], &log["context"], &log["object"].to_lowercase()];
        assert_eq!(logged, [reason, "lua", object], "{command} {key}");
    }
    assert_eq!(admin.line::<i64>("DBSIZE"), 0);
}

#[test]
fn the_categories_hold_the_commands_where_modules_may_say_so() {
    const TAKING: &str = "COUNTER GIVE LEASE QUOTA RESERVE TAKE WINDOW THROTTLE";
    let server = Server::loaded_with(&["cl-throttle", "yes"], &[]);
    if !server.has("ACL categories of a module's commands", (7, 2)) {
        return;
    }
    let mut client = server.connect();
    let named = |names: &[&str]| {
        let mut names: Vec<String> = names.iter().flat_map(|names| names.split(' ')).map(str::to_owned).collect();
        names.sort();
        names
    };
    for (category, expected) in [
        ("read", named(&["INFO PEEK"])),
        ("write", named(&[TAKING, "MTAKE RESTORE"])),
        ("fast", named(&[TAKING, "INFO PEEK"])),
        ("dangerous", named(&["RESTORE TOP"])),
        ("admin", named(&["RESTORE TOP"])),
        ("keyspace", Vec::new()),
    ] {
        assert_eq!(ours_in(&mut client, category), expected, "{category}");
    }
}

/// The commands of ours in a category, without what stands before the dot.
fn ours_in(client: &mut Client, category: &str) -> Vec<String> {
    // `ACL CAT` leaves modules out on some servers.
    let all: Vec<String> = client.ask(&["COMMAND", "LIST", "FILTERBY", "ACLCAT", category]);
    let all = all.into_iter().map(|name| name.to_uppercase());
    let mut ours: Vec<String> = all.filter_map(|name| Some(name.split_once('.')?.1.to_owned())).collect();
    ours.sort();
    ours
}

#[test]
fn a_category_of_our_own_holds_all_of_them_where_modules_may_have_one() {
    let server = Server::start();
    let mut client = server.connect();
    let categories: Vec<String> = client.line("ACL CAT");
    // Redis 7.4 brought it, and Valkey, which says 7.2 of itself, has it.
    let is_valkey = server.info("server", "valkey_version").is_some();
    if !is_valkey && !server.has("ACL categories of a module's own", (7, 4)) {
        assert!(!categories.contains(&"rl".to_owned()));
        return;
    }
    assert!(categories.contains(&"rl".to_owned()), "{categories:?}");
    let mut all: Vec<String> = client.line("COMMAND LIST FILTERBY MODULE rl");
    all.iter_mut().for_each(|name| *name = name.to_uppercase().replace("RL.", ""));
    all.sort();
    assert_eq!(ours_in(&mut client, "rl"), all);
    let mut told: Vec<String> = client.line("ACL CAT rl");
    told.iter_mut().for_each(|name| *name = name.to_uppercase().replace("RL.", ""));
    told.sort();
    let version = server.info("server", if is_valkey { "valkey_version" } else { "redis_version" }).unwrap();
    let leaves_modules_out = version.starts_with(if is_valkey { "8.0." } else { "7.4." });
    assert_eq!(told, if leaves_modules_out { Vec::new() } else { all });
    let mut client = user(&server, &["+@rl", "-@dangerous", "~*"]);
    assert_eq!(client.five("RL.TAKE key 2 0"), [1, 1, 0, -1, 2]);
    refuses(&mut client, &["RL.RESTORE key x", "RL.TOP", "GET key"]);
}

#[test]
fn who_is_kept_from_what_is_dangerous_cannot_set_a_state() {
    let server = Server::start();
    if !server.has("ACL categories of a module's commands", (7, 2)) {
        return;
    }
    let mut client = user(&server, &["+@all", "-@dangerous", "~*"]);
    refuses(&mut client, &["RL.RESTORE key x"]);
    assert_eq!(client.five("RL.TAKE key 2 0"), [1, 1, 0, -1, 2]);
    let mut client = user(&server, &["+@read", "~*"]);
    assert_eq!(client.five("RL.PEEK key"), [1, 1, 0, -1, 2]);
    refuses(&mut client, &["RL.TAKE key 2 0", "RL.RESTORE key x"]);
}
