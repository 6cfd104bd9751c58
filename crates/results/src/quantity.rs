//! Quantities as people write them: a number, and a unit behind it. Counts, amounts and times each
//! say which units they have, and which numbers. Sizes are here: `512M`, `1.5G`, `100000`, `50%`.
//!
//! Units of sizes are binary: `K` is 1024 bytes. `KiB`, `KB` and `k` mean the same. A percentage is
//! a share of the memory that the programs use, wherever it stands; where that is not known it is
//! refused.

use crate::{Refusal, refuse};

/// The number that `text` begins with, and the unit behind it.
pub fn split(text: &str) -> (&str, &str) {
    let number = text.trim_end_matches(|c: char| !c.is_ascii_digit() && c != '.');
    (number, text[number.len()..].trim())
}

/// Returns true if `text` is a number without a unit: of a size, bytes.
pub fn is_bare(text: &str) -> bool {
    let (number, unit) = split(text);
    unit.is_empty() && split_number(number.trim()).is_some()
}

/// The number that a decimal unit stands for: `k` is a thousand, `M` a million, `G` a thousand
/// million.
pub fn decimal_unit(unit: &str) -> Option<u64> {
    match unit {
        "" => Some(1),
        "k" | "K" => Some(1000),
        "m" | "M" => Some(1_000_000),
        "g" | "G" => Some(1_000_000_000),
        _ => None,
    }
}

/// The size `text` stands for, in bytes. `option` is the name of the option it was given to.
pub fn parse(option: &str, text: &str) -> Result<u64, Refusal> {
    if text.trim_end().ends_with('%') {
        refuse!(
            "`{option} {text}`: a percentage is of what a program uses, which is not known before \
             it has run; give a size, like `512M`"
        );
    }
    parse_share(option, text, 0)
}

/// The size `text` stands for, in bytes; a percentage is of `whole_bytes`.
pub fn parse_share(option: &str, text: &str, whole_bytes: u64) -> Result<u64, Refusal> {
    let given = format!("`{option} {text}`");
    let (number, unit) = split(text);
    let Some((whole, fraction)) = split_number(number.trim()) else {
        refuse!("{given}: not a size; write a number and a unit, like `512M` or `1.5G`");
    };
    let Some(unit_bytes) = unit_bytes(unit, whole_bytes) else {
        refuse!("{given}: unknown unit `{unit}`; use K, M, G or T");
    };
    let bytes = whole
        .parse()
        .ok()
        .and_then(|whole| count_bytes(whole, fraction, unit_bytes));
    let Some(bytes) = bytes else {
        match unit {
            "%" => refuse!("{given}: too large a share; give a size, like `512M`"),
            _ => refuse!("{given}: too large; the most is 16777215T"),
        }
    };
    Ok(bytes)
}

/// The parts of a decimal number before and after its point.
fn split_number(number: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_digits(whole) && is_digits(fraction)).then_some((whole, fraction))
}

/// `whole.fraction` units in bytes. The fraction counts to a thousandth.
fn count_bytes(whole: u64, fraction: &str, unit_bytes: u128) -> Option<u64> {
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let thousandths = u128::from(whole) * 1000 + thousandths.parse::<u128>().ok()?;
    u64::try_from(thousandths.checked_mul(unit_bytes)? / 1000).ok()
}

fn unit_bytes(unit: &str, whole_bytes: u64) -> Option<u128> {
    if unit == "%" {
        return Some(u128::from(whole_bytes) / 100);
    }
    let unit = unit.to_ascii_uppercase();
    let power = match unit
        .strip_suffix("IB")
        .or(unit.strip_suffix('B'))
        .unwrap_or(&unit)
    {
        "" if unit == "IB" => return None,
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(1 << (10 * power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_has_no_unit() {
        assert!(is_bare("24") && is_bare("1.5"));
        assert!(!is_bare("24M") && !is_bare("24B") && !is_bare("M") && !is_bare(""));
    }

    #[test]
    fn a_unit_is_what_follows_the_last_digit() {
        assert_eq!(split("1.5 GiB"), ("1.5", "GiB"));
        assert_eq!(split("50%"), ("50", "%"));
        assert_eq!(split("1e40"), ("1e40", ""));
        assert_eq!(split("MiB"), ("", "MiB"));
    }

    fn size(text: &str) -> Result<u64, String> {
        parse("--memory", text).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn units_are_binary_and_may_be_left_out() {
        assert_eq!(size("100000"), Ok(100_000));
        assert_eq!(size("64K"), Ok(64 << 10));
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("2g"), Ok(2 << 30));
        assert_eq!(size("3T"), Ok(3 << 40));
        assert_eq!(size("7B"), Ok(7));
    }

    #[test]
    fn the_long_names_of_units_mean_the_same() {
        for text in ["64K", "64k", "64KB", "64KiB", "64 KiB", "64kib"] {
            assert_eq!(size(text), Ok(64 << 10), "{text}");
        }
    }

    #[test]
    fn fractions_are_exact_to_a_thousandth() {
        assert_eq!(size("1.5G"), Ok(3 << 29));
        assert_eq!(size("0.125K"), Ok(128));
        assert_eq!(size("1.9999K"), Ok(2046));
    }

    #[test]
    fn found_h4_a_percentage_is_of_what_is_used_or_refused() {
        let share = parse_share("--at", "50%", 1 << 30);
        assert_eq!(share, Ok((1u64 << 30) / 100 * 50));
        let told = size("50%").unwrap_err();
        assert!(
            told.starts_with("`--memory 50%`: a percentage is of what"),
            "{told}"
        );
    }

    #[test]
    fn an_unknown_unit_is_named() {
        let told = "`--memory 12Q`: unknown unit `Q`; use K, M, G or T";
        assert_eq!(size("12Q"), Err(told.into()));
        assert!(size("12iB").unwrap_err().contains("unknown unit `iB`"));
        assert!(size("12MM").unwrap_err().contains("unknown unit `MM`"));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "", "M", "-5M", "1.2.3M", ".5G", "5.", "0x10", "1e9", "1 2M", "…",
        ] {
            let told = size(text).unwrap_err();
            assert!(
                told.contains("not a size") || told.contains("unknown unit"),
                "{text}: {told}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for text in [
            "99999999999999T",
            "99999999999999999999999T",
            "18446744073709551616",
        ] {
            assert!(size(text).unwrap_err().contains("too large"), "{text}");
        }
    }
}
