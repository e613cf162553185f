//! Who sends a request.
//!
//! First the authenticated principal, then the tenant, then the address. What the client itself can write into a request
//! never decides: a header counts only where the operator has said that a gateway sets it, and of `X-Forwarded-For` only
//! what the operator's own proxies have appended.

mod forwarded;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::HeaderName;
use http::{Extensions, HeaderMap};
use ipnet::IpNet;

pub use forwarded::Forwarded;

use crate::client::{Client, IPV6_PREFIX, Kind};

/// The longest principal or tenant that a header can name, in bytes.
pub const MAX_HEADER_ID: usize = 256;

/// The authenticated principal. Whatever authenticates requests puts it into their extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal(pub Arc<str>);

/// The tenant that the caller belongs to. Whatever authenticates requests puts it into their extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant(pub Arc<str>);

/// The plan that the client is on. Whatever authenticates requests puts it into their extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan(pub Arc<str>);

/// The address that the connection comes from. Servers put it into the extensions of requests; with the feature `axum`,
/// `ConnectInfo<SocketAddr>` counts, too, with the feature `tonic`, what tonic's own server puts there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// A header that a gateway sets, and replaces where the client has sent one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayHeader {
    name: HeaderName,
    gateways: Option<Vec<IpNet>>,
}

impl GatewayHeader {
    /// The header `name`, from peers in the networks `gateways` only.
    #[must_use]
    pub fn from_gateways(name: HeaderName, gateways: impl IntoIterator<Item = IpNet>) -> Self {
        Self { name, gateways: Some(gateways.into_iter().collect()) }
    }

    /// The header `name`, whoever connects. Right only where nobody but the gateway can reach the listener: anybody who
    /// can is whoever he says.
    #[must_use]
    pub fn from_any_peer(name: HeaderName) -> Self {
        Self { name, gateways: None }
    }

    /// What it says, if the peer is a gateway: exactly one line of 1 to [`MAX_HEADER_ID`] bytes, without blanks around it.
    fn read<'a>(&self, headers: &'a HeaderMap, peer: Option<IpAddr>) -> Option<&'a str> {
        if let Some(gateways) = &self.gateways
            && !peer.is_some_and(|peer| within(gateways, peer))
        {
            return None;
        }
        let mut lines = headers.get_all(&self.name).iter();
        let (line, None) = (lines.next()?, lines.next()) else { return None };
        let id = std::str::from_utf8(line.as_bytes()).ok()?.trim();
        (1..=MAX_HEADER_ID).contains(&id.len()).then_some(id)
    }
}

/// How clients are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    principal: Option<GatewayHeader>,
    tenant: Option<GatewayHeader>,
    plan: Option<GatewayHeader>,
    forwarded: Forwarded,
    ipv6_prefix: u8,
}

impl Default for Identity {
    /// By what the application has put into the extensions, else by the peer's address; IPv6 by /64, which is what one
    /// customer has.
    fn default() -> Self {
        Self { principal: None, tenant: None, plan: None, forwarded: Forwarded::Ignored, ipv6_prefix: IPV6_PREFIX }
    }
}

impl Identity {
    /// The same, and a gateway names the principal.
    #[must_use]
    pub fn principal_header(self, header: GatewayHeader) -> Self {
        Self { principal: Some(header), ..self }
    }

    /// The same, and a gateway names the tenant.
    #[must_use]
    pub fn tenant_header(self, header: GatewayHeader) -> Self {
        Self { tenant: Some(header), ..self }
    }

    /// The same, and a gateway names the plan.
    #[must_use]
    pub fn plan_header(self, header: GatewayHeader) -> Self {
        Self { plan: Some(header), ..self }
    }

    /// The same behind proxies.
    #[must_use]
    pub fn forwarded(self, forwarded: Forwarded) -> Self {
        Self { forwarded, ..self }
    }

    /// The same with IPv6 clients told apart by their first `bits` bits, at most 128.
    #[must_use]
    pub fn ipv6_prefix(self, bits: u8) -> Self {
        Self { ipv6_prefix: bits.min(128), ..self }
    }

    /// Who has sent a request with these headers and extensions.
    #[must_use]
    pub fn identify(&self, headers: &HeaderMap, extensions: &Extensions) -> Client {
        let peer = peer(extensions);
        let principal = extensions.get::<Principal>().map(|principal| &*principal.0);
        if let Some(id) = principal.or_else(|| named(self.principal.as_ref(), headers, peer)) {
            return Client::new(Kind::User, id);
        }
        let tenant = extensions.get::<Tenant>().map(|tenant| &*tenant.0);
        if let Some(id) = tenant.or_else(|| named(self.tenant.as_ref(), headers, peer)) {
            return Client::new(Kind::Tenant, id);
        }
        self.at(peer.map(|peer| self.forwarded.origin(headers, peer)))
    }

    /// The plan of whoever has sent a request, if anybody says.
    #[must_use]
    pub fn plan<'a>(&self, headers: &'a HeaderMap, extensions: &'a Extensions) -> Option<&'a str> {
        let plan = extensions.get::<Plan>().map(|plan| &*plan.0);
        plan.or_else(|| named(self.plan.as_ref(), headers, peer(extensions)))
    }

    /// The client at an address.
    #[must_use]
    pub fn at(&self, address: Option<IpAddr>) -> Client {
        address.map_or_else(Client::unknown, |address| Client::at(address, self.ipv6_prefix))
    }
}

fn named<'a>(header: Option<&GatewayHeader>, headers: &'a HeaderMap, peer: Option<IpAddr>) -> Option<&'a str> {
    header.and_then(|header| header.read(headers, peer))
}

/// Where the connection comes from. An IPv4 address in IPv6 form, as a listener for both sees it, is the IPv4 address.
fn peer(extensions: &Extensions) -> Option<IpAddr> {
    let known = extensions.get::<Peer>().map(|peer| peer.0);
    #[cfg(feature = "axum")]
    let known = known.or_else(|| extensions.get::<axum::extract::ConnectInfo<SocketAddr>>().map(|info| info.0.ip()));
    #[cfg(feature = "tonic")]
    let known = known.or_else(|| {
        extensions
            .get::<tonic::transport::server::TcpConnectInfo>()
            .and_then(|info| info.remote_addr())
            .map(|at| at.ip())
    });
    known.or_else(|| extensions.get::<SocketAddr>().map(SocketAddr::ip)).map(|peer| peer.to_canonical())
}

fn within(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

#[cfg(test)]
mod tests;
