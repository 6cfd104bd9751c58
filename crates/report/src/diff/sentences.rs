//! The largest differences in sentences, the largest first.

use tidemark_results::diff::{
    DiffRecord, Group, Measure, ProcessChange, RegionChange, Threshold, Unit, difference,
};
use tidemark_results::text;

use super::tables::{change, label, region_name, value};
use crate::numbers;

/// Differences of a smaller share stand in the table alone.
const SHARE_LEAST: f64 = 0.01;
/// The number of regions, of processes and of other amounts that have a sentence.
const REGIONS: usize = 3;
const PROCESSES: usize = 3;
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

/// The memory that was touched, by region, by process and in all.
fn memory(record: &DiffRecord) -> Option<(f64, Vec<String>)> {
    let touched = record.measures.iter().find(|measure| is_touched(measure));
    let whole = touched.and_then(|it| it.before).unwrap_or(0.0).max(1.0);
    let (regions, processes) = (regions(record), processes(record));
    let mut told = of_parts(&regions, "", REGIONS, whole);
    told.extend(of_parts(&processes, " of all processes", PROCESSES, whole));
    let is_told = |it: &&Measure| it.difference().is_none_or(|it| it.abs() >= SHARE_LEAST);
    let touched = touched.filter(is_told);
    told.extend(touched.map(|it| format!("Memory touched in all {}.", moved(it))));
    let largest = regions
        .first()
        .map_or(0.0, |part| part.pages().abs() / whole);
    let all = touched.map_or(0.0, size);
    let rank = all.max(largest.ln_1p());
    (!told.is_empty()).then_some((rank, told))
}

/// A part of what is compared: a region or a process, before and after.
struct Part {
    name: String,
    pages: Both,
    /// The misses under LRU in each of the sizes.
    misses: [Vec<u64>; 2],
}

/// An amount before and after.
type Both = (Option<f64>, Option<f64>);

impl Part {
    /// The pages that it gained, or lost as less than nothing.
    fn pages(&self) -> f64 {
        self.pages.1.unwrap_or(0.0) - self.pages.0.unwrap_or(0.0)
    }

    /// The misses that it gained in the size at that place.
    fn misses(&self, place: usize) -> f64 {
        let [before, after] = &self.misses;
        let misses = |side: &[u64]| side.get(place).copied().unwrap_or(0) as f64;
        misses(after) - misses(before)
    }
}

fn regions(record: &DiffRecord) -> Vec<Part> {
    let part = |region: &RegionChange| Part {
        name: region_name(&region.name),
        pages: region.both(|it| it.pages),
        misses: [&region.before, &region.after]
            .map(|side| side.as_ref().map_or(vec![], |it| it.misses.clone())),
    };
    record.regions.iter().map(part).collect()
}

fn processes(record: &DiffRecord) -> Vec<Part> {
    let part = |process: &ProcessChange| Part {
        name: format!("process {}", process.label(record)),
        pages: process.both(|it| it.pages),
        misses: [&process.before, &process.after]
            .map(|side| side.as_ref().map_or(vec![], |it| it.misses.clone())),
    };
    record.processes.iter().map(part).collect()
}

/// Sentences for the first of the parts, if they are a share of the `whole`: their pages, and their
/// part in what all gained or lost.
fn of_parts(parts: &[Part], of_all: &str, count: usize, whole: f64) -> Vec<String> {
    let is_told = |part: &&Part| part.pages().abs() / whole >= SHARE_LEAST;
    let told = parts.iter().filter(is_told).take(count).map(|part| {
        // Names of files stay as they are.
        let name = match part.name.ends_with(" memory") || part.name.starts_with("process ") {
            true => capital(&part.name),
            false => part.name.clone(),
        };
        let pages = |side: Option<f64>| text::count(side.unwrap_or(0.0) as u64);
        let (before, after) = part.pages;
        let grows = part.pages() > 0.0;
        let change = match (before, after) {
            (None, _) => format!("{name} is new, with {} pages", pages(after)),
            (_, None) => format!("{name} is gone; it had {} pages", pages(before)),
            _ => format!(
                "{name} {} from {} to {} pages ({})",
                if grows { "grew" } else { "shrank" },
                pages(before),
                pages(after),
                change(difference(part.pages)),
            ),
        };
        let share = part_words(share_of(part, parts, Part::pages));
        let what = if grows { "growth" } else { "decrease" };
        format!("{change}, and explains {share} the {what}{of_all}.")
    });
    told.collect()
}

/// The region, and of several processes the one, with the largest part in a difference of LRU's
/// misses, and how large that is.
fn cause(measure: &Measure, record: &DiffRecord) -> Option<String> {
    if measure.group != Group::Misses || measure.name != "lru" {
        return None;
    }
    let sizes = &record.sizes;
    let place = sizes.iter().position(|size| Some(*size) == measure.at)?;
    let sign = if measure.after > measure.before {
        1.0
    } else {
        -1.0
    };
    let gained = |part: &Part| part.misses(place) * sign;
    let largest = |parts: &[Part]| {
        let most = |one: &&Part, other: &&Part| gained(one).total_cmp(&gained(other));
        let part = parts
            .iter()
            .max_by(most)
            .filter(|part| gained(part) > 0.0)?;
        let share = part_words(share_of(part, parts, |part| part.misses(place)));
        Some((share, part.name.clone()))
    };
    let region = largest(&regions(record));
    let region = region.map(|(share, name)| format!(", {share} that in {name}"));
    let process = largest(&processes(record));
    let process = process.map(|(share, name)| format!(", and {share} it in {name}"));
    Some(region.unwrap_or_default() + &process.unwrap_or_default())
}

/// The share of a part in what all together gained, or lost, as it did: from 0 to 1.
fn share_of(part: &Part, all: &[Part], gained: impl Fn(&Part) -> f64) -> f64 {
    let own = gained(part);
    let alike = all.iter().map(&gained);
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
    let (memory, others): (Vec<&Measure>, Vec<&Measure>) =
        measures.partition(|measure| measure.group == Group::Memory);
    let measures =
        |of: Vec<&Measure>| -> Vec<String> { of.into_iter().map(|it| label(it, record)).collect() };
    let regions = record.regions.iter().filter(|region| region.is_beyond);
    let regions = regions.map(|region| format!("pages of {}", region_name(&region.name)));
    let processes = record.processes.iter().filter(|process| process.is_beyond);
    let processes = processes.map(|it| format!("pages of process {}", it.label(record)));
    // Where the memory is comes before what it leads to.
    let mut beyond = measures(memory);
    beyond.extend(regions.chain(processes));
    beyond.extend(measures(others));
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
