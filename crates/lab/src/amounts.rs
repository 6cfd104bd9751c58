//! Amounts as people write them: sizes of memory, spans of virtual time; and how to sample. Each
//! is named in a refusal by `option`, what it was given to.

use tidemark_results::analysis::batch::RoomUnit;
use tidemark_results::{Refusal, quantity, refuse};

use crate::analysis::shards::{Sampling, Share};
use crate::study::Sizes;

/// The most pages that memory has: frames are counted in 31 bits.
const PAGES_MAX: u32 = (1 << 31) - 1;

/// The sizes that are asked for: pages, sizes with a unit, shares of the `pages` that the program
/// uses, or `all`.
pub fn parse_sizes(
    option: &str,
    text: &str,
    page_bytes: u64,
    pages: u64,
) -> Result<Sizes, Refusal> {
    if text.trim() == "all" {
        return Ok(Sizes::All);
    }
    let mut sizes = vec![];
    for part in text.split(',').map(str::trim) {
        let whole_bytes = pages.saturating_mul(page_bytes);
        match parse_memory(option, part, page_bytes, whole_bytes)? {
            0 => refuse!("{}", less_than_a_page(option, part)),
            pages => sizes.push(u64::from(pages)),
        }
    }
    Ok(Sizes::At(sizes))
}

/// The rooms that are asked for of a cache, in `unit`: sizes with a unit where bytes are known,
/// numbers of objects where not, shares of the `whole` that all objects take, or `all`.
pub fn parse_rooms(option: &str, text: &str, unit: RoomUnit, whole: u64) -> Result<Sizes, Refusal> {
    if text.trim() == "all" {
        return Ok(Sizes::All);
    }
    let mut rooms = vec![];
    for part in text.split(',').map(str::trim) {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let room = match unit {
            _ if part.ends_with('%') => {
                quantity::parse_share(option, part, whole.saturating_mul(100))? / 100
            }
            RoomUnit::Objects if is_number => part.parse().unwrap_or(u64::MAX),
            RoomUnit::Objects => refuse!(
                "`{option} {part}`: the trace tells no sizes; give a number of objects, or a share \
                 (`20%`), or import it with a column `bytes=`"
            ),
            RoomUnit::Bytes if is_number => refuse!(
                "`{option} {part}`: the trace tells the sizes of objects; give a size with a unit \
                 (`64M`), or a share (`20%`)"
            ),
            RoomUnit::Bytes => quantity::parse(option, part)?,
        };
        match room {
            0 => refuse!("`{option} {part}`: no room at all; give more"),
            room => rooms.push(room),
        }
    }
    Ok(Sizes::At(rooms))
}

/// Refuses what [`parse_sizes`] would refuse of any trace, before one is read.
pub fn check_sizes(option: &str, text: &str) -> Result<(), Refusal> {
    match text.trim() {
        "all" => Ok(()),
        _ => check_memories(option, text.split(',').map(str::trim)),
    }
}

/// Refuses sizes that [`parse_memory`] would refuse of any trace, before one is read.
pub fn check_memories<'a>(
    option: &str,
    parts: impl IntoIterator<Item = &'a str>,
) -> Result<(), Refusal> {
    // Of pages as large as can be, no size with a unit has too many; and no share is too large
    // that is not too large of any program.
    let (page_bytes, whole_bytes) = (u64::MAX, 1);
    for part in parts {
        let pages = parse_memory(option, part, page_bytes, whole_bytes)?;
        if pages == 0 && part.bytes().all(|byte| byte.is_ascii_digit()) {
            refuse!("{}", less_than_a_page(option, part));
        }
    }
    Ok(())
}

fn less_than_a_page(option: &str, part: &str) -> String {
    format!("`{option} {part}`: less than a page; give pages (`4096`) or memory (`16M`)")
}

/// Sizes of memory in pages, each once, rising; as [`parse_memory`] reads each, if `check` has
/// nothing against it.
pub fn parse_memories(
    option: &str,
    text: &str,
    page_bytes: u64,
    whole_bytes: u64,
    check: impl Fn(&str, u32) -> Result<(), Refusal>,
) -> Result<Vec<u32>, Refusal> {
    let mut sizes = vec![];
    for part in text.split(',').map(str::trim) {
        let pages = parse_memory(option, part, page_bytes, whole_bytes)?;
        check(part, pages)?;
        sizes.push(pages);
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

/// A size of memory in pages: a number of them, or a size with a unit; a percentage is of
/// `whole_bytes`.
pub fn parse_memory(
    option: &str,
    text: &str,
    page_bytes: u64,
    whole_bytes: u64,
) -> Result<u32, Refusal> {
    let is_count = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let pages = match is_count.then(|| text.parse()) {
        // A small whole is not to lose a page to the rounding of its hundredth.
        None if text.ends_with('%') => {
            let hundredfold = quantity::parse_share(option, text, whole_bytes.saturating_mul(100))?;
            hundredfold / 100 / page_bytes
        }
        None => quantity::parse(option, text)? / page_bytes,
        Some(parsed) => parsed.unwrap_or(u64::MAX),
    };
    match u32::try_from(pages) {
        Ok(pages) if pages <= PAGES_MAX => Ok(pages),
        _ => refuse!("`{option} {text}`: too large; the most is {PAGES_MAX} pages"),
    }
}

/// Amounts of `option`, each a number with k, M or G behind it or not, above 0.
pub fn parse_amounts(option: &str, text: &str) -> Result<Vec<u64>, Refusal> {
    text.split(',')
        .map(|part| parse_amount(option, part.trim()))
        .collect()
}

/// This many samples are taken side by side; their differences give their error.
const SAMPLES: u32 = 8;
/// Fewer pages than this say nothing of the others.
const SAMPLED_LEAST: u64 = 16;

/// The sampling of pages that is asked for: a share of them, or at most a number of them.
pub fn parse_sampling(option: &str, text: &str) -> Result<Sampling, Refusal> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent
            .trim()
            .parse()
            .ok()
            .map(|number: f64| number / 100.0),
        None if text.contains('.') => text.parse().ok(),
        None => {
            let pages = parse_amount(option, text)?;
            if pages < SAMPLED_LEAST {
                refuse!(
                    "`{option} {text}`: that many pages say little; give {SAMPLED_LEAST} or more, \
                     or a share like `0.01` or `1%`"
                );
            }
            let pages = u32::try_from(pages).unwrap_or(u32::MAX);
            return Ok(sampling(Share::Pages(pages)));
        }
    };
    match share {
        Some(rate) if rate > 0.0 && rate <= 1.0 => Ok(sampling(Share::Rate(rate))),
        _ => refuse!("`{option} {text}`: not a share; give one above 0 and at most 1, or 100%"),
    }
}

fn sampling(share: Share) -> Sampling {
    Sampling {
        share,
        samples: SAMPLES,
        seed: 1,
    }
}

fn parse_amount(option: &str, text: &str) -> Result<u64, Refusal> {
    let (number, unit) = quantity::split(text);
    let value = number.parse::<f64>().ok().zip(quantity::decimal_unit(unit));
    match value.map(|(number, factor)| number * factor as f64) {
        Some(value) if (1.0..1e18).contains(&value) => Ok(value as u64),
        Some(value) if value.abs() < 1.0 => {
            refuse!("`{option} {text}`: must be at least 1")
        }
        _ => refuse!(
            "`{option} {text}`: not an amount; write a number like `20000`, `20k` or `1.5M`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_h4_sizes_are_pages_or_have_a_unit_or_are_shares() {
        let sizes =
            |text| parse_sizes("--at", text, 4096, 200).map_err(|refusal| refusal.to_string());
        assert_eq!(sizes("1,64, 16M"), Ok(Sizes::At(vec![1, 64, 4096])));
        assert_eq!(sizes("all"), Ok(Sizes::All));
        assert_eq!(sizes("25%,0.5%"), Ok(Sizes::At(vec![50, 1])));
        for text in ["", "0", "1,,2", "-1", "2K", "x", "0.1%"] {
            assert!(sizes(text).unwrap_err().contains("`--at"), "{text}");
        }
    }

    #[test]
    fn rooms_are_objects_or_sizes_as_the_trace_has_them() {
        let rooms =
            |text, unit| parse_rooms("--at", text, unit, 1000).map_err(|told| told.to_string());
        let objects = rooms("1, 64,25%", RoomUnit::Objects);
        assert_eq!(objects, Ok(Sizes::At(vec![1, 64, 250])));
        let bytes = rooms("4K,0.5%", RoomUnit::Bytes);
        assert_eq!(bytes, Ok(Sizes::At(vec![4096, 5])));
        assert_eq!(rooms("all", RoomUnit::Bytes), Ok(Sizes::All));
        for (text, unit, expected) in [
            ("64M", RoomUnit::Objects, "tells no sizes"),
            ("64", RoomUnit::Bytes, "a size with a unit"),
            ("0", RoomUnit::Objects, "no room"),
            ("0.01%", RoomUnit::Bytes, "no room"),
            ("", RoomUnit::Bytes, "not a size"),
        ] {
            let told = rooms(text, unit).unwrap_err();
            assert!(told.contains(expected), "{text}: {told}");
        }
    }

    #[test]
    fn found_n7_sizes_are_checked_before_there_is_a_trace() {
        for text in ["", "0", "1,,2", "-1", "x", "64X", "50%,64X", "2147483648"] {
            let told = check_sizes("--at", text).unwrap_err().to_string();
            assert!(told.contains("`--at"), "{text}: {told}");
        }
        for text in ["all", "1,64, 16M", "2K", "25%,0.001%", "1T", "2147483647"] {
            assert_eq!(check_sizes("--at", text), Ok(()), "{text}");
        }
    }

    #[test]
    fn samples_are_shares_or_numbers_of_pages() {
        let share = |text| parse_sampling("--sample", text).map(|sampling| sampling.share);
        assert_eq!(share("0.01"), Ok(Share::Rate(0.01)));
        assert_eq!(share("1%"), Ok(Share::Rate(0.01)));
        assert_eq!(share("100%"), Ok(Share::Rate(1.0)));
        assert_eq!(share("8k"), Ok(Share::Pages(8000)));
        for text in [
            "", "0", "1", "0.0", "1.5", "-1%", "101%", "nan%", "x", "0.1.2",
        ] {
            let told = share(text).unwrap_err().to_string();
            assert!(told.contains("`--sample"), "{text}: {told}");
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
        let told = amounts("10,0").unwrap_err();
        assert_eq!(told, "`--windows 0`: must be at least 1");
    }
}
