//! Which policies a request falls under.
//!
//! Rules are asked in their order, and the first that fits decides: by class of route, method, plan and client. It names
//! the policies that are taken together, or says that there are none. A request that no rule fits is let through and counted.

mod file;
mod live;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::Method;
use ipnet::IpNet;

pub use live::LiveRules;

use crate::client::{Client, Kind};
use crate::policy::{Policy, PolicyName};

/// The most policies that a request may fall under at once. Each is a bucket that every such request takes from.
pub const MAX_POLICIES: usize = 16;

/// Why rules cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesError {
    /// The line of the file, counted from 1, where there is one.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl RulesError {
    fn new(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into() }
    }
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for RulesError {}

/// What is known of a request when its policies are chosen.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Its class of route: what the router has matched (`/users/{id}`), else its path.
    pub route: &'a str,
    /// Its method.
    pub method: &'a Method,
    /// The plan that the client is on, if the application says.
    pub plan: Option<&'a str>,
    /// Who has sent it.
    pub client: &'a Client,
}

/// Classes of routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Routes {
    /// Every route.
    Any,
    /// This one.
    One(Box<str>),
    /// This one and everything below it.
    Under(Box<str>),
}

impl Routes {
    /// Reads `*`, `/path` or `/path/*`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        match text.strip_suffix("/*") {
            _ if text == "*" => Self::Any,
            Some(root) => Self::Under(root.into()),
            None => Self::One(text.into()),
        }
    }

    fn fit(&self, route: &str) -> bool {
        match self {
            Self::Any => true,
            Self::One(one) => **one == *route,
            Self::Under(root) => {
                route.strip_prefix(&**root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
        }
    }
}

/// Clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clients {
    /// All of a kind.
    Kind(Kind),
    /// This one.
    One(Client),
    /// All who lie in this network as a whole: a client that is an IPv6 /64 is not in a narrower one.
    Network(IpNet),
}

impl Clients {
    /// Reads `user`, `tenant`, `ip`, `key`, `unknown`, `user:42`, `ip:10.0.0.0/8`.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let kinds = [Kind::User, Kind::Tenant, Kind::Ip, Kind::Key, Kind::Unknown];
        if let Some(kind) = kinds.into_iter().find(|kind| kind.as_str() == text) {
            return Some(Self::Kind(kind));
        }
        match text.strip_prefix("ip:") {
            Some(address) => network(address).map(Self::Network),
            None => Client::parse(text).map(Self::One),
        }
    }

    fn fit(&self, client: &Client) -> bool {
        match self {
            Self::Kind(kind) => client.kind() == *kind,
            Self::One(one) => client == one,
            Self::Network(network) => address(client).is_some_and(|address| network.contains(&address)),
        }
    }
}

/// Reads a network, or an address, which is the network of it alone.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// The network that a client known by its address is.
fn address(client: &Client) -> Option<IpNet> {
    client.in_key().strip_prefix("ip:").and_then(network)
}

/// Some requests, and the policies that they fall under.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    routes: Vec<Routes>,
    methods: Vec<Method>,
    plans: Vec<Box<str>>,
    clients: Vec<Clients>,
    policies: Vec<Arc<Policy>>,
}

impl Rule {
    /// The policies that they fall under.
    #[must_use]
    pub fn policies(&self) -> &[Arc<Policy>] {
        &self.policies
    }

    /// Every request.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// The requests to `routes`, each written as [`Routes::new`] reads it.
    #[must_use]
    pub fn on<const N: usize>(routes: [&str; N]) -> Self {
        Self { routes: routes.into_iter().map(Routes::new).collect(), ..Self::default() }
    }

    /// Of these, those with one of `methods`. `GET` stands for `HEAD`, too: services answer it in the same way.
    #[must_use]
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        Self { methods: methods.into_iter().collect(), ..self }
    }

    /// Of these, those of clients on one of `plans`.
    #[must_use]
    pub fn plans<const N: usize>(self, plans: [&str; N]) -> Self {
        Self { plans: plans.into_iter().map(Box::from).collect(), ..self }
    }

    /// Of these, those of `clients`.
    #[must_use]
    pub fn clients(self, clients: impl IntoIterator<Item = Clients>) -> Self {
        Self { clients: clients.into_iter().collect(), ..self }
    }

    /// They fall under `policies`, all of them or none. Without one they are not limited at all.
    #[must_use]
    pub fn apply<P: Into<Arc<Policy>>>(self, policies: impl IntoIterator<Item = P>) -> Self {
        Self { policies: policies.into_iter().map(Into::into).collect(), ..self }
    }

    fn fits(&self, facts: &Facts<'_>) -> bool {
        fits(&self.routes, |routes| routes.fit(facts.route))
            && fits(&self.methods, |method| same(method, facts.method))
            && fits(&self.plans, |plan| facts.plan == Some(plan))
            && fits(&self.clients, |clients| clients.fit(facts.client))
    }

    /// Errors: more than [`MAX_POLICIES`], or two on one bucket, which would charge it twice.
    fn check(&self) -> Result<(), RulesError> {
        if self.policies.len() > MAX_POLICIES {
            return Err(RulesError::new(format!("a rule can have at most {MAX_POLICIES} policies")));
        }
        let mut buckets: Vec<_> = self.policies.iter().map(|policy| &policy.bucket).collect();
        buckets.sort();
        match buckets.windows(2).find_map(|pair| pair.first().filter(|first| pair.last() == Some(first))) {
            Some(twice) => Err(RulesError::new(format!("two policies of one rule take from the bucket \"{twice}\""))),
            None => Ok(()),
        }
    }
}

/// Whether one of `wanted` fits; nothing wanted, everything fits.
fn fits<T>(wanted: &[T], one: impl FnMut(&T) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(one)
}

/// Whether a rule for `wanted` is one for `method`. Routers have `HEAD` answered by what answers `GET`, so that a limit on `GET` alone
/// would be none.
fn same(wanted: &Method, method: &Method) -> bool {
    wanted == method || (wanted == Method::GET && method == Method::HEAD)
}

/// What the rules say of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen<'a> {
    /// It falls under these.
    Policies(&'a [Arc<Policy>]),
    /// It is not to be limited.
    Skip,
    /// There is no rule for it.
    Nothing,
}

/// Rules in their order, and the policies they name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    policies: Vec<Arc<Policy>>,
}

impl Rules {
    /// These rules, in this order.
    ///
    /// Errors: a rule with too many policies or with two on one bucket, and two policies of one name.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Result<Self, RulesError> {
        let mut known = Self::default();
        for rule in rules {
            known.add(rule)?;
        }
        Ok(known)
    }

    /// Reads rules from TOML (see the guide for the form).
    ///
    /// Errors: whatever is wrong first, with its line.
    ///
    /// ```
    /// let rules = rl_tower::Rules::parse(r#"
    ///     [policies.login]
    ///     capacity = 10
    ///     rate = "10/h"
    ///     [[rules]]
    ///     routes = ["/login"]
    ///     policies = ["login"]
    /// "#)?;
    /// assert_eq!(rules.policies().len(), 1);
    /// let wrong = rl_tower::Rules::parse("[policies.login]\ncapacity = -1\nrate = 1").unwrap_err();
    /// assert_eq!(wrong.line, Some(2));
    /// # Ok::<(), rl_tower::RulesError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        file::parse(text)
    }

    /// What they say of a request.
    #[must_use]
    pub fn choose(&self, facts: &Facts<'_>) -> Chosen<'_> {
        match self.rules.iter().find(|rule| rule.fits(facts)) {
            Some(rule) if rule.policies.is_empty() => Chosen::Skip,
            Some(rule) => Chosen::Policies(&rule.policies),
            None => Chosen::Nothing,
        }
    }

    /// Every policy there is, in the order in which it was first named.
    #[must_use]
    pub fn policies(&self) -> &[Arc<Policy>] {
        &self.policies
    }

    /// The policy of that name.
    #[must_use]
    pub fn policy(&self, name: &str) -> Option<&Arc<Policy>> {
        self.policies.iter().find(|policy| policy.name.as_str() == name)
    }

    /// The same with a policy that no rule names: for those who ask for it by name.
    ///
    /// Errors: there is another one of that name.
    pub fn with_policy(mut self, policy: Policy) -> Result<Self, RulesError> {
        self.know(&Arc::new(policy))?;
        Ok(self)
    }

    /// The rules, in their order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    fn add(&mut self, rule: Rule) -> Result<(), RulesError> {
        rule.check()?;
        for policy in &rule.policies {
            self.know(policy)?;
        }
        self.rules.push(rule);
        Ok(())
    }

    fn know(&mut self, policy: &Arc<Policy>) -> Result<(), RulesError> {
        match self.policy(policy.name.as_str()) {
            Some(known) if known == policy => Ok(()),
            Some(_) => Err(RulesError::new(format!("there are two policies with the name \"{}\"", policy.name))),
            None => {
                self.policies.push(policy.clone());
                Ok(())
            }
        }
    }
}

/// As a person reads it: `POST /login, plan free: global, login`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.policies.iter().map(|policy| &policy.name);
        write!(f, "{} {}", listed(&self.methods, "any"), listed(&self.routes, "*"))?;
        if !self.plans.is_empty() {
            write!(f, ", plan {}", listed(&self.plans, ""))?;
        }
        if !self.clients.is_empty() {
            write!(f, ", client {}", listed(&self.clients, ""))?;
        }
        write!(f, ": {}", listed::<&PolicyName>(&names.collect::<Vec<_>>(), "no limit"))
    }
}

fn listed<T: fmt::Display>(items: &[T], none: &str) -> String {
    match items {
        [] => none.to_owned(),
        _ => items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    }
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::One(one) => f.write_str(one),
            Self::Under(root) => write!(f, "{root}/*"),
        }
    }
}

impl fmt::Display for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => f.write_str(kind.as_str()),
            Self::One(client) => client.fmt(f),
            Self::Network(network) => write!(f, "ip:{network}"),
        }
    }
}

#[cfg(test)]
mod tests;
