//! The meaning of the numbers, in sentences.

use tidemark_results::analysis::batch::{BatchRecord, RoomUnit};
use tidemark_results::analysis::curve::{Curve, CurveRecord, Need, RunNeed, RunNeeds};
use tidemark_results::analysis::map::{MapRecord, Region};
use tidemark_results::analysis::{Accuracy, Chosen, ChosenProcess, TraceFacts, UnitSource};
use tidemark_results::replay::{ReplayRecord, Run};
use tidemark_results::text;

use crate::numbers;

/// The number of chosen processes that are named.
const CHOSEN_SHOWN: usize = 3;

/// The title of the trace.
pub fn title(trace: &TraceFacts) -> String {
    trace.title()
}

/// The visits of a trace in one line.
pub fn visits(record: &BatchRecord) -> String {
    let objects = text::count(record.objects);
    let all = match record.unit {
        RoomUnit::Objects => format!("{objects} objects"),
        RoomUnit::Bytes => format!("{objects} objects of {}", text::bytes(record.whole)),
    };
    format!(
        "{} wants in {} visits · {all} · at most {} in a visit",
        text::count(record.wants),
        text::count(record.visits),
        room(record.unit, record.largest_visit),
    )
}

/// The room of a cache, in its unit.
pub fn room(unit: RoomUnit, room: u64) -> String {
    match unit {
        RoomUnit::Objects => text::count(room),
        RoomUnit::Bytes => text::bytes(room),
    }
}

/// The trace in one line.
pub fn facts(trace: &TraceFacts) -> String {
    let processes = match trace.processes {
        0 | 1 => String::new(),
        more => format!(" in {more} processes"),
    };
    let cut = if trace.is_cut { " · cut short" } else { "" };
    let about = if trace.is_pages_estimate {
        "about "
    } else {
        ""
    };
    format!(
        "{}{} · {} page references ({}) · {about}{} used{processes}{cut}",
        trace.chosen.as_ref().map_or(String::new(), chosen),
        numbers::time(trace.time as f64, trace.time_unit),
        numbers::count(trace.records as f64),
        granularity(trace),
        used(trace),
    )
}

/// The processes that were chosen, with the separator of what follows.
fn chosen(chosen: &Chosen) -> String {
    let named = |one: &ChosenProcess| {
        let program = one.program.rsplit('/').next().unwrap_or_default();
        let pid = one.pid.map_or(String::new(), |pid| format!(" (pid {pid})"));
        match program {
            "" => format!("{}{pid}", one.process),
            program => format!("{} {program}{pid}", one.process),
        }
    };
    let shown = chosen.processes.iter().take(CHOSEN_SHOWN).map(named);
    let mut shown: Vec<String> = shown.collect();
    let more = chosen.processes.len().saturating_sub(CHOSEN_SHOWN);
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    let noun = match chosen.processes.len() {
        1 => "process",
        _ => "processes",
    };
    format!("only {noun} {} of {} · ", shown.join(", "), chosen.of)
}

/// The memory that was used; where processes ended, at one time and by all of them.
fn used(trace: &TraceFacts) -> String {
    let all = text::bytes(trace.bytes(trace.pages));
    match trace.pages_at_once {
        Some(pages) => format!("{} at once, {all}", text::bytes(trace.bytes(pages))),
        None => all,
    }
}

/// The references that a trace has, of those that the program made.
fn granularity(trace: &TraceFacts) -> String {
    let words: Vec<&str> = trace.granularity.split(' ').collect();
    let length = |text: &str| text.parse::<u64>().unwrap_or_default();
    let time = |text: &str| numbers::seconds(length(text) as f64 / 1e9);
    let once = "each page at most once per";
    match words[..] {
        ["exact"] => "every change of page".into(),
        ["quantum", units] => {
            let units = text::count(length(units));
            format!("{once} {units} {}", trace.time_unit.name())
        }
        ["window", ns] => format!("{once} window of {}", time(ns)),
        ["window", ns, "to", most] => {
            format!("{once} window of {} to {}", time(ns), time(most))
        }
        ["regions", ns] => format!("{once} window of {}, estimated by regions", time(ns)),
        ["regions", ns, "to", most] => {
            let (ns, most) = (time(ns), time(most));
            format!("{once} window of {ns} to {most}, estimated by regions")
        }
        _ => trace.granularity.clone(),
    }
}

/// The answers that a sampled trace can't give; `None` of another.
pub fn sight(trace: &TraceFacts) -> Option<String> {
    let windows = trace.windows?;
    let seconds = |ns: u64| numbers::seconds(ns as f64 / 1e9);
    let estimate = match trace.granularity.starts_with("regions ") {
        true => {
            " An estimate, not a count: of each region of memory some pages were watched, and the \
             others are taken to be like them."
        }
        false => "",
    };
    Some(format!(
        "Sampled: a page is on record once in a window of up to {}.{estimate} This trace has no \
        answers for less memory than the longest window touches, up to {}, nor, while windows are \
        that long, for working sets over less than {}.",
        seconds(windows.longest_ns),
        text::bytes(trace.bytes(windows.pages_touched)),
        seconds(trace.window_least()),
    ))
}

/// No such amount.
pub const NONE: &str = "none";
/// No answer, since the program ends too soon.
pub const TOO_SHORT: &str = "too short to tell";
/// The meaning of the sign before an amount.
pub const AT_MOST: &str = "≤: this much is enough, and less may be; this trace can't tell.";

/// The meaning of the words and signs of the answers under `tidemark run` that are there.
pub fn run_remarks(run: &RunNeeds) -> Vec<String> {
    let mut remarks = vec![];
    if !run.slowdowns_percent_short.is_empty() {
        remarks.push(format!(
            "{TOO_SHORT}: the program takes {} by itself, and starting under `tidemark run` takes \
             {}, by chance more or less: that outweighs the bound. Record a longer run.",
            numbers::seconds(run.native_ns as f64 / 1e9),
            numbers::seconds(run.start_ns as f64 / 1e9),
        ));
    }
    if !run.slowdowns_percent_unmet.is_empty() {
        remarks.push(format!(
            "{NONE}: even with all its memory the program takes {}, since its first touches and \
             faults cost more under `tidemark run`.",
            run_least(run)
        ));
    }
    if run.needs.iter().any(|need| need.is_at_most) {
        remarks.push(
            "≤: this much is enough; `tidemark run` takes no less, or this trace has no answer \
            for less."
                .into(),
        );
    }
    let is_open = |need: &RunNeed| need.pages_high.is_none() && !need.is_at_most;
    if run.needs.iter().any(is_open) {
        remarks.push(
            "or more: if paging costs half as much again as is assumed, no amount of memory keeps \
             the bound."
                .into(),
        );
    }
    remarks
}

/// The time that a program takes longer under `tidemark run` in ample memory.
fn run_least(run: &RunNeeds) -> String {
    match run.slowdown_percent_least {
        None => "several times as long".into(),
        Some(percent) => longer(percent),
    }
}

/// The percentage that it takes longer; if it is much more, the multiple.
fn longer(percent: f64) -> String {
    match percent {
        300.0.. => format!("{} times as long", numbers::digits(1.0 + percent / 100.0)),
        _ => format!("{} % longer", numbers::digits(percent)),
    }
}

/// The assumptions of the answers under `tidemark run`.
pub fn run_assumption(run: &RunNeeds, trace: &TraceFacts) -> String {
    let disk = match run.disk.as_str() {
        "measured" => "the one that was measured here",
        name => name,
    };
    let ample = run_least(run);
    format!(
        "Simulated for `tidemark run` as it is without options: {} of managed memory; {} by itself \
         ({}), and {ample} with room for all of it. Starting takes {} more, in any amount of \
         memory. Pages compress as by {}, the \
         disk is {disk}, a fault takes {}.",
        text::bytes(trace.bytes(run.footprint_pages)),
        numbers::seconds(run.native_ns as f64 / 1e9),
        unit_words(run.time_unit_ns, run.time_unit_source, trace),
        numbers::seconds(run.start_ns as f64 / 1e9),
        run.compression,
        numbers::seconds(run.fault_ns as f64 / 1e9),
    )
}

/// The memory that is needed, as a share of all managed memory of the program, in percent.
pub fn run_share(need: &RunNeed, run: &RunNeeds) -> f64 {
    let share = need.pages as f64 * 100.0 / run.footprint_pages.max(1) as f64;
    // Where nothing runs in less, there may be more than is used.
    match need.is_at_most {
        true => share.min(100.0),
        false => share,
    }
}

/// Between which sizes the answer may lie.
pub fn run_range(need: &RunNeed, trace: &TraceFacts) -> String {
    let bytes = |pages: u64| text::bytes(trace.bytes(pages));
    match need.pages_high {
        // Nothing below is known, so the answer is both ends.
        Some(high) if need.is_at_most && high <= need.pages => "–".into(),
        Some(high) if need.is_at_most => format!("up to {}", bytes(high)),
        Some(high) if high <= need.pages_low => bytes(need.pages_low),
        Some(high) => format!("{} to {}", bytes(need.pages_low), bytes(high)),
        None if need.is_at_most => "–".into(),
        None => format!("{} or more", bytes(need.pages_low)),
    }
}

/// The length of a unit of virtual time, and its source.
fn unit_words(ns: f64, source: UnitSource, trace: &TraceFacts) -> String {
    let unit = trace.time_unit.name().trim_end_matches('s');
    let article = if unit == "instruction" { "an" } else { "a" };
    let takes = format!("{article} {unit} takes {}", numbers::seconds(ns / 1e9));
    match source {
        UnitSource::Exact => "the processor time that was recorded".into(),
        UnitSource::Given => format!("{takes}, as was given"),
        UnitSource::Measured => format!("{takes}, measured in a run"),
        UnitSource::Calibrated => {
            format!("{takes}, by the recording machine's clock; `record --time` measures it")
        }
        UnitSource::Assumed => format!("{takes}: a guess; `--unit-ns` gives it"),
    }
}

/// The name of a region: with the number of its process, where there are several.
pub fn region(region: &Region, record: &MapRecord) -> String {
    match record.trace.processes > 1 {
        true => format!("{} {}", region.process, region.short_label()),
        false => region.short_label().to_owned(),
    }
}

/// The samples of the curves that were estimated, and the error they may have: a sentence each.
pub fn accuracies(record: &CurveRecord) -> Vec<String> {
    let sampled = record.curves.iter().filter_map(|curve| {
        let (rate, error) = sampled(curve)?;
        let name = policy(&curve.policy);
        let samples = format!("{name} is estimated from samples of {rate} % of the pages each");
        Some(match error {
            Some(error) => {
                format!("{samples}; its miss ratio is off by at most {error} percentage points.")
            }
            None => format!(
                "{samples}, and they differ too much to tell anything: ask for a larger sample."
            ),
        })
    });
    sampled.collect()
}

/// A curve's name in a legend: with its error, if it was estimated.
pub fn curve_name(curve: &Curve) -> String {
    let name = policy(&curve.policy);
    match sampled(curve) {
        Some((rate, Some(error))) => format!("{name} ({rate} % sampled, ± {error} %)"),
        Some((rate, None)) => format!("{name} ({rate} % sampled, tells nothing)"),
        None => name,
    }
}

/// Of a curve that was estimated, the share of pages looked at and how far its miss ratio may be
/// off, in percentage points; `None` if by anything.
fn sampled(curve: &Curve) -> Option<(String, Option<String>)> {
    match curve.accuracy {
        Accuracy::Exact => None,
        Accuracy::Sampled { rate, error } => Some((
            numbers::digits(rate * 100.0),
            (error < 1.0).then(|| numbers::digits(error * 100.0)),
        )),
    }
}

/// The name of a policy as it is written: acronyms in capitals.
pub fn policy(name: &str) -> String {
    match name {
        "lru" | "lfu" | "ws" | "vmin" | "opt" | "fifo" | "pff" | "arc" | "lirs" => {
            name.to_uppercase()
        }
        other => other.to_owned(),
    }
}

/// The replay in words: the programs, and how much they use.
pub fn replayed(record: &ReplayRecord) -> String {
    let names: Vec<&str> = record.traces.iter().map(|trace| &trace.name[..]).collect();
    let copies = match record.copies {
        1 => String::new(),
        copies => format!("{copies} × "),
    };
    let footprint = record.footprint_pages.saturating_mul(record.page_bytes);
    format!(
        "{copies}{} · {} in use",
        names.join(" + "),
        text::bytes(footprint)
    )
}

/// The machine that programs were replayed on.
pub fn machine(record: &ReplayRecord) -> String {
    let machine = &record.machine;
    let processors = text::processors(machine.processors as usize);
    let files = machine.file_disk.as_ref();
    let files = files.map_or_else(String::new, |disk| format!(", files on {disk}"));
    let compressed = machine.compressed.as_ref();
    let compressed = compressed.map_or_else(String::new, |it| format!(", compressed first: {it}"));
    let wired = match machine.wired_bytes {
        0 => String::new(),
        wired => format!(" · {} wired", text::bytes(wired)),
    };
    format!(
        "{processors}, {} by {} ms · swap on {}{compressed}{files}{wired} · seed {}",
        machine.scheduler, machine.quantum_ms, machine.swap_disk, machine.seed
    )
}

/// A run's system: with its policy, where that is not its own by name.
pub fn system(run: &Run) -> String {
    match run.policy == run.system {
        true => run.system.clone(),
        false => format!("{} ({})", run.system, run.policy),
    }
}

/// A run's page-ins over the optimum's.
pub fn over_optimal(run: &Run) -> String {
    run.over_optimal
        .map_or_else(|| "–".into(), |over| format!("{over:.2}"))
}

/// `text`, cut to at most `length` characters.
pub fn shortened(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(length.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// The assumptions of the answers under ideal policies.
pub fn assumption(need: &Need, trace: &TraceFacts) -> String {
    format!(
        "Ideal: nothing costs time but page-ins, {} each ({}). First touches are not counted: they \
         cost the same in any amount of memory.",
        numbers::seconds(need.page_in_ns / 1e9),
        unit_words(need.time_unit_ns, need.time_unit_source, trace),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_results::analysis::TimeUnit;

    fn need(pages: u64, low: u64, high: Option<u64>, is_at_most: bool) -> RunNeed {
        RunNeed {
            slowdown_percent_max: 10.0,
            slowdown_percent: 8.0,
            pages,
            bytes: pages * 4096,
            pages_low: low,
            pages_high: high,
            page_ins: 7,
            is_at_most,
        }
    }

    #[test]
    fn found3_c_a_range_says_nothing_that_can_not_be() {
        let trace = TraceFacts {
            source: String::new(),
            command: vec![],
            page_bytes: 4096,
            granularity: "exact".into(),
            time_unit: TimeUnit::Instructions,
            records: 1,
            pages: 4096,
            processes: 1,
            time: 1,
            is_cut: false,
            is_pages_estimate: false,
            windows: None,
            pages_at_once: None,
            chosen: None,
        };
        let told = |need: RunNeed| run_range(&need, &trace);
        assert_eq!(told(need(2048, 1536, Some(2560), false)), "6 MiB to 10 MiB");
        assert_eq!(told(need(2048, 1536, None, false)), "6 MiB or more");
        // At the least that can be had nothing is said of less, nor of never.
        assert_eq!(told(need(1024, 1024, None, true)), "–");
        assert_eq!(told(need(1024, 1024, Some(1280), true)), "up to 5 MiB");
    }

    #[test]
    fn found3_c_what_takes_much_longer_is_told_in_times() {
        assert_eq!(longer(12.0), "12 % longer");
        assert_eq!(longer(73_219.0), "733 times as long");
    }
}
