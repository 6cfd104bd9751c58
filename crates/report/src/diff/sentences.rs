//! The largest differences in sentences, the largest first.

use tidemark_results::diff::{
    DiffRecord, Group, Measure, RegionChange, RegionUse, Threshold, Unit, difference,
};
use tidemark_results::text;

use super::tables::{change, label, region_name, value};
use crate::numbers;

/// Differences of a smaller share stand in the table alone.
const SHARE_LEAST: f64 = 0.01;
/// The number of regions, and of other amounts, that have a sentence.
const REGIONS: usize = 3;
const AMOUNTS: usize = 4;
/// The number of amounts named that are beyond a threshold.
const NAMED: usize = 4;

/// The differences in sentences, the largest first; and what is beyond the threshold.
pub fn findings(record: &DiffRecord) -> Vec<String> {
    // Of equals memory comes first.
    let mut ranked: Vec<(f64, Vec<String>)> = memory(record).into_iter().collect();
    ranked.extend(amounts(record));
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut told: Vec<String> = ranked.into_iter().flat_map(|(_, lines)| lines).collect();
    if told.is_empty() {
        told.push(nothing(record));
    }
    told.extend(record.threshold.map(|threshold| verdict(record, threshold)));
    told
}

/// A sentence for the amount of each group that differs most, but for memory that was touched; each
/// with the size of its difference.
fn amounts(record: &DiffRecord) -> Vec<(f64, Vec<String>)> {
    let is_told = |measure: &&Measure| {
        measure.is_judged()
            && !is_touched(measure)
            && measure
                .difference()
                .is_none_or(|it| it.abs() >= SHARE_LEAST)
            && measure.before.is_some()
            && measure.after.is_some()
    };
    let mut measures: Vec<&Measure> = record.measures.iter().filter(is_told).collect();
    measures.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let mut groups: Vec<Group> = vec![];
    measures.retain(|measure| {
        let is_first = !groups.contains(&measure.group);
        groups.push(measure.group);
        is_first
    });
    measures.truncate(AMOUNTS);
    let told = measures.into_iter().map(|measure| {
        let cause = cause(measure, record).unwrap_or_default();
        let label = capital(&label(measure, record));
        (
            size(measure),
            vec![format!("{label} {}{cause}.", moved(measure))],
        )
    });
    told.collect()
}

/// The memory that was touched, by region and in all.
fn memory(record: &DiffRecord) -> Option<(f64, Vec<String>)> {
    let touched = record.measures.iter().find(|measure| is_touched(measure));
    let whole = touched.and_then(|it| it.before).unwrap_or(0.0).max(1.0);
    let part = |region: &&RegionChange| {
        let (before, after) = region.pages();
        before.abs_diff(after) as f64 / whole >= SHARE_LEAST
    };
    let regions = record.regions.iter().filter(part).take(REGIONS);
    let mut told: Vec<String> = regions.map(|region| of_region(region, record)).collect();
    let is_told = |it: &&Measure| it.difference().is_none_or(|it| it.abs() >= SHARE_LEAST);
    let touched = touched.filter(is_told);
    told.extend(touched.map(|it| format!("Memory touched in all {}.", moved(it))));
    let largest = record.regions.first().map_or(0.0, |region| {
        let (before, after) = region.pages();
        before.abs_diff(after) as f64 / whole
    });
    let all = touched.map_or(0.0, size);
    let rank = all.max(largest.ln_1p());
    (!told.is_empty()).then_some((rank, told))
}

/// A region's pages, and its part in what they all grew or shrank by.
fn of_region(region: &RegionChange, record: &DiffRecord) -> String {
    let (before, after) = region.pages();
    let name = region_name(&region.name);
    // Names of files stay as they are.
    let name = match name.ends_with(" memory") {
        true => capital(&name),
        false => name,
    };
    let pages = text::count;
    let told = match (&region.before, &region.after) {
        (None, _) => format!("{name} is new, with {} pages", pages(after)),
        (_, None) => format!("{name} is gone; it had {} pages", pages(before)),
        _ => format!(
            "{name} {} from {} to {} pages ({})",
            if after > before { "grew" } else { "shrank" },
            pages(before),
            pages(after),
            change(difference((Some(before as f64), Some(after as f64)))),
        ),
    };
    let part = part_of(region, record, |it| it.pages);
    let what = if after > before { "growth" } else { "decrease" };
    format!("{told}, and explains {} the {what}.", part_words(part))
}

/// The region with the largest part in a difference of LRU's misses, and how large that is.
fn cause(measure: &Measure, record: &DiffRecord) -> Option<String> {
    if measure.group != Group::Misses || measure.name != "lru" {
        return None;
    }
    let place = record
        .sizes
        .iter()
        .position(|size| Some(*size) == measure.at)?;
    let misses = |it: &RegionUse| it.misses.get(place).copied().unwrap_or(0);
    let grows = measure.after > measure.before;
    let moved = |region: &&RegionChange| {
        let (before, after) = region.both(misses);
        let grown = after.unwrap_or(0.0) - before.unwrap_or(0.0);
        (if grows { grown } else { -grown }) as i64
    };
    let region = record.regions.iter().max_by_key(moved)?;
    let part = part_words(part_of(region, record, misses));
    (moved(&region) > 0).then(|| format!(", {part} that in {}", region_name(&region.name)))
}

/// The part of a region in what all regions together gained, or lost, as it did: from 0 to 1.
fn part_of(
    region: &RegionChange,
    record: &DiffRecord,
    of: impl Fn(&RegionUse) -> u64 + Copy,
) -> f64 {
    let grown = |region: &RegionChange| {
        let (before, after) = region.both(of);
        after.unwrap_or(0.0) - before.unwrap_or(0.0)
    };
    let own = grown(region);
    let alike = record.regions.iter().map(grown);
    let sum: f64 = alike.filter(|it| it.signum() == own.signum()).sum();
    if sum == 0.0 { 0.0 } else { own / sum }
}

/// A part of something, as words before it.
fn part_words(part: f64) -> String {
    match (part * 100.0).round() {
        100.0.. => "all of".into(),
        percent => format!("{} % of", numbers::digits(percent)),
    }
}

/// The movement of an amount from one value to another.
fn moved(measure: &Measure) -> String {
    let (before, after) = (measure.before.unwrap_or(0.0), measure.after.unwrap_or(0.0));
    let verb = if after > before { "rose" } else { "fell" };
    let unit = match measure.unit {
        Unit::Pages => " pages",
        _ => "",
    };
    format!(
        "{verb} from {} to {}{unit} ({})",
        value(before, measure.unit),
        value(after, measure.unit),
        change(measure.difference()),
    )
}

fn nothing(record: &DiffRecord) -> String {
    let is_same = |measure: &Measure| measure.before == measure.after;
    match record.measures.iter().all(is_same) {
        true => "Nothing differs.".into(),
        false => "Nothing differs by 1 % or more.".into(),
    }
}

/// The amounts beyond the threshold, or that there is none.
fn verdict(record: &DiffRecord, threshold: Threshold) -> String {
    let percent = numbers::digits(threshold.percent);
    let bound = match threshold.is_of_growth {
        true => format!("grew by more than {percent} %"),
        false => format!("differs by more than {percent} %"),
    };
    let measures = record.measures.iter().filter(|measure| measure.is_beyond);
    let measures = measures.map(|measure| label(measure, record));
    let regions = record.regions.iter().filter(|region| region.is_beyond);
    let regions = regions.map(|region| format!("pages of {}", region_name(&region.name)));
    let beyond: Vec<String> = measures.chain(regions).collect();
    if beyond.is_empty() {
        return format!("Within the threshold: nothing {bound}.");
    }
    let more = match beyond.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let named = beyond[..beyond.len().min(NAMED)].join("; ");
    format!("Beyond the threshold ({bound}): {named}{more}.")
}

/// The size of a difference, the same for twice and for half.
fn size(measure: &Measure) -> f64 {
    match (measure.before, measure.after) {
        (Some(before), Some(after)) if before == after => 0.0,
        (Some(before), Some(after)) if before > 0.0 && after > 0.0 => (after / before).ln().abs(),
        _ => f64::MAX,
    }
}

fn is_touched(measure: &Measure) -> bool {
    measure.group == Group::Memory && measure.name == "touched"
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
