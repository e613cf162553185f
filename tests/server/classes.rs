//! Counts by class of key, in `INFO rl`.

use redis::Value;

use crate::support::{Client, Server};

/// The section, line by line, without its head.
fn classes(client: &mut Client) -> Vec<String> {
    let section: String = client.line("INFO rl_classes");
    let lines = section.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn are_not_counted_unless_asked_for() {
    let server = Server::start();
    let mut client = server.connect();
    client.five("RL.TAKE login:1 10 0");
    assert_eq!(classes(&mut client), [""; 0]);
    assert!(!client.line::<String>("INFO rl").contains("class"));
}

#[test]
fn the_first_that_come_are_counted_and_the_rest_together() {
    let server = Server::loaded_with(&["key-classes", "2"], &[]);
    let mut client = server.connect();
    for line in [
        "RL.TAKE login:ip:1 1 0",
        "RL.TAKE login:ip:2 1 0",
        "RL.TAKE login:ip:2 1 0",
        "RL.TAKE api:7 1 0",
        "RL.TAKE third:1 1 0",
        "RL.TAKE third:1 1 0",
        "RL.TAKE global 1 0",
    ] {
        client.five(line);
    }
    assert_eq!(
        classes(&mut client),
        [
            "rl_class0:class=login:ip,allowed=2,denied=1",
            "rl_class1:class=api,allowed=1,denied=0",
            "rl_other:allowed=2,denied=1",
        ]
    );
    let whole: String = client.line("INFO rl");
    assert!(whole.contains("# rl_classes\r\nrl_class0:"), "{whole}");
}

#[test]
fn every_decision_counts_and_nothing_else_does() {
    let server = Server::loaded_with(&["key-classes", "20", "cl-throttle", "yes"], &[]);
    let mut client = server.connect();
    for line in [
        "RL.TAKE take:1 1 0",
        "RL.LEASE lease:1 1 0 5",
        "RL.RESERVE reserve:1 1 0 1 1s",
        "RL.WINDOW window:1 1 1h",
        "RL.COUNTER counter:1 1 1h",
        "RL.QUOTA quota:1 1 year",
        "CL.THROTTLE cl:1 0 1 3600",
        "RL.MTAKE 2 {m}a:1 {m}b:1 1 0 1 2 0 1",
    ] {
        for _ in 0..2 {
            client.line::<Value>(line);
        }
    }
    let counted = classes(&mut client);
    for line in ["RL.PEEK take:1", "RL.INFO take:1", "RL.GIVE take:1 0", "RL.TOP", "RL.PEEK take:1 9 9"] {
        client.line::<Value>(line);
    }
    client.error(&["RL.TAKE", "take:1", "x", "0"]);
    assert_eq!(classes(&mut client), counted);
    let mut told: Vec<&str> =
        counted.iter().filter_map(|line| line.split_once("class=")).map(|(_, told)| told).collect();
    told.sort_unstable();
    let expected = ["cl", "counter", "lease", "quota", "reserve", "take", "window", "{m}a"];
    let mut expected = expected.map(|class| format!("{class},allowed=1,denied=1")).to_vec();
    // Where another bucket denied, this one would have allowed.
    expected.push("{m}b,allowed=2,denied=0".into());
    assert_eq!(told, expected);
    assert_eq!(counted.last().unwrap(), "rl_other:allowed=0,denied=0");
}

#[test]
fn are_cut_at_the_separator_and_the_depth_that_are_set_which_begins_anew() {
    let server = Server::loaded_with(&["key-classes", "5"], &[]);
    let mut client = server.connect();
    let counted = |client: &mut Client| {
        client.five("RL.TAKE user:42:login/now 9 0");
        classes(client)
    };
    assert_eq!(counted(&mut client)[0], "rl_class0:class=user:42,allowed=1,denied=0");
    for (option, value, class) in
        [("class-depth", "1", "user"), ("class-depth", "2", "user:42"), ("class-separator", "/", "user:42:login")]
    {
        let _: String = client.line(&format!("CONFIG SET rl.{option} {value}"));
        assert_eq!(
            counted(&mut client),
            [format!("rl_class0:class={class},allowed=1,denied=0"), "rl_other:allowed=0,denied=0".into()]
        );
    }
    let _: String = client.line("CONFIG SET rl.key-classes 0");
    assert_eq!(counted(&mut client), [""; 0]);
}

#[test]
fn bytes_that_would_break_a_line_are_written_as_numbers() {
    let server = Server::loaded_with(&["key-classes", "5"], &[]);
    let mut client = server.connect();
    let _: Value = client.ask(&[b"RL.TAKE".as_slice(), b"a,b=c%d\r\ne \xff\0:1", b"1", b"0"]);
    assert_eq!(classes(&mut client)[0], "rl_class0:class=a%2Cb%3Dc%25d%0D%0Ae%20%FF%00,allowed=1,denied=0");
}
