use super::live::Looks;
use super::*;
use crate::policy::OnOutage;

const RULES: &str = r#"
[policies.global]
capacity = 1000
rate = "100/s"
on_outage = "local"
lease = 50

[policies.login]
capacity = 10
rate = "10/h"
on_outage = "deny"

[policies.pro]
capacity = 5000
rate = 500
bucket = "global"

[policies.trial]
capacity = 20
rate = 0.5
cost = 2
shadow = true

[[rules]]
routes = ["/healthz", "/static/*"]
skip = true

[[rules]]
routes = ["/login"]
methods = ["POST"]
policies = ["global", "login"]

[[rules]]
routes = ["/api/*"]
plans = ["pro"]
policies = ["pro"]

[[rules]]
clients = ["ip:10.0.0.0/8", "user:robot"]
skip = true

[[rules]]
routes = ["/api/*"]
clients = ["user", "tenant"]
policies = ["global", "trial"]
"#;

/// What the rules choose: the names, `skip`, or `nothing`.
fn chosen(rules: &Rules, method: &Method, route: &str, plan: Option<&str>, client: &str) -> String {
    let client = Client::parse(client).unwrap();
    match rules.choose(&Facts { route, method, plan, client: &client }) {
        Chosen::Policies(policies) => policies.iter().map(|policy| policy.name.as_str()).collect::<Vec<_>>().join(" "),
        Chosen::Skip => "skip".to_owned(),
        Chosen::Nothing => "nothing".to_owned(),
    }
}

#[test]
fn the_first_that_fits_decides() {
    let rules = Rules::parse(RULES).unwrap();
    for (method, route, plan, client, names) in [
        (Method::GET, "/healthz", None, "user:1", "skip"),
        (Method::GET, "/static", None, "user:1", "skip"),
        (Method::GET, "/static/a/b.css", None, "user:1", "skip"),
        (Method::GET, "/statics", None, "user:1", "nothing"),
        (Method::POST, "/login", None, "ip:203.0.113.7", "global login"),
        (Method::GET, "/login", None, "ip:203.0.113.7", "nothing"),
        (Method::GET, "/api/users/{id}", Some("pro"), "user:1", "pro"),
        (Method::GET, "/api/users/{id}", Some("free"), "user:1", "global trial"),
        (Method::GET, "/api/users/{id}", None, "tenant:acme", "global trial"),
        (Method::GET, "/api/users/{id}", None, "ip:203.0.113.7", "nothing"),
        (Method::GET, "/api/users/{id}", None, "ip:10.1.2.3", "skip"),
        (Method::GET, "/api/users/{id}", None, "user:robot", "skip"),
        (Method::GET, "/other", None, "unknown", "nothing"),
    ] {
        assert_eq!(chosen(&rules, &method, route, plan, client), names, "{method} {route} {plan:?} {client}");
    }
}

#[test]
fn asking_for_the_head_alone_is_no_way_around_a_limit() {
    let policy = "[policies.a]\ncapacity = 10\nrate = 1\n[[rules]]\npolicies = [\"a\"]\n";
    for (methods, get, head) in
        [(r#"["GET"]"#, "a", "a"), (r#"["HEAD"]"#, "nothing", "a"), (r#"["POST"]"#, "nothing", "nothing")]
    {
        let rules = Rules::parse(&format!("{policy}methods = {methods}")).unwrap();
        let chosen = |method| chosen(&rules, &method, "/", None, "unknown");
        assert_eq!([chosen(Method::GET), chosen(Method::HEAD)], [get, head], "{methods}");
    }
}

#[test]
fn a_file_says_all_that_a_policy_can_be() {
    let rules = Rules::parse(RULES).unwrap();
    let policy = |name: &str| (**rules.policy(name).unwrap()).clone();
    let global = Policy::new("global", 1000, "100").unwrap().on_outage(OnOutage::Local).leasing(50).unwrap();
    assert_eq!(policy("global"), global);
    assert_eq!(policy("login"), Policy::new("login", 10, "10/h").unwrap().on_outage(OnOutage::Deny));
    assert_eq!(policy("pro"), Policy::new("pro", 5000, "500").unwrap().sharing("global").unwrap());
    assert_eq!(policy("trial"), Policy::new("trial", 20, "0.5").unwrap().costing(2).unwrap().shadow());
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let policy = "[policies.a]\ncapacity = 10\nrate = 1\n";
    for (text, line, message) in [
        ("[policies.a]\ncapacity = ", 2, "string values must be quoted"),
        ("[policies.a]\ncapacity = 10\nrate = 1\ncosts = 2", 4, "unknown field `costs`"),
        ("[policies.a]\ncapacity = 10", 1, "missing field `rate`"),
        ("[policies.a]\ncapacity = -1\nrate = 1", 2, "invalid value: integer `-1`"),
        ("[policies.a]\ncapacity = 10\nrate = \"often\"", 3, "policy \"a\": rate must be tokens per second"),
        ("[policies.a]\ncapacity = 10\nrate = nan", 3, "rate must be finite"),
        ("\n\n[policies.\"a b\"]\ncapacity = 10\nrate = 1", 3, "policy \"a b\": name must be"),
        ("[policies.a]\ncapacity = 10\nrate = 1\ncost = 11", 4, "policy \"a\": cost must be"),
        ("[policies.a]\ncapacity = 10\nrate = 1\nlease = 0", 4, "policy \"a\": lease must be"),
        ("[policies.a]\ncapacity = 10\nrate = 1\non_outage = \"panic\"", 4, "unknown variant `panic`"),
        (&format!("{policy}\n[[rules]]\nroutes = [\"/\"]"), 5, "a rule needs either policies"),
        (&format!("{policy}\n[[rules]]\npolicies = []"), 5, "a rule needs either policies"),
        (&format!("{policy}\n[[rules]]\npolicies = [\"a\"]\nskip = true"), 5, "a rule needs either policies"),
        (&format!("{policy}\n[[rules]]\npolicies = [\n\"a\",\n\"b\"]"), 8, "there is no policy \"b\""),
        (
            &format!("{policy}\n[[rules]]\npolicies = [\"a\", \"a\"]"),
            5,
            "two policies of one rule take from the bucket",
        ),
        (&format!("{policy}\n[[rules]]\nmethods = [\"get\"]\nskip = true"), 6, "\"get\" is no method"),
        (&format!("{policy}\n[[rules]]\nroutes = [\"/a*b\"]\nskip = true"), 6, "a '*' can only stand"),
        (&format!("{policy}\n[[rules]]\nclients = [\"robot\"]\nskip = true"), 6, "\"robot\" is no client"),
    ] {
        let error = Rules::parse(text).unwrap_err();
        assert_eq!(error.line, Some(line), "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
}

#[test]
fn rules_from_code_are_held_to_the_same() {
    let (a, other) = (Policy::new("a", 1, "1").unwrap(), Policy::new("a", 2, "1").unwrap());
    let twice = Rules::new([Rule::any().apply([a.clone(), a.clone()])]).unwrap_err();
    assert_eq!(twice.to_string(), "two policies of one rule take from the bucket \"a\"");
    let ambiguous = Rules::new([Rule::on(["/x"]).apply([a]), Rule::any().apply([other])]).unwrap_err();
    assert_eq!(ambiguous.to_string(), "there are two policies with the name \"a\"");
    let many = (0..=MAX_POLICIES).map(|n| Policy::new(&format!("p{n}"), 1, "1").unwrap());
    assert_eq!(Rules::new([Rule::any().apply(many)]).unwrap_err().to_string(), "a rule can have at most 16 policies");
}

#[test]
fn a_bad_text_leaves_the_old_rules_in_force() {
    let live = LiveRules::new(Rules::parse(RULES).unwrap());
    let before = live.now();
    assert_eq!(live.reload("[policies.a]\ncapacity = 10").unwrap_err().line, Some(1));
    assert_eq!(live.now(), before);
    live.reload("").unwrap();
    assert!(live.now().policies().is_empty());
}

#[tokio::test]
async fn a_file_is_followed_and_a_bad_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.toml");
    // In one piece: what is found half written is another test's.
    let write = |text: &str| {
        std::fs::write(folder.path().join("new"), text).unwrap();
        std::fs::rename(folder.path().join("new"), &path).unwrap();
    };
    write(RULES);
    let live = LiveRules::new(Rules::parse(RULES).unwrap());
    let every = std::time::Duration::from_millis(5);
    let following = tokio::spawn(live.clone().follow(path.clone(), every));
    tokio::time::sleep(10 * every).await;
    write("[policies.a]\ncapacity = ");
    tokio::time::sleep(10 * every).await;
    assert_eq!(live.now().policies().len(), 4);
    write("[policies.a]\ncapacity = 1\nrate = 1");
    while live.now().policies().len() != 1 {
        tokio::time::sleep(every).await;
    }
    following.abort();
}

#[test]
fn a_file_that_is_being_written_is_not_followed() {
    let mut looks = Looks::default();
    let mut found = |text: &str| looks.found(Ok(text.to_owned())).cloned().map(Result::unwrap);
    let followed: Vec<_> = ["old", "old", "old", "", "half", "new", "new", "new", "", "new", "new", "", ""]
        .map(|text| found(text).unwrap_or("-".to_owned()))
        .into();
    assert_eq!(followed, ["-", "old", "-", "-", "-", "-", "new", "-", "-", "-", "-", "-", ""]);
}

#[tokio::test]
async fn a_change_before_the_first_look_is_not_missed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[policies.a]\ncapacity = 1\nrate = 1").unwrap();
    let live = LiveRules::new(Rules::parse(RULES).unwrap());
    let every = std::time::Duration::from_millis(5);
    let following = tokio::spawn(live.clone().follow(file.path().to_owned(), every));
    while live.now().policies().len() != 1 {
        assert!(!following.is_finished());
        tokio::time::sleep(every).await;
    }
    following.abort();
}

#[test]
fn a_rule_can_be_shown() {
    let rules = Rules::parse(RULES).unwrap();
    let shown: Vec<_> = rules.rules().iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "any /healthz /static/*: no limit",
            "POST /login: global login",
            "any /api/*, plan pro: pro",
            "any *, client ip:10.0.0.0/8 user:robot: no limit",
            "any /api/*, client user tenant: global trial",
        ]
    );
}
