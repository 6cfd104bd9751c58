//! Quantities as people write them: a number, and a unit behind it. Sizes, counts, amounts and
//! times each say which units they have, and which numbers.

/// The number that `text` begins with, and the unit behind it.
pub fn split(text: &str) -> (&str, &str) {
    let number = text.trim_end_matches(|c: char| !c.is_ascii_digit() && c != '.');
    (number, text[number.len()..].trim())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_what_follows_the_last_digit() {
        assert_eq!(split("1.5 GiB"), ("1.5", "GiB"));
        assert_eq!(split("50%"), ("50", "%"));
        assert_eq!(split("1e40"), ("1e40", ""));
        assert_eq!(split("MiB"), ("", "MiB"));
    }
}
