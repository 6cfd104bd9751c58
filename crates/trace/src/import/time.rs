//! Times as other tools write them: whole numbers, fractions, powers of ten.

/// The unit of a written time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Instructions of the process: whole numbers.
    Instructions,
    /// Nanoseconds.
    Nanoseconds,
    /// A tenth of a microsecond: Windows' file times.
    HundredNanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

/// Names of times that tell their unit, alone or behind `time_`, `timestamp_` or `ts_`.
const NAMES: [(&str, Scale); 28] = [
    ("instructions", Scale::Instructions),
    ("instruction", Scale::Instructions),
    ("instrs", Scale::Instructions),
    ("instruction_count", Scale::Instructions),
    ("icount", Scale::Instructions),
    ("ns", Scale::Nanoseconds),
    ("nsec", Scale::Nanoseconds),
    ("nsecs", Scale::Nanoseconds),
    ("nanos", Scale::Nanoseconds),
    ("nanosecond", Scale::Nanoseconds),
    ("nanoseconds", Scale::Nanoseconds),
    ("100ns", Scale::HundredNanoseconds),
    ("filetime", Scale::HundredNanoseconds),
    ("us", Scale::Microseconds),
    ("usec", Scale::Microseconds),
    ("usecs", Scale::Microseconds),
    ("micros", Scale::Microseconds),
    ("microseconds", Scale::Microseconds),
    ("ms", Scale::Milliseconds),
    ("msec", Scale::Milliseconds),
    ("msecs", Scale::Milliseconds),
    ("millis", Scale::Milliseconds),
    ("milliseconds", Scale::Milliseconds),
    ("s", Scale::Seconds),
    ("sec", Scale::Seconds),
    ("secs", Scale::Seconds),
    ("seconds", Scale::Seconds),
    ("epoch_seconds", Scale::Seconds),
];

/// Names of times that tell no unit.
const UNITLESS: [&str; 8] = [
    "time",
    "timestamp",
    "ts",
    "clock",
    "clock_time",
    "arrival_time",
    "request_time",
    "start_time",
];

impl Scale {
    /// The number of nanoseconds of a unit; `None` of instructions.
    const fn ns(self) -> Option<u64> {
        match self {
            Scale::Instructions => None,
            Scale::Nanoseconds => Some(1),
            Scale::HundredNanoseconds => Some(100),
            Scale::Microseconds => Some(1000),
            Scale::Milliseconds => Some(1_000_000),
            Scale::Seconds => Some(1_000_000_000),
        }
    }
}

/// The unit in a column's name: `Some(None)` for a time without one. Names are in lower
/// case, with `_` between words.
pub fn scale_of_name(name: &str) -> Option<Option<Scale>> {
    if UNITLESS.contains(&name) {
        return Some(None);
    }
    let prefixes = ["time_in_", "time_", "timestamp_", "ts_"];
    let rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
    // A letter alone is no time.
    let is_short = rest.is_none() && name.len() < 3;
    let rest = rest.unwrap_or(name);
    let known = NAMES.iter().find(|(known, _)| *known == rest);
    known.filter(|_| !is_short).map(|(_, scale)| Some(*scale))
}

/// Reads a time in `scale`: in nanoseconds, parts of one cut off; or in whole instructions.
pub fn parse(text: &[u8], scale: Scale) -> Option<u64> {
    let exponent_at = text.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let (mantissa, exponent) = match exponent_at {
        Some(at) => (&text[..at], exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let point = mantissa.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &[][..]),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut digits: u128 = 0;
    for &digit in whole.iter().chain(fraction) {
        if !digit.is_ascii_digit() {
            return None;
        }
        // 38 digits fit; a scale of nine more does not: times have fewer.
        digits = digits.checked_mul(10)?.checked_add((digit - b'0').into())?;
        if digits > u128::MAX / 1_000_000_000 {
            return None;
        }
    }
    let power = exponent - i32::try_from(fraction.len()).ok()?;
    let scaled = digits.checked_mul(scale.ns().unwrap_or(1).into())?;
    let value = match u32::try_from(power) {
        Ok(power) => scaled.checked_mul(10_u128.checked_pow(power)?)?,
        Err(_) => {
            let divisor = 10_u128.checked_pow(power.unsigned_abs())?;
            if scale == Scale::Instructions && !scaled.is_multiple_of(divisor) {
                return None;
            }
            scaled / divisor
        }
    };
    u64::try_from(value).ok()
}

fn exponent(text: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(text).ok()?;
    let value: i32 = text.parse().ok()?;
    (-30..=30).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_fractions_and_powers_of_ten() {
        for (text, scale, expected) in [
            ("1600000000", Scale::Seconds, 1_600_000_000_000_000_000),
            ("0.5", Scale::Seconds, 500_000_000),
            (".25", Scale::Milliseconds, 250_000),
            ("1.6e9", Scale::Seconds, 1_600_000_000_000_000_000),
            ("15e-1", Scale::Microseconds, 1500),
            ("1.9999", Scale::Nanoseconds, 1),
            (
                "128166372003061629",
                Scale::HundredNanoseconds,
                12_816_637_200_306_162_900,
            ),
            ("7", Scale::Instructions, 7),
            ("7.000", Scale::Instructions, 7),
            ("1e3", Scale::Instructions, 1000),
        ] {
            assert_eq!(parse(text.as_bytes(), scale), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            ".",
            "-1",
            "1.5",
            "x",
            "1e",
            "e3",
            "1e99",
            "1_000",
            "0x10",
            "nan",
            "inf",
            "1 2",
            "99999999999999999999",
        ] {
            assert_eq!(parse(text.as_bytes(), Scale::Instructions), None, "{text}");
        }
        assert_eq!(parse(b"99999999999999999999", Scale::Seconds), None);
    }

    #[test]
    fn names_tell_units_or_that_they_tell_none() {
        assert_eq!(scale_of_name("time_us"), Some(Some(Scale::Microseconds)));
        assert_eq!(scale_of_name("ts_s"), Some(Some(Scale::Seconds)));
        assert_eq!(scale_of_name("seconds"), Some(Some(Scale::Seconds)));
        assert_eq!(scale_of_name("time"), Some(None));
        assert_eq!(scale_of_name("s"), None);
        assert_eq!(scale_of_name("size"), None);
    }
}
