//! The tables of a comparison: the same on a page and in a terminal.

use tidemark_results::diff::{
    DiffRecord, Group, Measure, ProcessChange, ProcessUse, RegionChange, RegionUse, Unit,
    difference,
};
use tidemark_results::text;

use crate::{numbers, words};

/// The columns of the table of amounts.
pub(super) const MEASURES: [&str; 4] = ["", "before", "after", "difference"];
/// The number of regions, and of processes, that are listed.
const LISTED: usize = 20;

/// A row for each amount.
pub(super) fn measures(record: &DiffRecord) -> Vec<Vec<String>> {
    let row = |measure: &Measure| {
        let cell = |side: Option<f64>| side.map_or("–".into(), |it| value(it, measure.unit));
        let mark = if measure.is_beyond { " !" } else { "" };
        let unit = match measure.unit {
            Unit::Pages => ", pages",
            _ => "",
        };
        vec![
            format!("{}{unit}", label(measure, record)),
            cell(measure.before),
            cell(measure.after),
            format!("{}{mark}", change(measure.difference())),
        ]
    };
    record.measures.iter().map(row).collect()
}

/// A table of what differs most, and a line on what it leaves out.
pub(super) struct Listed {
    /// The names of its columns.
    pub(super) columns: Vec<String>,
    /// A row for each that differs.
    pub(super) rows: Vec<Vec<String>>,
    /// The line, if anything is left out.
    pub(super) left_out: Option<String>,
}

/// A row of a list before it is words: pages, references, and misses in the size shown.
struct Row {
    name: String,
    pages: Both,
    references: Both,
    misses: Both,
    is_beyond: bool,
    differs: bool,
}

/// An amount before and after.
type Both = (Option<f64>, Option<f64>);

/// The table of regions.
pub(super) fn regions(record: &DiffRecord) -> Listed {
    let place = size_shown(record);
    let misses = |it: &RegionUse| it.misses.get(place).copied().unwrap_or(0);
    let row = |region: &RegionChange| Row {
        name: region_name(&region.name),
        pages: region.both(|it| it.pages),
        references: region.both(|it| it.references),
        misses: region.both(misses),
        is_beyond: region.is_beyond,
        differs: region.before != region.after,
    };
    let rows = record.regions.iter().map(row);
    listed(record, ["region", "Regions"], rows.collect())
}

/// The table of processes.
pub(super) fn processes(record: &DiffRecord) -> Listed {
    let place = size_shown(record);
    let misses = |it: &ProcessUse| it.misses.get(place).copied().unwrap_or(0);
    let row = |process: &ProcessChange| {
        let row = Row {
            name: process.label(record),
            pages: process.both(|it| it.pages),
            references: process.both(|it| it.references),
            misses: process.both(misses),
            is_beyond: process.is_beyond,
            differs: true,
        };
        let differs = [row.pages, row.references, row.misses]
            .iter()
            .any(|it| it.0 != it.1);
        Row { differs, ..row }
    };
    let rows = record.processes.iter().map(row);
    listed(record, ["process", "Processes"], rows.collect())
}

/// The place of the size whose misses lists show. One size tells enough there; the record has all.
fn size_shown(record: &DiffRecord) -> usize {
    record.sizes.len() / 2
}

/// The table of these rows, which are one of those things, and several of them.
fn listed(record: &DiffRecord, [one, several]: [&str; 2], all: Vec<Row>) -> Listed {
    let mut columns: Vec<String> = [one, "pages", "difference", "references"]
        .map(Into::into)
        .into();
    let size = record.sizes.get(size_shown(record));
    columns.extend(size.map(|size| {
        let memory = text::bytes(size * record.page_bytes());
        format!("misses in {memory}")
    }));
    let shown = all.iter().filter(|row| row.differs).take(LISTED);
    let rows = shown.map(|row| {
        let mark = if row.is_beyond { " !" } else { "" };
        let mut cells = vec![
            row.name.clone(),
            counts(row.pages),
            format!("{}{mark}", change(difference(row.pages))),
            counts(row.references),
        ];
        cells.extend(size.map(|_| counts(row.misses)));
        cells
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let rest = all.len() - rows.len();
    let same = all.iter().filter(|row| !row.differs).count();
    let left_out = match (rest, rest - same) {
        (0, _) => None,
        (_, 0) => Some(format!("{several} that are the same in both: {same}.")),
        (_, more) => Some(format!(
            "{several} that differ less: {more}; that are the same: {same}."
        )),
    };
    Listed {
        columns,
        rows,
        left_out,
    }
}

/// The name of an amount.
pub(super) fn label(measure: &Measure, record: &DiffRecord) -> String {
    let (name, at) = (&measure.name, measure.at.unwrap_or(0));
    match measure.group {
        Group::Memory => match &name[..] {
            "touched" => "memory touched".into(),
            "at-once" => "most at one time".into(),
            other => other.to_owned(),
        },
        Group::Time => match measure.unit {
            Unit::Instructions => "instructions".into(),
            Unit::References | Unit::Nanoseconds => "virtual time".into(),
            _ => name.clone(),
        },
        Group::WorkingSet => {
            let trace = record.before.trace.as_ref();
            let window = match trace {
                Some(trace) => numbers::time_short(at as f64, trace.time_unit),
                None => text::count(at),
            };
            format!("working set over {window}, {name}")
        }
        Group::Misses => {
            let memory = text::bytes(at * record.page_bytes());
            format!("misses under {} in {memory}", words::policy(name))
        }
        Group::Needs => format!("memory needed, {}, {at} % slower", words::policy(name)),
        Group::References | Group::Phases | Group::Counts | Group::Contenders => name.clone(),
    }
}

/// The short name of a region: a file without its folders.
pub(super) fn region_name(name: &str) -> String {
    match name {
        "anonymous" | "unnamed" => format!("{name} memory"),
        name if name.starts_with('/') => name.rsplit('/').next().unwrap_or(name).to_owned(),
        name => name.to_owned(),
    }
}

/// An amount as people read it; pages are counted.
pub(super) fn value(amount: f64, unit: Unit) -> String {
    match unit {
        Unit::Pages if amount.fract() != 0.0 => format!("{amount:.1}"),
        Unit::Pages | Unit::Count | Unit::Instructions | Unit::References => {
            text::count(amount.round() as u64)
        }
        Unit::Bytes => text::bytes(amount.round() as u64),
        Unit::Nanoseconds => numbers::seconds(amount / 1e9),
        Unit::Seconds => numbers::seconds(amount),
        Unit::Share => format!("{} %", numbers::digits(amount * 100.0)),
    }
}

/// A difference in percent with its sign; of much more, as a factor.
pub(super) fn change(share: Option<f64>) -> String {
    match share {
        None => "–".into(),
        Some(0.0) => "same".into(),
        Some(share) if share >= 9.995 => format!("× {}", numbers::digits(1.0 + share)),
        Some(share) => {
            let sign = if share > 0.0 { '+' } else { '-' };
            match share.abs() * 100.0 {
                0.1.. => format!("{sign}{} %", numbers::digits(share.abs() * 100.0)),
                _ => format!("{sign}0.1 % or less"),
            }
        }
    }
}

/// A count on both sides.
fn counts((before, after): Both) -> String {
    let count = |side: Option<f64>| side.map_or("–".into(), |it| text::count(it as u64));
    match before == after {
        true => count(before),
        false => format!("{} → {}", count(before), count(after)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_a_sign_and_much_more_is_a_factor() {
        let told = [
            None,
            Some(0.0),
            Some(0.5),
            Some(-0.25),
            Some(299.0),
            Some(-0.0001),
        ]
        .map(change);
        let expected = ["–", "same", "+50 %", "-25 %", "× 300", "-0.1 % or less"];
        assert_eq!(told, expected);
    }
}
