//! The admin listener, and its page in a real browser.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::wd::TimeoutConfiguration;
use fantoccini::{Client, ClientBuilder, Locator};
use futures_util::FutureExt;
use serde_json::json;

use crate::server::{free_port, not_tested};
use crate::service::{ADMIN_TOKEN, PATIENCE, RULES, Service, redis};

#[test]
fn without_the_token_it_tells_and_does_nothing() {
    let service = Service::with(None, RULES, &[]);
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    for path in ["/api/health", "/api/rules", "/api/top", "/api/denials", "/api/clients/user:1"] {
        for token in
            ["", "Bearer ", "Bearer wrong", "Bearer for admins onlY", "Basic for admins only", "for admins only"]
        {
            let answer = agent.get(service.admin_url(path)).header("authorization", token).call().unwrap();
            assert_eq!(answer.status(), 401, "{path} {token:?}");
        }
        assert_eq!(service.admin(path).status, 200, "{path}");
    }
    let reset = service.admin_url("/api/clients/user:1/policies/login/reset");
    assert_eq!(agent.post(reset).send_empty().unwrap().status(), 401);
    // The service's own listener has none of it.
    assert_eq!(service.get("/api/health").status, 404);
}

#[test]
fn the_page_may_load_nothing_from_elsewhere() {
    let service = Service::with(None, RULES, &[]);
    for path in ["/", "/page.css", "/page.js"] {
        let answer = service.admin(path);
        assert_eq!(answer.status, 200);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!answer.text.contains("://"), "{path} names another place");
    }
}

/// A browser with one window.
struct Browser {
    driver: Child,
    client: Client,
}

/// Does something in a browser with a window of that size, and closes it, whatever came of it.
async fn in_browser(size: [u32; 2], dark: bool, something: impl AsyncFnOnce(&Browser)) {
    let Some(mut browser) = Browser::open(size, dark).await else { return };
    let done = AssertUnwindSafe(something(&browser)).catch_unwind().await;
    // Its driver, killed, would leave it behind.
    let _ = browser.client.clone().close().await;
    let _ = browser.driver.kill();
    let _ = browser.driver.wait();
    if let Err(panic) = done {
        resume_unwind(panic);
    }
}

impl Browser {
    /// `None` where there is none on this machine.
    async fn open([width, height]: [u32; 2], dark: bool) -> Option<Self> {
        let port = free_port();
        let spawned = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(driver) = spawned else {
            assert!(std::env::var_os("CI").is_none(), "there is no chromedriver");
            not_tested("the page in a browser: there is no chromedriver");
            return None;
        };
        let mut arguments = vec!["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
        if dark {
            arguments.push("--force-dark-mode");
        }
        let options = json!({ "args": arguments, "mobileEmulation": { "deviceMetrics": { "width": width, "height": height, "pixelRatio": 1.0 } } });
        let mut builder = ClientBuilder::new(hyper_connector());
        builder.capabilities([("goog:chromeOptions".to_owned(), options)].into_iter().collect());
        let deadline = std::time::Instant::now() + PATIENCE;
        let client = loop {
            match builder.connect(&format!("http://127.0.0.1:{port}")).await {
                Ok(client) => break client,
                Err(error) if std::time::Instant::now() > deadline => panic!("no browser: {error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        let patience = TimeoutConfiguration::new(None, None, Some(PATIENCE));
        client.update_timeouts(patience).await.unwrap();
        Some(Self { driver, client })
    }

    /// The text of the first element that fits, nothing if there is none. In one step: between two the page may replace it.
    async fn text(&self, css: &str) -> String {
        let text = "return document.querySelector(arguments[0])?.innerText ?? ''";
        self.client.execute(text, vec![css.into()]).await.unwrap().as_str().unwrap().to_owned()
    }

    async fn type_into(&self, css: &str, text: &str) {
        let field = self.client.find(Locator::Css(css)).await.unwrap();
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    async fn click(&self, css: &str) {
        self.client.find(Locator::Css(css)).await.unwrap().click().await.unwrap();
    }

    async fn script(&self, script: &str) -> serde_json::Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    /// Waits until the text of `css` holds `part`.
    async fn shows(&self, css: &str, part: &str) {
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let text = self.text(css).await;
            if text.contains(part) {
                return;
            }
            assert!(std::time::Instant::now() < deadline, "{css} does not show {part:?} but {text:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the page has shown anew what it asks for.
    async fn refreshed(&self) {
        let asked = "return performance.getEntriesByType('resource').filter((entry) => entry.name.endsWith('/api/rules')).length";
        let before = self.script(asked).await.as_u64().unwrap();
        let deadline = std::time::Instant::now() + PATIENCE;
        // It asks for the second after it has shown what the first brought.
        while self.script(asked).await.as_u64().unwrap() < before + 2 {
            assert!(std::time::Instant::now() < deadline, "the page does not refresh");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Keeps what is seen, where somebody asks for it (`RL_PICTURES=FOLDER`).
    async fn picture(&self, name: &str) {
        if let Some(folder) = std::env::var_os("RL_PICTURES") {
            let picture = self.client.screenshot().await.unwrap();
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}.png")), picture).unwrap();
        }
    }
}

fn hyper_connector() -> hyper_util::client::legacy::connect::HttpConnector {
    hyper_util::client::legacy::connect::HttpConnector::new()
}

/// A client whose name is an attack on whoever shows it.
const HOSTILE: &str = "user:<img src=x onerror=document.title='broken'>";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_and_does_all_of_it() {
    in_browser([1100, 900], false, async |browser| {
        let redis = redis();
        let service = Service::on(&redis);
        for client in ["user:42", "user:42", "user:42", "user:42", "user:42"] {
            service.check(&json!({ "client": client, "policies": ["global", "login"], "route": "/login" }).to_string());
        }
        for _ in 0..2 {
            service.check(&json!({ "client": HOSTILE, "limit": { "capacity": 1, "rate": "0" } }).to_string());
        }

        browser.client.goto(&service.admin_url("/")).await.unwrap();
        browser.type_into("#token", "wrong").await;
        browser.click("#entry button").await;
        browser.shows("#fault", "The token is wrong.").await;
        browser.type_into("#token", ADMIN_TOKEN).await;
        browser.click("#entry button").await;
        browser.shows("#health", "ok, Redis: breaker closed").await;

        browser.shows("#top", "user:42").await;
        browser.shows("#denials", "needs 1 of \"login\", has 0; wait 20 min").await;
        browser.shows("#rules", "POST /login: global login").await;

        browser.type_into("#client", "user:42").await;
        browser.click("#lookup button").await;
        browser.shows("#buckets .bucket:nth-child(2)", "login: 3, 1/20m").await;
        browser.shows("#buckets .bucket:nth-child(2) .figures", "0 of 3 left").await;
        browser.shows("#client-denials", "/login").await;
        browser.picture("light").await;

        browser.type_into("#buckets .bucket:nth-child(2) input", "2").await;
        browser.click("#buckets .bucket:nth-child(2) .actions button:last-child").await;
        browser.shows("#buckets .bucket:nth-child(2) .figures", "2 of 3 left").await;
        browser.click("#buckets .bucket:nth-child(2) .reset").await;
        browser.shows("#buckets .bucket:nth-child(2) .figures", "3 of 3 left, full").await;
        assert_eq!(service.check(r#"{"client":"user:42","policy":"login"}"#).status, 200, "it can go on at once");

        // A client is found with a click, whatever it is called.
        browser.shows("#denials", "user:<img").await;
        browser.click("#denials li .client").await;
        assert_eq!(browser.script("return document.title").await, "Rate limits");
        assert_eq!(browser.script("return document.images.length").await, 0);
        let faults = browser.script("return document.getElementById('fault').hidden").await;
        assert_eq!(faults, true);
    })
    .await;
}

/// Moves the focus to an element, and marks it.
const FOCUS: &str = "const e = document.querySelector(arguments[0]); e.focus(); e.dataset.mine = 'yes'";
const FOCUSED: &str = "return document.activeElement.dataset.mine ?? 'no'";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_is_at_stays_while_the_page_refreshes() {
    in_browser([1100, 900], false, async |browser| {
        let redis = redis();
        let service = Service::on(&redis);
        let deny = |client: &str| {
            for _ in 0..2 {
                service.check(&json!({ "client": client, "limit": { "capacity": 1, "rate": "0" } }).to_string());
            }
        };
        deny("user:1");
        deny("user:2");
        deny("user:2");
        service.check(r#"{"client":"user:1","policy":"login"}"#);
        browser.client.goto(&service.admin_url("/#user%3A1")).await.unwrap();
        browser.type_into("#token", ADMIN_TOKEN).await;
        browser.click("#entry button").await;
        browser.shows("#buckets", "login").await;

        // A number that takes longer to type than the page takes to refresh.
        let field = "#buckets .bucket:last-child input";
        browser.type_into(field, "1").await;
        browser.refreshed().await;
        let typed = browser.client.active_element().await.unwrap();
        typed.send_keys("2").await.unwrap();
        assert_eq!(browser.script(&format!("return document.querySelector('{field}').value")).await, "12");

        for list in ["#denials", "#top"] {
            browser.shows(list, "user:1").await;
            // The last of them: what comes above it moves it.
            let last = format!("{list} :is(li, tr):last-child .client");
            browser.client.execute(FOCUS, vec![last.into()]).await.unwrap();
            browser.refreshed().await;
            assert_eq!(browser.script(FOCUSED).await, "yes", "{list}");
            // Others come, and change places.
            deny("user:1");
            deny("user:2");
            deny(&format!("user:new{}", &list[1..]));
            browser.shows(list, &format!("user:new{}", &list[1..])).await;
            browser.refreshed().await;
            assert_eq!(browser.script(FOCUSED).await, "yes", "{list} changes");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_seen_to_fill() {
    in_browser([1100, 900], false, async |browser| {
        let service = Service::with(None, "[policies.slow]\ncapacity = 100\nrate = 10", &[]);
        service.check(r#"{"client":"user:1","policy":"slow","cost":100}"#);
        browser.client.goto(&service.admin_url("/#user%3A1")).await.unwrap();
        browser.type_into("#token", ADMIN_TOKEN).await;
        browser.click("#entry button").await;
        browser.shows("#buckets", "slow: 100, 10/s").await;
        browser.shows("#buckets .figures", "of 100 left").await;
        let width = "return parseFloat(document.querySelector('.level').style.width)";
        let before = browser.script(width).await.as_f64().unwrap();
        // Within a second, so between two answers: it is drawn.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let after = browser.script(width).await.as_f64().unwrap();
        assert!(before < after && after <= 100.0, "{before} {after}");
        browser.shows("#buckets .figures", "100 of 100 left, full").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_fits_a_phone_and_goes_dark() {
    in_browser([360, 740], true, async |browser| {
    let redis = redis();
    let service = Service::on(&redis);
    for _ in 0..5 {
        service.check(r#"{"client":"user:a-rather-long-identifier-as-they-come-0123456789abcdef","policy":"login"}"#);
    }
    browser
        .client
        .goto(&service.admin_url("/#user%3Aa-rather-long-identifier-as-they-come-0123456789abcdef"))
        .await
        .unwrap();
    browser.type_into("#token", ADMIN_TOKEN).await;
    browser.click("#entry button").await;
    browser.shows("#buckets", "login").await;
    browser.picture("phone").await;
    let wide = browser.script("return document.documentElement.scrollWidth - window.innerWidth").await;
    assert!(wide.as_i64().unwrap() <= 0, "it is {wide} pixels too wide");
    let small = "return [...document.querySelectorAll('button:not(.client), input')].filter((e) => e.offsetParent && e.offsetHeight < 40).length";
    assert_eq!(browser.script(small).await, 0, "something is too small for a finger");
})
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_redis_gone_it_says_so_and_shows_what_it_knows() {
    in_browser([1100, 900], false, async |browser| {
        let service = Service::with(Some("redis://127.0.0.1:1"), RULES, &[]);
        service.check(r#"{"client":"user:1","policy":"global"}"#);
        browser.client.goto(&service.admin_url("/")).await.unwrap();
        browser.type_into("#token", ADMIN_TOKEN).await;
        browser.click("#entry button").await;
        browser.shows("#health", "degraded: Redis").await;
        browser.shows("#policies", "login").await;
    })
    .await;
}
