//! Every error text that a client can get, in one table.

use std::ffi::CStr;

use rl_core::codec::DecodeError;

/// Why a command was not carried out. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// Too few or too many arguments; the server has the text, with the command's name.
    WrongArity,
    /// The key holds another type.
    WrongType,
    /// A key would have to be created, and memory is used up.
    OutOfMemory,
    /// Not a capacity.
    Capacity,
    /// Not a rate.
    Rate,
    /// Not a cost.
    Cost,
    /// Not a number of tokens.
    Tokens,
    /// Not a number of keys to list.
    Count,
    /// A word that the command does not know.
    Syntax,
    /// Not a time to wait.
    MaxWait,
    /// Not a limit of so much in a window.
    Limit,
    /// Not a window.
    Window,
    /// Not a period of the calendar.
    Period,
    /// More charges than are to be remembered one by one.
    LimitForLog,
    /// A longer window than charges can be remembered for one by one.
    WindowForLog,
    /// Not redis-cell's maximum burst.
    MaxBurst,
    /// Not redis-cell's count per period.
    CountPerPeriod,
    /// Not redis-cell's period.
    PeriodSeconds,
    /// Not redis-cell's quantity.
    Quantity,
    /// Not the number of keys that are there, with a limit for each.
    KeyCount,
    /// A key is named twice.
    SameKey,
    /// Not a record.
    Payload(DecodeError),
    /// A fault of this module: a panic was caught, or the server refused what it never refuses.
    Internal,
}

impl Error {
    /// The reply, code first. [`Error::WrongArity`] is worded by the server.
    pub fn text(self) -> &'static CStr {
        match self {
            Self::WrongArity => c"ERR wrong number of arguments",
            Self::WrongType => c"WRONGTYPE Operation against a key holding the wrong kind of value",
            Self::OutOfMemory => c"OOM command not allowed when used memory > 'maxmemory'.",
            Self::Capacity => c"ERR capacity must be an integer from 0 to 9007199254740991 tokens",
            Self::Rate => {
                c"ERR rate must be a number of tokens from 0 to 9007199254740991, per second (5, 0.5) or per period (100/60, 100/m, 5/15m; units ms, s, m, h, d)"
            }
            Self::Cost => c"ERR cost must be an integer from 0 to 9007199254740991 tokens",
            Self::Tokens => c"ERR tokens must be an integer from 0 to 9007199254740991",
            Self::Count => c"ERR count must be an integer from 0 to 9007199254740991",
            Self::Syntax => c"ERR syntax error",
            Self::MaxWait => {
                c"ERR max_wait must be a number of seconds, or a number with a unit (ms, s, m, h, d), up to 9007199254740991 microseconds"
            }
            Self::Limit => c"ERR limit must be an integer from 0 to 9007199254740991 tokens",
            Self::Window => {
                c"ERR window must be a number of seconds, or a number with a unit (ms, s, m, h, d), from 1 to 9007199254740991 microseconds"
            }
            Self::Period => {
                c"ERR period must be a number of seconds, a number with a unit (ms, s, m, h, d), day, week, month or year, and may be followed by an offset from UTC (+hh:mm, -hh:mm)"
            }
            Self::LimitForLog => {
                c"ERR limit must be at most rl.window-limit tokens, as an exact window remembers each charge: use RL.COUNTER, which remembers two sums"
            }
            Self::WindowForLog => {
                c"ERR window must be at most 17592186044415 microseconds (203 days) to be exact: use RL.COUNTER for a longer one"
            }
            Self::MaxBurst => c"ERR max_burst must be an integer from 0 to 9007199254740990 tokens",
            Self::CountPerPeriod => c"ERR count must be an integer from 1 to 9007199254740991 tokens",
            Self::PeriodSeconds => c"ERR period must be an integer from 1 to 9007199254 seconds",
            Self::Quantity => c"ERR quantity must be an integer from 0 to 9007199254740991 tokens",
            Self::KeyCount => {
                c"ERR numkeys must be the number of keys, at least 1, followed by as many keys and a capacity, rate and cost for each"
            }
            Self::SameKey => c"ERR key must be given once: a bucket cannot be taken from twice in one call",
            Self::Payload(DecodeError::Truncated) => c"ERR payload must be a whole record of RL.RESTORE: it ends too early",
            Self::Payload(DecodeError::Version(_)) => {
                c"ERR payload must be of a version that this module knows: it was written by a newer one"
            }
            Self::Payload(DecodeError::Kind(_)) => c"ERR payload must be of a kind that this module knows",
            Self::Payload(DecodeError::NotCanonical) => c"ERR payload must be a record of RL.RESTORE: it is malformed",
            Self::Payload(DecodeError::Range) => c"ERR payload must hold numbers within their ranges",
            Self::Internal => c"ERR internal error in librl, please report it; nothing was charged",
        }
    }
}
