//! Carrying out what was decided about a key: value, expiry, replication, notice to those who watch the key.

use std::ffi::c_void;
use std::ptr;

use rl_core::classes::class_of;
use rl_core::codec::RecordedExpiry;
use rl_core::expiry::Expiry;
use rl_core::{Answer, Decision, Tokens, UnixMicros};

use crate::error::Error;
use crate::server::arguments::KeyName;
use crate::server::context::Context;
use crate::server::key::Key;
use crate::types::expiries;
use crate::types::usage::{Kept, StoredUsage};
use crate::types::value::Value;
use crate::{classes, config, offenders};

/// Takes `cost` from a limit of so much in a window, and replies.
pub fn take_usage<'a, U: Kept>(
    context: &'a Context<'a>,
    name: KeyName<'a>,
    asked: &U::Limit,
    cost: Tokens,
) -> Result<(), Error> {
    let now = context.now();
    let mut key = Key::open_for_change(context, name);
    let decide = |stored: Option<&StoredUsage<U>>| U::take(stored.map(StoredUsage::usage), asked, now, cost);
    let decision = apply(&mut key, now, decide)?;
    context.reply_decision(&decision, U::capacity(asked));
    Ok(())
}

/// Has `decide` look at what `key` holds, and writes what it wants changed at `now`, here and on the replicas.
///
/// Errors: [`Error::WrongType`]; [`Error::OutOfMemory`] for a key that would have to be created when memory is used up.
/// A key that exists goes on being limited: it is changed in place, and what a log takes for one more charge is bounded by
/// its limit.
pub fn apply<T: Value>(
    key: &mut Key<'_>,
    now: UnixMicros,
    decide: impl FnOnce(Option<&T>) -> Answer<T::Change>,
) -> Result<Decision, Error> {
    let stored = key.value::<T>()?;
    let is_missing = stored.is_none();
    let answer = decide(stored.map(|stored| &*stored));
    if is_missing && answer.change.is_some() && key.context().is_out_of_memory() {
        return Err(Error::OutOfMemory);
    }
    carry_out::<T>(key, now, &answer)?;
    Ok(answer.decision)
}

/// Writes what `answer` wants changed in `key`.
pub fn carry_out<T: Value>(key: &mut Key<'_>, now: UnixMicros, answer: &Answer<T::Change>) -> Result<(), Error> {
    let is_allowed = answer.decision.is_allowed();
    key.context().count(is_allowed);
    let class = || class_of(key.name().bytes(), config::class_separator(), config::class_depth());
    classes::count(class, is_allowed);
    write::<T>(key, now, answer)?;
    if !is_allowed {
        offenders::note(key.name().bytes(), now);
        // At the end: whoever is told may look at the key.
        key.context().notify_denied(key.name());
    }
    Ok(())
}

/// The same without the count, for what is not a decision.
pub fn write<T: Value>(key: &mut Key<'_>, now: UnixMicros, answer: &Answer<T::Change>) -> Result<(), Error> {
    let Some(stored) = key.value::<T>()? else {
        return answer.change.as_ref().map_or(Ok(()), |change| create::<T>(key, change));
    };
    if !answer.decision.is_allowed() {
        stored.denials_mut().note(now);
    }
    let Some(change) = &answer.change else { return Ok(()) };
    let value: *const c_void = ptr::from_ref(stored).cast();
    let before = stored.last_change();
    let Some(needed) = stored.change(change) else {
        key.delete();
        return Ok(());
    };
    let changed = stored.last_change();
    let recorded = match expiries::recall(value, before, now) {
        // As remembered, but perhaps no longer so: replicas keep what they have, as this node does.
        Some(remembered) if needed.accepts(remembered) => {
            expiries::note(value, changed, remembered);
            RecordedExpiry::Unstated
        }
        _ => expire(key, value, changed, needed),
    };
    announce::<T>(key, change, recorded);
    Ok(())
}

fn create<T: Value>(key: &mut Key<'_>, change: &T::Change) -> Result<(), Error> {
    let value = T::begin(change);
    let (changed, needed) = (value.last_change(), value.first_expiry());
    let place = key.create(value)?.cast();
    let recorded = expire(key, place, changed, needed);
    announce::<T>(key, change, recorded);
    Ok(())
}

/// Sees to it that the key of `value` expires as `needed`; says when it does.
fn expire(key: &mut Key<'_>, value: *const c_void, changed: UnixMicros, needed: Expiry) -> RecordedExpiry {
    let current = key.expiry();
    let expiry = needed.applied_to(current);
    if expiry != current {
        key.set_expiry(expiry);
    }
    expiries::note(value, changed, expiry);
    expiry.map_or(RecordedExpiry::None, RecordedExpiry::At)
}

/// Tells replicas and the AOF what has changed in `key`, and those who watch it that it has.
fn announce<T: Value>(key: &Key<'_>, change: &T::Change, expiry: RecordedExpiry) {
    let (context, name) = (key.context(), key.name());
    context.replicate_state(name, T::record(change, expiry).as_bytes());
    context.signal_modified(name);
    context.notify_changed(name);
}
