//! A double as clients print it.

/// How many digits are printed.
#[derive(Debug, Clone, Copy)]
pub enum Digits {
    /// As few as are read back as the same double.
    Shortest,
    /// So many significant ones, zeros at the end left out.
    Significant(usize),
}

/// Digits without a point, and the power of ten of the first.
fn scientific(value: f64, digits: Digits) -> (String, i32) {
    let text = match digits {
        Digits::Shortest => format!("{value:e}"),
        Digits::Significant(count) => format!("{value:.*e}", count - 1),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let digits = mantissa.replace('.', "");
    let kept = digits.trim_end_matches('0');
    (if kept.is_empty() { "0".to_owned() } else { kept.to_owned() }, exponent.parse().unwrap())
}

/// `1.25` for ("125", 0).
fn pointed(digits: &str) -> String {
    let (first, rest) = digits.split_at(1);
    if rest.is_empty() { first.to_owned() } else { format!("{first}.{rest}") }
}

/// Without an exponent.
fn fixed(digits: &str, exponent: i32) -> String {
    let Ok(places) = usize::try_from(exponent) else {
        return format!("0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1));
    };
    let padded = format!("{digits:0<width$}", width = places + 1);
    match padded.split_at(places + 1) {
        (whole, "") => whole.to_owned(),
        (whole, decimals) => format!("{whole}.{decimals}"),
    }
}

/// Python's `repr`: 1.6666666666666667, 5.787037037037037e-05, 5.0.
pub fn python(value: f64) -> String {
    let (digits, exponent) = scientific(value, Digits::Shortest);
    if (-4..16).contains(&exponent) {
        let text = fixed(&digits, exponent);
        return if text.contains('.') { text } else { text + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", pointed(&digits), exponent.unsigned_abs())
}

/// JavaScript's `String`: 1.6666666666666667, 0.00005787037037037037, 5.787e-7, 5.
pub fn javascript(value: f64) -> String {
    let (digits, exponent) = scientific(value, Digits::Shortest);
    if (-6..21).contains(&exponent) {
        return fixed(&digits, exponent);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{}", pointed(&digits), exponent.unsigned_abs())
}

/// PHP's `echo` at a `precision`: 1.6666666666667, 5.787037037037E-5, 1.0E+15.
pub fn php(value: f64, precision: usize) -> String {
    let (digits, exponent) = scientific(value, Digits::Significant(precision));
    if (-4..i32::try_from(precision).unwrap()).contains(&exponent) {
        return fixed(&digits, exponent);
    }
    let mantissa = if digits.len() == 1 { digits + ".0" } else { pointed(&digits) };
    format!("{mantissa}E{exponent:+}")
}

/// C's `%.17g`, and Lua's: 1.6666666666666667, 5.7870370370370373e-05.
pub fn c_17g(value: f64) -> String {
    let (digits, exponent) = scientific(value, Digits::Significant(17));
    if (-4..17).contains(&exponent) {
        return fixed(&digits, exponent);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", pointed(&digits), exponent.unsigned_abs())
}

/// 17 significant digits without an exponent.
pub fn fixed_17(value: f64) -> String {
    let (digits, exponent) = scientific(value, Digits::Significant(17));
    fixed(&digits, exponent)
}
