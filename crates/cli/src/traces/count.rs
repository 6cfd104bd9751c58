//! Counts as people write them: `150`, `15k`, `100M`.

use tidemark_results::quantity;

/// The count `text` stands for. Units are decimal: `k` is a thousand, `M` a million, `G` a
/// thousand million.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || "write a whole number, like `150`, `15k` or `100M`".to_owned();
    let (digits, unit) = quantity::split(text);
    let unit = quantity::decimal_unit(unit).ok_or_else(wrong)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| "too large; the most is 18446744073709551615".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_decimal_and_may_be_left_out() {
        assert_eq!(count("150"), Ok(150));
        assert_eq!(count("15k"), Ok(15_000));
        assert_eq!(count("100M"), Ok(100_000_000));
        assert_eq!(count("2G"), Ok(2_000_000_000));
    }

    #[test]
    fn what_is_no_count_is_refused() {
        for text in ["", "k", "-1", "1.5k", "1e6", "10q", "1kk", "ten", "٣"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert!(
            count("18446744073709551616")
                .unwrap_err()
                .contains("too large")
        );
        assert!(
            count("99999999999999999G")
                .unwrap_err()
                .contains("too large")
        );
    }
}
