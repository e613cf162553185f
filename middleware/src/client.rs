//! Who is being limited.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::IpNet;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};

/// What would break a key or its hash tag, or could not be read in a list of keys.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'{').add(b'}').add(b'"').add(b'\\');

/// The longest network of IPv6 with its kind before it.
const IP_LEN: usize = 46;

/// The longest id that [`Client::parse`] reads, in bytes: a client stays in memory for a while.
pub const MAX_ID: usize = 1024;

/// The bits of an IPv6 address by which clients are told apart: those that one customer has.
pub const IPV6_PREFIX: u8 = 64;

/// What a client was known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An authenticated principal: a user, a service, an API key.
    User,
    /// The tenant that the caller belongs to.
    Tenant,
    /// An address: of the peer, or of whom a trusted proxy has named.
    Ip,
    /// A key that the application has chosen, for what is no person: a job, a webhook, a card number's hash.
    Key,
    /// Nothing at all: the peer's address is not known. All such clients share one bucket.
    Unknown,
}

impl Kind {
    /// The kind as it stands in keys and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Tenant => "tenant",
            Self::Ip => "ip",
            Self::Key => "key",
            Self::Unknown => "unknown",
        }
    }
}

/// A client. Two with the same kind and id share their buckets; two of different kinds never do.
///
/// It is written `kind:id`. In keys, bytes of the id that are controls, blanks, `%`, `{`, `}`, `"`, `\` or not ASCII are `%XX`, so
/// that it can stand between the braces of a hash tag; nowhere else is anything in it escaped, or taken for an escape.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client {
    kind: Kind,
    in_key: Arc<str>,
}

impl Client {
    /// The client known as `id`.
    #[must_use]
    pub fn new(kind: Kind, id: &str) -> Self {
        let in_key = format!("{}:{}", kind.as_str(), percent_encode(id.as_bytes(), ESCAPED));
        Self { kind, in_key: in_key.into() }
    }

    /// The client at an address. IPv6 by its first `ipv6_prefix` bits, at most 128; an IPv4 address in IPv6 form is the IPv4
    /// address.
    #[must_use]
    pub fn at(address: IpAddr, ipv6_prefix: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::at_v4(v4),
            IpAddr::V6(v6) => Self::in_network(IpNet::new(v6.into(), ipv6_prefix).unwrap_or(IpAddr::V6(v6).into())),
        }
    }

    /// The clients of a network, as one.
    fn in_network(network: IpNet) -> Self {
        if let IpNet::V4(v4) = network
            && v4.prefix_len() == v4.max_prefix_len()
        {
            return Self::at_v4(v4.addr());
        }
        let mut text = String::with_capacity(IP_LEN);
        let _ = write!(text, "{}:{}", Kind::Ip.as_str(), network.trunc());
        Self { kind: Kind::Ip, in_key: text.into() }
    }

    /// An address of IPv4, which most requests come from, in a fifth of the time.
    fn at_v4(address: Ipv4Addr) -> Self {
        let mut text = String::with_capacity(IP_LEN);
        text.push_str(Kind::Ip.as_str());
        let mut separator = ':';
        for octet in address.octets() {
            text.push(separator);
            text.push_str(itoa::Buffer::new().format(octet));
            separator = '.';
        }
        Self { kind: Kind::Ip, in_key: text.into() }
    }

    /// A principal.
    #[must_use]
    pub fn user(id: &str) -> Self {
        Self::new(Kind::User, id)
    }

    /// A client about whom nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self { kind: Kind::Unknown, in_key: Kind::Unknown.as_str().into() }
    }

    /// Reads a client as it is written: `user:ID`, `tenant:ID`, `key:KEY`, `ip:ADDRESS`, `ip:NETWORK`, `unknown`. An IPv6 address is its
    /// network of [`IPV6_PREFIX`] bits; for others, say `ip:2001:db8::1/56`. `None` for what is no address or network, for an
    /// unknown kind, and for an id that is empty or longer than [`MAX_ID`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == Kind::Unknown.as_str() {
            return Some(Self::unknown());
        }
        let (kind, id) = Self::parted(text)?;
        match kind {
            _ if !(1..=MAX_ID).contains(&id.len()) => None,
            Kind::Ip => match id.parse() {
                Ok(address) => Some(Self::at(address, IPV6_PREFIX)),
                Err(_) => id.parse().ok().map(Self::in_network),
            },
            _ => Some(Self::new(kind, id)),
        }
    }

    /// Reads a client as it stands in a key.
    pub(crate) fn from_key(in_key: &str) -> Option<Self> {
        if in_key == Kind::Unknown.as_str() {
            return Some(Self::unknown());
        }
        let (kind, id) = Self::parted(in_key)?;
        let id = percent_decode_str(id).decode_utf8().ok().filter(|id| !id.is_empty())?;
        Some(Self::new(kind, &id))
    }

    /// Kind and id of what is not unknown.
    fn parted(text: &str) -> Option<(Kind, &str)> {
        let (kind, id) = text.split_once(':')?;
        let kinds = [Kind::User, Kind::Tenant, Kind::Ip, Kind::Key];
        Some((kinds.into_iter().find(|known| known.as_str() == kind)?, id))
    }

    /// What it was known by.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The client as [`parse`](Self::parse) reads it.
    #[must_use]
    pub fn written(&self) -> Cow<'_, str> {
        // What was escaped was a text.
        percent_decode_str(&self.in_key).decode_utf8_lossy()
    }

    /// The client as it stands in keys.
    #[must_use]
    pub fn in_key(&self) -> &str {
        &self.in_key
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_can_leave_its_hash_tag() {
        for (id, in_key) in [
            ("42", "user:42"),
            ("a}:x{b", "user:a%7D:x%7Bb"),
            ("100%\r\n", "user:100%25%0D%0A"),
            ("alic%65", "user:alic%2565"),
            ("zoë", "user:zo%C3%AB"),
        ] {
            let client = Client::user(id);
            assert_eq!(client.in_key(), in_key);
            assert_eq!(Client::from_key(in_key).as_ref(), Some(&client));
            assert_eq!(client.to_string(), format!("user:{id}"));
            assert_eq!(Client::parse(&client.to_string()), Some(client));
        }
    }

    #[test]
    fn an_address_is_read_however_it_is_written() {
        for (text, in_key) in [
            ("ip:203.0.113.7", "ip:203.0.113.7"),
            ("ip:203.0.113.7/32", "ip:203.0.113.7"),
            ("ip:203.0.113.7/24", "ip:203.0.113.0/24"),
            ("ip:::ffff:203.0.113.7", "ip:203.0.113.7"),
            ("ip:2001:DB8:0:0::1", "ip:2001:db8::/64"),
            ("ip:2001:db8::/64", "ip:2001:db8::/64"),
            ("ip:2001:db8:1:2ff::1/56", "ip:2001:db8:1:200::/56"),
            ("ip:2001:db8::1/128", "ip:2001:db8::1/128"),
            ("unknown", "unknown"),
        ] {
            let client = Client::parse(text).expect(text);
            assert_eq!((client.in_key(), client.to_string().as_str()), (in_key, in_key));
            assert_eq!(Client::parse(in_key).as_ref(), Some(&client));
            assert_eq!(Client::from_key(in_key), Some(client));
        }
    }

    #[test]
    fn an_id_that_looks_like_another_kind_is_not_it() {
        assert_ne!(Client::user("ip:203.0.113.7"), Client::new(Kind::Ip, "203.0.113.7"));
        assert_eq!(Client::parse("user:ip:203.0.113.7"), Some(Client::user("ip:203.0.113.7")));
    }

    #[test]
    fn what_is_no_client_is_not_read() {
        for text in
            ["", "42", "robot:1", "user:", "ip:home", "ip:203.0.113.7:80", "ip:2001:db8::/129", "ip:[2001:db8::1]"]
        {
            assert_eq!(Client::parse(text), None, "{text}");
        }
        assert_eq!(Client::parse(&format!("user:{}", "x".repeat(MAX_ID + 1))), None);
        assert_eq!(Client::from_key("user:%FF"), None);
    }
}
