//! All other arguments that callers write, each read from the same bytes: amounts, durations, periods, and keys that may
//! have a class.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rl_core::classes::class_of;
use rl_core::period::Span;
use rl_core::{MAX_INTEGER, Period, Tokens, UnixMicros, duration};

const DAY_US: u64 = 86_400_000_000;
const MINUTE_US: i128 = 60_000_000;

fuzz_target!(|text: &[u8]| {
    amount(text);
    a_duration(text);
    if let Ok(period) = Period::parse(text) {
        assert_eq!(Period::parse(period.to_string().as_bytes()), Ok(period), "{period}");
        // Times of all sizes, and some that the bytes choose.
        let chosen = text.iter().fold(0_u64, |number, byte| number.wrapping_mul(257) ^ u64::from(*byte));
        for now in [0, 1, 1_750_000_000_000_000, chosen >> 11, chosen >> 20, MAX_INTEGER - 1, MAX_INTEGER] {
            boundary(period, UnixMicros::saturating(now));
        }
    }
    if let [separator, depth, key @ ..] = text {
        class(key, *separator, usize::from(*depth));
    }
});

fn amount(text: &[u8]) {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit) && (text[0] != b'0' || text.len() == 1);
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
    let expected = number.filter(|number| digits && *number <= MAX_INTEGER);
    assert_eq!(Tokens::parse(text).ok().map(Tokens::get), expected);
}

fn a_duration(text: &[u8]) {
    let Ok(micros) = duration::parse(text) else { return };
    assert!(micros.get() <= MAX_INTEGER);
    let written = micros.to_string();
    assert_eq!(duration::parse(written.as_bytes()), Ok(micros), "{written}");
    let text = std::str::from_utf8(text).expect("a duration is ASCII");
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_us = match &text[number.len()..] {
        "ms" => 1e3,
        "" | "s" => 1e6,
        "m" => 60e6,
        "h" => 3_600e6,
        "d" => 86_400e6,
        unit => panic!("the unit {unit}"),
    };
    let meant = number.parse::<f64>().expect("a number") * unit_us;
    let off_by = meant - micros.get() as f64;
    assert!(off_by > -1e-15 * meant - 1e-6 && off_by < 1.0 + 1e-15 * meant, "{micros:?} for {meant}");
}

/// The end of a period comes after every moment of it, is the same for all of them, and as far away as a period is long.
fn boundary(period: Period, now: UnixMicros) {
    let end = period.end_after(now);
    assert!(end > now.get(), "{period} at {now:?}");
    if end <= MAX_INTEGER {
        assert_eq!(period.end_after(UnixMicros::saturating(end - 1)), end, "{period} at {now:?}");
        let next = period.end_after(UnixMicros::saturating(end));
        let days = match period.span() {
            Span::Fixed(span_us) => {
                assert_eq!(next - end, span_us.get());
                assert_eq!(local(period, end) % i128::from(span_us.get()), 0);
                return;
            }
            Span::Week => 7..=7,
            Span::Month => 28..=31,
            Span::Year => 365..=366,
        };
        assert!(days.contains(&((next - end) / DAY_US)), "{period}: from {end} to {next}");
        assert_eq!(local(period, end) % i128::from(DAY_US), 0, "{period}: midnight");
    }
}

fn local(period: Period, at: u64) -> i128 {
    i128::from(at) + i128::from(period.offset_minutes()) * MINUTE_US
}

/// As the definition has it: the parts before the last, and of these the first so many.
fn class(key: &[u8], separator: u8, depth: usize) {
    let parts: Vec<_> = key.split(|byte| *byte == separator).collect();
    let before_last = parts.len() - 1;
    let count = if depth == 0 { before_last } else { before_last.min(depth) };
    let expected = (before_last > 0).then(|| parts[..count].join(&separator));
    assert_eq!(class_of(key, separator, depth), expected.as_deref());
}

