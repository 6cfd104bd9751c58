//! Lists of numbers as options: sizes of memory, spans of virtual time, percentages.

use tidemark_lab::study::Sizes;

use crate::exit::{Refusal, refuse};
use crate::size;

/// The sizes that `--at` asks for: pages, or sizes with a unit, or `all`.
pub fn parse_sizes(text: &str, page_bytes: u64) -> Result<Sizes, Refusal> {
    if text.trim() == "all" {
        return Ok(Sizes::All);
    }
    let mut sizes = vec![];
    for part in text.split(',').map(str::trim) {
        let pages = match part.bytes().all(|byte| byte.is_ascii_digit()) {
            true => part.parse().ok(),
            false => {
                let memory = size::physical_memory_bytes();
                Some(size::parse("--at", part, memory)? / page_bytes)
            }
        };
        match pages {
            Some(pages) if pages > 0 => sizes.push(pages),
            _ => refuse!(
                "`--at {part}`: no size; give pages (`4096`), or memory (`16M`), from 1 page"
            ),
        }
    }
    Ok(Sizes::At(sizes))
}

/// Amounts of `option`, each a number with k, M or G behind it or not, above 0.
pub fn parse_amounts(option: &str, text: &str) -> Result<Vec<u64>, Refusal> {
    text.split(',')
        .map(|part| parse_amount(option, part.trim()))
        .collect()
}

fn parse_amount(option: &str, text: &str) -> Result<u64, Refusal> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match &text[number.len()..] {
        "" => Some(1.0),
        "k" | "K" => Some(1e3),
        "M" => Some(1e6),
        "G" => Some(1e9),
        _ => None,
    };
    let value = number.parse::<f64>().ok().zip(factor);
    match value.map(|(number, factor)| number * factor) {
        Some(value) if (1.0..1e18).contains(&value) => Ok(value as u64),
        _ => refuse!(
            "`{option} {text}`: not an amount; write a number like `20000`, `20k` or `1.5M`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_pages_or_have_a_unit() {
        let sizes = |text| parse_sizes(text, 4096).map_err(|refusal| refusal.to_string());
        assert_eq!(sizes("1,64, 16M"), Ok(Sizes::At(vec![1, 64, 4096])));
        assert_eq!(sizes("all"), Ok(Sizes::All));
        for text in ["", "0", "1,,2", "-1", "2K", "x"] {
            assert!(sizes(text).unwrap_err().contains("`--at"), "{text}");
        }
    }

    #[test]
    fn amounts_may_have_a_decimal_prefix() {
        let amounts = |text| parse_amounts("--windows", text).map_err(|told| told.to_string());
        assert_eq!(
            amounts("10,2k,1.5M,1G"),
            Ok(vec![10, 2000, 1_500_000, 1_000_000_000])
        );
        for text in ["", "0", "k", "1T", "1e40", "nan", "-3"] {
            assert!(amounts(text).unwrap_err().contains("`--windows"), "{text}");
        }
    }
}
