//! A policy: a limit with a name, and what becomes of it when Redis is gone.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use rl_core::{Limit, MAX_INTEGER, Rate, Tokens, Wait};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// The longest name of a policy, in bytes.
pub const MAX_NAME_LEN: usize = 64;

/// The name of a policy: 1 to [`MAX_NAME_LEN`] ASCII letters, digits, `-`, `_` and `.`. It stands in keys, in header fields
/// and in metrics, and none of them needs to escape it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyName(Arc<str>);

impl PolicyName {
    /// Errors: [`PolicyError::Name`] for anything but such a name.
    pub fn new(name: &str) -> Result<Self, PolicyError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > MAX_NAME_LEN || !name.bytes().all(plain) {
            return Err(PolicyError::Name);
        }
        Ok(Self(name.into()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same text, shared.
    pub(crate) fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a policy cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyError {
    /// The name is not one.
    Name,
    /// The capacity is out of range.
    Capacity,
    /// The rate is not written as one, or is out of range.
    Rate,
    /// The cost is out of range, or above the capacity, so that no request could ever pass.
    Cost,
    /// The lease is out of range, or above the capacity.
    Lease,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "name must be 1 to 64 ASCII letters, digits, '-', '_' or '.'",
            Self::Capacity => "capacity must be an integer from 0 to 9007199254740991 tokens",
            Self::Rate => {
                "rate must be tokens per second or per a period, like 5, 0.5, 100/m or 5/15m, with both parts below 2^53"
            }
            Self::Cost => "cost must be an integer from 0 to 9007199254740991 tokens, and at most the capacity",
            Self::Lease => "lease must be an integer from 1 to the capacity, in tokens",
        })
    }
}

impl std::error::Error for PolicyError {}

/// What becomes of a request when Redis does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnOutage {
    /// It is let through, without a limit: for what must stay up and can bear the load.
    #[default]
    Allow,
    /// It is refused with 503: for what must not be had without a limit, such as a login.
    Deny,
    /// A bucket of this instance decides, with capacity and rate divided by the expected number of instances.
    Local,
}

impl fmt::Display for OnOutage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Local => "local",
        })
    }
}

/// A named limit.
///
/// ```
/// use rl_tower::{OnOutage, Policy};
/// let login = Policy::new("login", 10, "10/h")?.on_outage(OnOutage::Deny);
/// assert_eq!(login.cost.get(), 1);
/// assert!(Policy::new("login", 10, "often").is_err());
/// # Ok::<(), rl_tower::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// What it is called.
    pub name: PolicyName,
    /// The bucket that it takes from: its name, unless several policies share one.
    pub bucket: PolicyName,
    /// Capacity and rate of a client's bucket.
    pub limit: Limit,
    /// What a request costs that does not say.
    pub cost: Tokens,
    /// What becomes of a request when Redis is gone.
    pub on_outage: OnOutage,
    /// A dry run: it is charged and counted, and never denies.
    pub shadow: bool,
    /// How many tokens this instance leases at once for a busy client; `None` asks Redis for every request.
    pub lease: Option<Tokens>,
}

impl Policy {
    /// A policy of `capacity` tokens that refill at `rate`, written as [`Rate::parse`] reads it. A request costs 1 token.
    ///
    /// Errors: what is wrong with name, capacity or rate.
    pub fn new(name: &str, capacity: u64, rate: &str) -> Result<Self, PolicyError> {
        Ok(Self::with(PolicyName::new(name)?, limit(capacity, rate)?))
    }

    /// A policy with that limit. A request costs 1 token.
    #[must_use]
    pub fn with(name: PolicyName, limit: Limit) -> Self {
        let (bucket, cost) = (name.clone(), Tokens::ONE);
        Self { name, bucket, limit, cost, on_outage: OnOutage::default(), shadow: false, lease: None }
    }

    /// The same with another cost of a request that does not say.
    ///
    /// Errors: [`PolicyError::Cost`] above the capacity, unless that is 0, which is there to deny everything.
    pub fn costing(self, cost: u64) -> Result<Self, PolicyError> {
        let cost = Tokens::new(cost).ok_or(PolicyError::Cost)?;
        if cost > self.limit.capacity() && self.limit.capacity() != Tokens::ZERO {
            return Err(PolicyError::Cost);
        }
        Ok(Self { cost, ..self })
    }

    /// The same on a bucket that other policies use, too: a client who moves from one plan to another keeps what it has
    /// used. A changed limit applies from the request that brings it, and the tokens held stay, at most its capacity.
    ///
    /// Errors: [`PolicyError::Name`].
    pub fn sharing(self, bucket: &str) -> Result<Self, PolicyError> {
        Ok(Self { bucket: PolicyName::new(bucket)?, ..self })
    }

    /// The same with another failure policy.
    #[must_use]
    pub fn on_outage(self, on_outage: OnOutage) -> Self {
        Self { on_outage, ..self }
    }

    /// The same as a dry run.
    #[must_use]
    pub fn shadow(self) -> Self {
        Self { shadow: true, ..self }
    }

    /// The same with `tokens` leased at once for clients that are busy on this instance.
    ///
    /// Errors: [`PolicyError::Lease`] for 0 and above the capacity.
    pub fn leasing(self, tokens: u64) -> Result<Self, PolicyError> {
        let lease = Tokens::new(tokens).filter(|lease| (Tokens::ONE..=self.limit.capacity()).contains(lease));
        Ok(Self { lease: Some(lease.ok_or(PolicyError::Lease)?), ..self })
    }
}

/// Reads a limit.
///
/// Errors: [`PolicyError::Capacity`], [`PolicyError::Rate`].
pub fn limit(capacity: u64, rate: &str) -> Result<Limit, PolicyError> {
    let capacity = Tokens::new(capacity).ok_or(PolicyError::Capacity)?;
    let rate = Rate::parse(rate.as_bytes()).map_err(|_| PolicyError::Rate)?;
    Ok(Limit::new(capacity, rate))
}

/// The part of `limit` that one of `instances` may give out on its own: capacity and rate divided by their number.
///
/// Rounding: the capacity down, but to no less than `cost`, or its requests could never pass; the rate not at all. A rate
/// so slow that its part cannot be written is 0.
#[must_use]
pub fn share(limit: &Limit, instances: NonZeroU32, cost: Tokens) -> Limit {
    let instances = u64::from(instances.get());
    let whole = limit.capacity();
    let part = whole.get().checked_div(instances).and_then(Tokens::new).unwrap_or(whole);
    let period = u128::from(limit.rate().period_us().get()).saturating_mul(instances.into());
    let rate = Rate::new(limit.rate().tokens().into(), period).unwrap_or(Rate::ZERO);
    Limit::new(part.max(cost.min(whole)), rate)
}

/// A rate as it is written in TOML and JSON: a text, or a bare number of tokens per second. Whether it is one, [`limit`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateText(String);

impl RateText {
    /// What was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for RateText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = RateText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rate, like 5, 0.5 or \"100/m\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RateText, E> {
                Ok(RateText(text.to_owned()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<RateText, E> {
                Ok(RateText(number.to_string()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<RateText, E> {
                Ok(RateText(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<RateText, E> {
                if number.is_finite() {
                    Ok(RateText(number.to_string()))
                } else {
                    Err(E::custom("rate must be finite"))
                }
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// The seconds in which an empty bucket of `limit` fills, which the draft calls its window. Rounds up, at least 1; `None`
/// if it never fills.
#[must_use]
pub fn window_s(limit: &Limit) -> Option<u64> {
    seconds(limit.rate().wait_for(limit.full())).map(|seconds| seconds.max(1))
}

/// A wait in whole seconds. Rounds up; `None` if waiting does not help. Held at 2^53-1, which no client will sit out.
#[must_use]
pub fn seconds(wait: Wait) -> Option<u64> {
    match wait {
        Wait::Micros(us) => Some(u64::try_from(us.div_ceil(1_000_000)).unwrap_or(MAX_INTEGER).min(MAX_INTEGER)),
        Wait::Never => None,
    }
}

/// What is left of a wait.
pub(crate) fn less(wait: Wait, since: Duration) -> Wait {
    match wait {
        Wait::Micros(us) => Wait::Micros(us.saturating_sub(since.as_micros())),
        Wait::Never => Wait::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_wrong_with_it() {
        for (made, wrong) in [
            (Policy::new("", 1, "1"), PolicyError::Name),
            (Policy::new("a b", 1, "1"), PolicyError::Name),
            (Policy::new("\"", 1, "1"), PolicyError::Name),
            (Policy::new(&"a".repeat(65), 1, "1"), PolicyError::Name),
            (Policy::new("a", 1 << 53, "1"), PolicyError::Capacity),
            (Policy::new("a", 1, "-1"), PolicyError::Rate),
            (Policy::new("a", 1, "1").and_then(|policy| policy.costing(2)), PolicyError::Cost),
            (Policy::new("a", 9, "1").and_then(|policy| policy.leasing(0)), PolicyError::Lease),
            (Policy::new("a", 9, "1").and_then(|policy| policy.leasing(10)), PolicyError::Lease),
        ] {
            assert_eq!(made, Err(wrong));
        }
    }

    #[test]
    fn a_capacity_of_nothing_may_be_meant() {
        assert!(Policy::new("closed", 0, "0").and_then(|policy| policy.costing(1)).is_ok());
    }

    #[test]
    fn a_share_is_a_part_of_both_and_never_less_than_one_request() {
        let instances = NonZeroU32::new(4).unwrap();
        for (capacity, rate, cost, part, part_rate) in [
            (100, "10", 1, 25, "2.5"),
            (10, "10/h", 1, 2, "10/4h"),
            (3, "1", 1, 1, "0.25"),
            (10, "1", 5, 5, "0.25"),
            (0, "1", 1, 0, "0.25"),
            (10, "0", 1, 2, "0"),
        ] {
            let share = share(&limit(capacity, rate).unwrap(), instances, Tokens::new(cost).unwrap());
            assert_eq!(share, limit(part, part_rate).unwrap(), "{capacity} {rate}");
        }
    }

    #[test]
    fn a_window_is_the_time_to_fill_in_whole_seconds() {
        for (capacity, rate, window) in [(100, "10", Some(10)), (1, "3", Some(1)), (10, "3", Some(4)), (5, "0", None)] {
            assert_eq!(window_s(&limit(capacity, rate).unwrap()), window);
        }
    }
}
