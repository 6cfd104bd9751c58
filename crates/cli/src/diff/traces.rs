//! Traces as inputs.

use std::path::Path;

use tidemark_lab::amounts::{check_sizes, parse_amounts};
use tidemark_lab::study::{Opened, Study, Wanted};
use tidemark_results::analysis::TraceFacts;
use tidemark_results::diff::{Group, Portrait};
use tidemark_supervisor::room;

use super::Arguments;
use super::records::{check_alike, sizes};
use crate::exit::{Refusal, refuse};
use crate::traces::name_of;
use crate::views::{Progress, Source};

/// A trace that is read.
struct Side {
    source: Source,
    name: String,
}

/// The portraits of two traces: of one memory size each way, and with the same windows.
pub(super) fn portraits(arguments: &Arguments) -> Result<[Portrait; 2], Refusal> {
    let at = arguments.at.as_deref();
    at.map_or(Ok(()), |text| check_sizes("--at", text))?;
    let windows = arguments.windows.as_deref();
    let windows = windows.map(|text| parse_amounts("--windows", text));
    let mut windows = windows.transpose()?.unwrap_or_default();
    windows.sort_unstable();
    windows.dedup();
    if [&arguments.before, &arguments.after]
        .iter()
        .all(|it| it.as_os_str() == "-")
    {
        refuse!("`-`: standard input is one trace; name a file for the other");
    }
    let side = |path: &Path| Side {
        source: Source::new(path.into(), arguments.process.clone(), arguments.partial),
        name: name_of(path),
    };
    let (before, after) = (side(&arguments.before), side(&arguments.after));
    let opened = [before.source.open()?, after.source.open()?];
    check_alike(
        [&before.name, &after.name],
        [opened[0].facts(), opened[1].facts()],
    )?;
    let mut notes = differently_recorded(opened[0].facts(), opened[1].facts());
    let keeps_references = has_room(&opened, &windows);
    if !keeps_references {
        notes.push("phases and the optimum are left out: there is not the memory for them".into());
    }
    let [first, second] = opened;
    let mut progress = Progress::new();
    let study = before.read(first, windows, keeps_references, &mut progress)?;
    let wanted = sizes(at, study.facts())?;
    let one = before.portray(&study, &wanted, &mut progress)?;
    drop(study);
    let windows = windows_of(&one);
    let study = after.read(second, windows, keeps_references, &mut progress)?;
    let in_sight = one.sizes.clone();
    let two = after.portray(&study, &in_sight, &mut progress)?;
    let mut one = one;
    one.keep_sizes(&two.sizes);
    one.notes.splice(0..0, notes);
    Ok([one, two])
}

impl Side {
    fn read(
        &self,
        opened: Opened,
        windows: Vec<u64>,
        keeps_references: bool,
        progress: &mut Progress,
    ) -> Result<Study, Refusal> {
        let wanted = Wanted::portrait(windows, opened.facts().records, keeps_references);
        let remedy = "record a shorter run, or with `--quantum` in place of `--exact`";
        self.source.read(opened, wanted, remedy, progress)
    }

    /// The portrait, in those of the sizes that the trace can show.
    fn portray(
        &self,
        study: &Study,
        sizes: &[u64],
        progress: &mut Progress,
    ) -> Result<Portrait, Refusal> {
        let least = study
            .facts()
            .windows
            .map_or(0, |windows| windows.pages_touched);
        let sizes: Vec<u64> = sizes
            .iter()
            .copied()
            .filter(|size| *size >= least)
            .collect();
        let mut show = |what: &str, part| progress.show(what, part);
        let portrait = study.portrait(&self.name, &sizes, &mut show);
        portrait.map_err(|error| self.source.refusal(&error))
    }
}

/// Returns true if the references of either can be held: one is read after the other.
fn has_room(opened: &[Opened; 2], windows: &[u64]) -> bool {
    let held = opened.iter().map(|opened| {
        let wanted = Wanted::portrait(windows.to_vec(), opened.facts().records, true);
        opened.bytes_held(&wanted)
    });
    held.max().unwrap_or(0) <= room::available_bytes()
}

/// The windows that a portrait has working sets over.
fn windows_of(portrait: &Portrait) -> Vec<u64> {
    let sets = portrait.amounts.iter();
    let sets = sets.filter(|amount| amount.group == Group::WorkingSet);
    let mut windows: Vec<u64> = sets.filter_map(|amount| amount.at).collect();
    windows.dedup();
    windows
}

/// A note on traces that keep other repeats, if they do.
fn differently_recorded(one: &TraceFacts, other: &TraceFacts) -> Vec<String> {
    match one.granularity == other.granularity {
        true => vec![],
        false => vec![format!(
            "the first keeps references by `{}`, the second by `{}`: their references, and misses \
             in little memory, differ for that alone",
            one.granularity, other.granularity
        )],
    }
}
