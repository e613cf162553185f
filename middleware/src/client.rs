//! Who is being limited.

use std::fmt::{self, Write as _};
use std::net::Ipv4Addr;
use std::sync::Arc;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};

/// What would break a key, a hash tag or a line of a log.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'{').add(b'}').add(b'"').add(b'\\');

/// The longest network of IPv6 with its kind before it.
const IP_LEN: usize = 46;

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
/// It is written `kind:id`, where bytes of the id that are controls, blanks, `%`, `{`, `}`, `"`, `\` or not ASCII are `%XX`: so
/// it can stand between the braces of a hash tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client {
    kind: Kind,
    text: Arc<str>,
}

impl Client {
    /// The client known as `id`.
    #[must_use]
    pub fn new(kind: Kind, id: &str) -> Self {
        let text = format!("{}:{}", kind.as_str(), percent_encode(id.as_bytes(), ESCAPED));
        Self { kind, text: text.into() }
    }

    /// The client at an address or in a network, in which there is nothing to escape.
    pub(crate) fn at(address: impl fmt::Display) -> Self {
        let mut text = String::with_capacity(IP_LEN);
        let _ = write!(text, "{}:{address}", Kind::Ip.as_str());
        Self { kind: Kind::Ip, text: text.into() }
    }

    /// The same for an address of IPv4, which most requests come from: a fifth of the time.
    pub(crate) fn at_v4(address: Ipv4Addr) -> Self {
        let mut text = String::with_capacity(IP_LEN);
        text.push_str(Kind::Ip.as_str());
        let mut separator = ':';
        for octet in address.octets() {
            text.push(separator);
            text.push_str(itoa::Buffer::new().format(octet));
            separator = '.';
        }
        Self { kind: Kind::Ip, text: text.into() }
    }

    /// A principal.
    #[must_use]
    pub fn user(id: &str) -> Self {
        Self::new(Kind::User, id)
    }

    /// A client about whom nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self { kind: Kind::Unknown, text: Kind::Unknown.as_str().into() }
    }

    /// Reads a client as it is written. What is not escaped in it and should be, is escaped. `None` for an unknown kind and
    /// for an empty id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == Kind::Unknown.as_str() {
            return Some(Self::unknown());
        }
        let (kind, id) = text.split_once(':')?;
        let kind = [Kind::User, Kind::Tenant, Kind::Ip, Kind::Key].into_iter().find(|known| known.as_str() == kind)?;
        let id = percent_decode_str(id).decode_utf8().ok().filter(|id| !id.is_empty())?;
        Some(Self::new(kind, &id))
    }

    /// What it was known by.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The client as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_so_that_no_id_can_leave_its_hash_tag() {
        for (client, text) in [
            (Client::user("42"), "user:42"),
            (Client::user("a}:x{b"), "user:a%7D:x%7Bb"),
            (Client::user("100%\r\n"), "user:100%25%0D%0A"),
            (Client::user("zoë"), "user:zo%C3%AB"),
            (Client::new(Kind::Ip, "2001:db8::/64"), "ip:2001:db8::/64"),
            (Client::unknown(), "unknown"),
        ] {
            assert_eq!(client.as_str(), text);
            assert_eq!(Client::parse(text), Some(client));
        }
    }

    #[test]
    fn an_id_that_looks_like_another_kind_is_not_it() {
        assert_ne!(Client::user("ip:203.0.113.7"), Client::new(Kind::Ip, "203.0.113.7"));
        assert_eq!(Client::parse("user:ip:203.0.113.7"), Some(Client::user("ip:203.0.113.7")));
    }

    #[test]
    fn what_is_no_client_is_not_read() {
        for text in ["", "42", "robot:1", "user:", "user:%FF"] {
            assert_eq!(Client::parse(text), None, "{text}");
        }
    }
}
