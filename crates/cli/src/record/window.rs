//! Lengths of time as people write them: `100ms`, `2.5s`, `500us`.

use crate::exit::{Refusal, refuse};
use tidemark_results::quantity;

const NS_MIN: u64 = 100_000;
const NS_MAX: u64 = 3_600_000_000_000;

/// The window `text` stands for, in nanoseconds.
pub fn parse(text: &str) -> Result<u64, Refusal> {
    let (number, unit) = quantity::split(text);
    let unit_ns = match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        _ => refuse!("`--window {text}`: not a time; write a number and a unit, like `100ms`"),
    };
    let is_plain = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let Some(number) = number.parse::<f64>().ok().filter(|_| is_plain) else {
        refuse!("`--window {text}`: not a time; write a number and a unit, like `100ms`");
    };
    let ns = (number * unit_ns).min(1e18) as u64;
    if !(NS_MIN..=NS_MAX).contains(&ns) {
        refuse!("`--window {text}`: takes 100us to 3600s");
    }
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_number_and_a_unit() {
        assert_eq!(parse("100ms"), Ok(100_000_000));
        assert_eq!(parse("2.5s"), Ok(2_500_000_000));
        assert_eq!(parse("500 us"), Ok(500_000));
    }

    #[test]
    fn what_is_no_window_is_refused() {
        for text in ["", "0", "100", "ms", "1h", "-5ms", "1.2.3s", "1e3ms"] {
            let told = parse(text).unwrap_err().to_string();
            assert!(told.contains("not a time"), "{text}: {told}");
        }
        for text in ["0ms", "0.0s", "99us", "2000000s"] {
            let told = parse(text).unwrap_err().to_string();
            assert!(told.ends_with("takes 100us to 3600s"), "{told}");
        }
    }
}
