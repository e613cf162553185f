//! `X-Forwarded-For`: each proxy appends the address from which it was called. What stands to the left of what the operator's
//! own proxies have appended is the client's invention.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

use super::within;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// What is believed of `X-Forwarded-For`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Forwarded {
    /// Nothing: the peer is the client.
    #[default]
    Ignored,
    /// The client is the nth entry from the right: with one proxy in front the first, with two the second. Right only where
    /// every request has passed that many.
    FromRight(NonZeroUsize),
    /// These are proxies. If the peer is one, the client is the first entry from the right that is none.
    BehindTrusted(Vec<IpNet>),
}

impl Forwarded {
    /// The address of whoever has sent a request that `peer` has brought. The peer's where there is no such entry, or
    /// it is no address.
    pub(super) fn origin(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        let named = match self {
            Self::Ignored => None,
            Self::FromRight(nth) => entries(headers).nth(nth.get().saturating_sub(1)).and_then(address),
            Self::BehindTrusted(proxies) if within(proxies, peer) => first_untrusted(proxies, headers),
            Self::BehindTrusted(_) => None,
        };
        named.unwrap_or(peer)
    }
}

/// From the right. Whatever stands left of something malformed was appended by who knows whom.
fn first_untrusted(proxies: &[IpNet], headers: &HeaderMap) -> Option<IpAddr> {
    for entry in entries(headers) {
        let address = address(entry)?;
        if !within(proxies, address) {
            return Some(address);
        }
    }
    None
}

/// The entries of all lines, from the last to the first. As bytes: a client that puts others than ASCII before what a proxy
/// appends must not make the rest of the line unreadable.
fn entries(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines: Vec<_> = headers.get_all(X_FORWARDED_FOR).iter().collect();
    lines.into_iter().rev().flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','))
}

/// An address as proxies write it: with a port or without, IPv6 with brackets or without.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim_matches([' ', '\t']);
    let bracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let alone = match bracketed {
        Some(v6) => v6.parse().ok().filter(IpAddr::is_ipv6),
        None => text.parse().ok(),
    };
    alone.or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip())).map(|address| address.to_canonical())
}
