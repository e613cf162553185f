//! Rules as a TOML file spells them. Whatever is wrong is told with its line.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use toml::Spanned;

use super::{Clients, Routes, Rule, Rules, RulesError};
use crate::policy::{OnOutage, Policy, PolicyError, RateText};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    policies: BTreeMap<Spanned<String>, PolicyEntry>,
    #[serde(default)]
    rules: Vec<Spanned<RuleEntry>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyEntry {
    capacity: Spanned<u64>,
    rate: Spanned<RateText>,
    cost: Option<Spanned<u64>>,
    bucket: Option<Spanned<String>>,
    on_outage: Option<OnOutageText>,
    #[serde(default)]
    shadow: bool,
    lease: Option<Spanned<u64>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    #[serde(default)]
    routes: Vec<Spanned<String>>,
    #[serde(default)]
    methods: Vec<Spanned<String>>,
    #[serde(default)]
    plans: Vec<Box<str>>,
    #[serde(default)]
    clients: Vec<Spanned<String>>,
    policies: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    skip: bool,
}

#[derive(serde::Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum OnOutageText {
    Allow,
    Deny,
    Local,
}

impl From<OnOutageText> for OnOutage {
    fn from(text: OnOutageText) -> Self {
        match text {
            OnOutageText::Allow => Self::Allow,
            OnOutageText::Deny => Self::Deny,
            OnOutageText::Local => Self::Local,
        }
    }
}

/// A fault at a byte of the file.
struct Fault {
    at: usize,
    message: String,
}

impl Fault {
    fn at<T>(place: &Spanned<T>, message: impl Into<String>) -> Self {
        Self { at: place.span().start, message: message.into() }
    }
}

/// Reads rules.
pub(super) fn parse(text: &str) -> Result<Rules, RulesError> {
    let file = toml::from_str::<File>(text).map_err(|error| {
        let at = error.span().map(|span| span.start);
        RulesError { line: at.map(|at| line(text, at)), message: error.message().to_owned() }
    })?;
    assembled(file).map_err(|fault| RulesError { line: Some(line(text, fault.at)), message: fault.message })
}

/// The line of the byte `at`, counted from 1.
fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count().saturating_add(1)
}

fn assembled(file: File) -> Result<Rules, Fault> {
    let mut rules = Rules::default();
    for (name, entry) in &file.policies {
        let policy = Arc::new(policy(name, entry)?);
        rules.know(&policy).map_err(|error| Fault::at(name, error.message))?;
    }
    for entry in &file.rules {
        let rule = rule(entry, &rules)?;
        rules.add(rule).map_err(|error| Fault::at(entry, error.message))?;
    }
    Ok(rules)
}

fn policy(name: &Spanned<String>, entry: &PolicyEntry) -> Result<Policy, Fault> {
    // Which field is at fault shows in the error, so one place finds the line for all.
    let fault = |error: PolicyError| {
        let at = match error {
            PolicyError::Name => name.span().start,
            PolicyError::Capacity => entry.capacity.span().start,
            PolicyError::Rate => entry.rate.span().start,
            PolicyError::Cost => entry.cost.as_ref().map_or_else(|| name.span().start, |cost| cost.span().start),
            PolicyError::Lease => entry.lease.as_ref().map_or_else(|| name.span().start, |lease| lease.span().start),
        };
        Fault { at, message: format!("policy \"{}\": {error}", name.as_ref()) }
    };
    let mut policy =
        Policy::new(name.as_ref(), *entry.capacity.as_ref(), entry.rate.as_ref().as_str()).map_err(fault)?;
    if let Some(bucket) = &entry.bucket {
        policy = policy.sharing(bucket.as_ref()).map_err(|error| Fault::at(bucket, format!("bucket: {error}")))?;
    }
    if let Some(cost) = &entry.cost {
        policy = policy.costing(*cost.as_ref()).map_err(fault)?;
    }
    if let Some(lease) = &entry.lease {
        policy = policy.leasing(*lease.as_ref()).map_err(fault)?;
    }
    let on_outage = entry.on_outage.map(OnOutage::from).unwrap_or_default();
    Ok(Policy { on_outage, shadow: entry.shadow, ..policy })
}

fn rule(place: &Spanned<RuleEntry>, known: &Rules) -> Result<Rule, Fault> {
    let entry = place.as_ref();
    let policies = match (&entry.policies, entry.skip) {
        (None, true) => Vec::new(),
        (Some(names), false) if !names.is_empty() => {
            names.iter().map(|name| named(name, known)).collect::<Result<_, _>>()?
        }
        _ => return Err(Fault::at(place, "a rule needs either policies = [...] or skip = true")),
    };
    let clients = entry.clients.iter().map(|text| {
        Clients::new(text.as_ref()).ok_or_else(|| {
            Fault::at(text, format!("\"{}\" is no client: user, tenant, ip, user:ID or ip:NETWORK", text.as_ref()))
        })
    });
    Ok(Rule {
        routes: entry.routes.iter().map(route).collect::<Result<_, _>>()?,
        methods: entry.methods.iter().map(method).collect::<Result<_, _>>()?,
        plans: entry.plans.clone(),
        clients: clients.collect::<Result<_, _>>()?,
        policies,
    })
}

fn named(name: &Spanned<String>, known: &Rules) -> Result<Arc<Policy>, Fault> {
    let policy = known.policy(name.as_ref());
    policy.cloned().ok_or_else(|| Fault::at(name, format!("there is no policy \"{}\"", name.as_ref())))
}

fn route(text: &Spanned<String>) -> Result<Routes, Fault> {
    let routes = Routes::new(text.as_ref());
    let written = text.as_ref().trim_end_matches("/*");
    if written.contains('*') && routes != Routes::Any {
        return Err(Fault::at(
            text,
            format!("\"{}\": a '*' can only stand alone or after the last '/'", text.as_ref()),
        ));
    }
    Ok(routes)
}

fn method(text: &Spanned<String>) -> Result<Method, Fault> {
    // A method is a token, and so "get" would be one, which no client sends.
    let known = Method::from_bytes(text.as_ref().as_bytes())
        .ok()
        .filter(|_| text.as_ref().bytes().all(|b| b.is_ascii_uppercase()));
    known.ok_or_else(|| Fault::at(text, format!("\"{}\" is no method, such as GET", text.as_ref())))
}
