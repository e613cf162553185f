use std::num::NonZeroUsize;

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

const PROXY: &str = "10.0.0.9";

fn from_right(nth: usize) -> Identity {
    Identity::default().forwarded(Forwarded::FromRight(NonZeroUsize::new(nth).unwrap()))
}

fn behind(proxies: &[&str]) -> Identity {
    let proxies = proxies.iter().map(|proxy| proxy.parse().unwrap()).collect();
    Identity::default().forwarded(Forwarded::BehindTrusted(proxies))
}

fn headers(name: &'static str, lines: &[&[u8]]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(name, HeaderValue::from_bytes(line).unwrap());
    }
    headers
}

fn by(peer: &str) -> Extensions {
    let mut extensions = Extensions::new();
    extensions.insert(Peer(peer.parse().unwrap()));
    extensions
}

fn seen(identity: &Identity, peer: &str, lines: &[&[u8]]) -> String {
    identity.identify(&headers("x-forwarded-for", lines), &by(peer)).to_string()
}

#[test]
fn is_the_peer_unless_proxies_are_declared() {
    assert_eq!(seen(&Identity::default(), "203.0.113.7", &[b"198.51.100.1"]), "ip:203.0.113.7");
    assert_eq!(Identity::default().identify(&HeaderMap::new(), &Extensions::new()), Client::unknown());
}

#[test]
fn is_the_nth_entry_from_the_right_over_all_lines() {
    for (nth, lines, client) in [
        (1, &[b"1.1.1.1, 2.2.2.2".as_slice()][..], "ip:2.2.2.2"),
        (2, &[b"1.1.1.1, 2.2.2.2"], "ip:1.1.1.1"),
        (2, &[b"1.1.1.1", b"2.2.2.2"], "ip:1.1.1.1"),
        (3, &[b"9.9.9.9, 1.1.1.1", b"2.2.2.2,3.3.3.3"], "ip:1.1.1.1"),
        (1, &[b"2.2.2.2:4711"], "ip:2.2.2.2"),
        (1, &[b"[2001:db8:1:2:3::1]:443"], "ip:2001:db8:1:2::/64"),
        (1, &[b"[2001:db8:1:2:3::1]"], "ip:2001:db8:1:2::/64"),
        (1, &[b"\t2001:db8:1:2:3::1 "], "ip:2001:db8:1:2::/64"),
        (1, &[b"::ffff:2.2.2.2"], "ip:2.2.2.2"),
        (1, &[b"::ffff:202:202"], "ip:2.2.2.2"),
        (1, &[b"\xff\xfe, 2.2.2.2"], "ip:2.2.2.2"),
    ] {
        assert_eq!(seen(&from_right(nth), PROXY, lines), client, "{nth} of {lines:?}");
    }
}

#[test]
fn falls_back_to_the_peer_where_the_entry_is_short_or_malformed() {
    for (nth, lines) in [
        (1, &[][..]),
        (2, &[b"1.1.1.1".as_slice()][..]),
        (1, &[b""]),
        (1, &[b"1.1.1.1,"]),
        (1, &[b"1.1.1.1, unknown"]),
        (1, &[b"1.1.1.1, _hidden"]),
        (1, &[b"1.1.1.256"]),
        (1, &[b"01.1.1.1"]),
        (1, &[b"[1.1.1.1]"]),
        (1, &[b"[::1"]),
        (1, &[b"fe80::1%eth0"]),
        (1, &[b"1.1.1.1:99999"]),
        (1, &[b"\xff"]),
    ] {
        assert_eq!(seen(&from_right(nth), PROXY, lines), "ip:10.0.0.9", "{nth} of {lines:?}");
    }
}

#[test]
fn is_the_first_untrusted_entry_where_the_proxies_are_known() {
    let identity = behind(&["10.0.0.0/8", "2001:db8:ffff::/48"]);
    for (peer, lines, client) in [
        ("10.0.0.9", &[b"6.6.6.6, 2.2.2.2, 10.1.1.1".as_slice()][..], "ip:2.2.2.2"),
        ("10.0.0.9", &[b"6.6.6.6", b"2.2.2.2", b"10.1.1.1"], "ip:2.2.2.2"),
        ("::ffff:10.0.0.9", &[b"2.2.2.2"], "ip:2.2.2.2"),
        ("10.0.0.9", &[b"2.2.2.2, ::ffff:10.1.1.1"], "ip:2.2.2.2"),
        ("2001:db8:ffff::1", &[b"2.2.2.2"], "ip:2.2.2.2"),
        // Nobody who is not a proxy is believed.
        ("203.0.113.7", &[b"2.2.2.2"], "ip:203.0.113.7"),
        // Short, or malformed before the first untrusted entry.
        ("10.0.0.9", &[b"10.2.2.2, 10.1.1.1"], "ip:10.0.0.9"),
        ("10.0.0.9", &[b"2.2.2.2, nonsense, 10.1.1.1"], "ip:10.0.0.9"),
        ("10.0.0.9", &[], "ip:10.0.0.9"),
    ] {
        assert_eq!(seen(&identity, peer, lines), client, "{peer} {lines:?}");
    }
}

#[test]
fn one_customer_of_ipv6_is_one_client() {
    let identity = Identity::default();
    assert_eq!(seen(&identity, "2001:db8:1:2:aaaa::1", &[]), seen(&identity, "2001:db8:1:2:bbbb::2", &[]));
    assert_ne!(seen(&identity, "2001:db8:1:2::1", &[]), seen(&identity, "2001:db8:1:3::1", &[]));
    assert_eq!(seen(&identity.clone().ipv6_prefix(56), "2001:db8:1:2ff::1", &[]), "ip:2001:db8:1:200::/56");
    assert_eq!(seen(&identity.ipv6_prefix(128), "2001:db8::1", &[]), "ip:2001:db8::1/128");
}

#[test]
fn goes_by_principal_then_tenant_then_address() {
    let identity = Identity::default();
    let mut extensions = by("203.0.113.7");
    extensions.insert(Tenant("acme".into()));
    assert_eq!(identity.identify(&HeaderMap::new(), &extensions).in_key(), "tenant:acme");
    extensions.insert(Principal("42".into()));
    assert_eq!(identity.identify(&HeaderMap::new(), &extensions).in_key(), "user:42");
}

#[test]
fn a_header_counts_only_from_a_gateway() {
    let name = HeaderName::from_static("x-user");
    let sent = headers("x-user", &[b"42"]);
    let gateway = GatewayHeader::from_gateways(name.clone(), ["10.0.0.0/8".parse().unwrap()]);
    let identity = Identity::default().principal_header(gateway);
    for (peer, client) in [("10.0.0.9", "user:42"), ("203.0.113.7", "ip:203.0.113.7")] {
        assert_eq!(identity.identify(&sent, &by(peer)).in_key(), client);
    }
    assert_eq!(identity.identify(&sent, &Extensions::new()), Client::unknown());
    let behind_anyone = Identity::default().principal_header(GatewayHeader::from_any_peer(name));
    assert_eq!(behind_anyone.identify(&sent, &Extensions::new()).in_key(), "user:42");
    // Without the operator's word it is nothing.
    assert_eq!(Identity::default().identify(&sent, &by("203.0.113.7")).in_key(), "ip:203.0.113.7");
}

#[test]
fn a_header_that_two_have_written_names_nobody() {
    let identity =
        Identity::default().principal_header(GatewayHeader::from_any_peer(HeaderName::from_static("x-user")));
    let long = [b'a'; MAX_HEADER_ID + 1];
    for lines in [&[b"victim".as_slice(), b"42"][..], &[b""], &[b"  "], &[b"\xff"], &[&long]] {
        let client = identity.identify(&headers("x-user", lines), &by("203.0.113.7"));
        assert_eq!(client.in_key(), "ip:203.0.113.7", "{lines:?}");
    }
}

proptest! {
    /// The attack: whatever a client writes into its headers, behind proxies that append what they see it stays the client that
    /// they have seen.
    #[test]
    fn whatever_it_sends_a_client_stays_itself(
        forged in proptest::collection::vec("[ -~\u{80}-\u{ff}]{0,40}", 0..4),
        own_line in any::<bool>(),
        user in "[ -~]{0,20}",
    ) {
        let mut sent = HeaderMap::new();
        let mut lines: Vec<Vec<u8>> = forged.iter().map(|line| line.chars().map(|c| c as u8).collect()).collect();
        // The proxy appends to the last line, or adds one of its own.
        match lines.last_mut() {
            Some(last) if !own_line => last.extend_from_slice(b", 198.51.100.1"),
            _ => lines.push(b"198.51.100.1".to_vec()),
        }
        for line in &lines {
            sent.append("x-forwarded-for", HeaderValue::from_bytes(line).unwrap());
        }
        sent.append("x-user", HeaderValue::from_str(&user).unwrap());
        sent.append("forwarded", HeaderValue::from_str(&user).unwrap());
        sent.append("x-real-ip", HeaderValue::from_static("6.6.6.6"));
        for identity in [from_right(1), behind(&["10.0.0.0/8"])] {
            prop_assert_eq!(identity.identify(&sent, &by(PROXY)), Client::new(Kind::Ip, "198.51.100.1"));
        }
        let unproxied = Identity::default().identify(&sent, &by("198.51.100.1"));
        prop_assert_eq!(unproxied, Client::new(Kind::Ip, "198.51.100.1"));
    }

    /// No header makes it panic.
    #[test]
    fn reads_anything(line in proptest::collection::vec(any::<u8>().prop_filter("no line break", |b| *b >= 32 && *b != 127), 0..80), nth in 1_usize..5) {
        let _ = seen(&from_right(nth), PROXY, &[&line]);
        let _ = seen(&behind(&["0.0.0.0/0"]), PROXY, &[&line]);
    }
}
