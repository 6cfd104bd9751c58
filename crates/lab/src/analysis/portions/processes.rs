//! The parts that processes have in the references, pages and misses of all together.

use std::collections::{BTreeMap, HashSet};

use tidemark_results::diff::ProcessUse;
use tidemark_trace::{Block, Event, LifeEvent};

/// No process: the page was not touched yet.
const NONE: u32 = u32::MAX;

/// Counts the references of each process.
///
/// A page that several processes have in common counts in each that touches it, so that pages may
/// add up to more than those of all; references and misses add up.
#[derive(Default)]
pub(super) struct Processes {
    each: BTreeMap<u32, ProcessUse>,
    /// For each page, the process that touched it last.
    last: Vec<u32>,
    /// Pairs of process and page: the process touched the page, and another has touched it since.
    earlier: HashSet<(u32, u32)>,
}

impl Processes {
    /// Takes in a block's facts about its process besides references.
    pub(super) fn take(&mut self, block: &Block) {
        let process = self
            .each
            .entry(block.process)
            .or_insert_with(|| ProcessUse {
                process: block.process,
                ..ProcessUse::default()
            });
        let time = block.time_end().saturating_sub(block.time_start);
        process.time = process.time.saturating_add(time);
        for placed in &block.events {
            match &placed.event {
                Event::Life(LifeEvent::Start { pid, program, .. }) => {
                    process.pid = Some(*pid);
                    process.program.clone_from(program);
                }
                Event::Life(LifeEvent::Exec { program }) => process.program.clone_from(program),
                _ => {}
            }
        }
    }

    /// Makes room for pages up to `last`.
    pub(super) fn make_room(&mut self, last: u32) {
        self.last.resize(last as usize + 1, NONE);
    }

    /// Adds what a process that was taken in does in a stretch of a block.
    pub(super) fn add(&mut self, process: u32, own: &ProcessUse) {
        let sum = self.each.get_mut(&process);
        let sum = sum.expect("its block was taken in");
        sum.pages += own.pages;
        sum.references += own.references;
        sum.misses.resize(own.misses.len(), 0);
        for (sum, misses) in sum.misses.iter_mut().zip(&own.misses) {
            *sum += misses;
        }
    }

    /// Notes that a process touches a page; true if it had not touched it before.
    pub(super) fn is_new(&mut self, process: u32, page: u32) -> bool {
        let last = std::mem::replace(&mut self.last[page as usize], process);
        if last == process {
            return false;
        }
        if last == NONE {
            return true;
        }
        self.earlier.insert((last, page));
        !self.earlier.contains(&(process, page))
    }

    /// The processes, in the order of the trace, with misses in `sizes` sizes.
    pub(super) fn finish(self, sizes: usize) -> Vec<ProcessUse> {
        let mut processes: Vec<ProcessUse> = self.each.into_values().collect();
        // There are none yet of those without a reference.
        processes
            .iter_mut()
            .for_each(|it| it.misses.resize(sizes, 0));
        processes
    }
}
