//! Predictions of live runs: a recorded program on the system that our live engine is.

use std::ops::RangeInclusive;

use tidemark_partition::Divider;
use tidemark_results::compare::{Case, Counts};

use super::{Compression, NamedDisk, Replay, ReplayOrder, Replayed, Unrunnable};
use crate::systems::plain::TIDEMARK;
use crate::world::{PolicyChoice, Scheduler, Watch};

/// The seed of a live engine's policy.
const SEED: u64 = 1;
/// The number of replays made of each case: the disk's delays are not the same twice.
const DRAWS: u64 = 5;

/// The assumptions of a prediction.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The disk that is swapped to.
    pub disk: NamedDisk,
    /// The sizes to which pages compress, if those that leave are compressed first.
    pub compression: Option<Compression>,
    /// The number of processors.
    pub processors: u32,
    /// The time that an instruction takes, in picoseconds.
    pub instruction_ps: u64,
    /// True if the program waits at each fault until all is over.
    pub is_in_step: bool,
    /// The load control, if it is not that of `tidemark run`.
    pub load: Option<String>,
    /// The way in which memory is divided.
    pub divider: Divider,
}

impl Prediction {
    /// Replays with each of the seeds, in each size of memory.
    ///
    /// # Errors
    /// The programs can't run in one of them.
    pub fn draw(
        &self,
        replay: &Replay,
        policy: &str,
        memory_pages: &[u32],
    ) -> Result<Vec<Replayed>, Unrunnable> {
        let draws = self
            .seeds()
            .map(|seed| replay.run(&self.order(policy, memory_pages, seed), &|_, _| ()));
        draws.collect()
    }

    /// The seeds of the replays. Disks draw their delays from them.
    fn seeds(&self) -> RangeInclusive<u64> {
        match self.is_in_step {
            true => SEED..=SEED,
            false => SEED..=DRAWS,
        }
    }

    /// The lab's order.
    fn order(&self, policy: &str, memory_pages: &[u32], seed: u64) -> ReplayOrder {
        ReplayOrder {
            systems: vec![TIDEMARK.with_instructions_of(self.instruction_ps)],
            memory_pages: memory_pages.to_vec(),
            wired_pages: 0,
            copies: 1,
            processors: match self.is_in_step {
                true => 1,
                false => self.processors,
            },
            scheduler: Scheduler::default(),
            swap_disk: self.disk.clone(),
            file_disk: None,
            compression: self.compression.clone(),
            seed,
            policy: Some(PolicyChoice {
                name: policy.into(),
                knobs: vec![],
            }),
            load: self.load.clone(),
            divider: self.divider,
            watch: Watch {
                sample_ns: 0,
                is_logging: self.is_in_step,
            },
        }
    }
}

/// The prediction for the case at `place` of each replay: the counts of the one in the middle by
/// page-ins.
pub fn case_of(policy: &str, draws: &[Replayed], place: usize, page_bytes: u64) -> Case {
    let found = &draws[0].record.runs[place];
    let counts = draws.iter().map(|replayed| {
        let found = &replayed.record.runs[place];
        Counts::of_replay(found, page_bytes)
    });
    let mut predictions: Vec<Counts> = counts.collect();
    predictions.sort_by_key(|counts| counts.page_ins);
    Case {
        policy: policy.into(),
        memory_bytes: found.memory_bytes,
        optimal_page_ins: found.optimal_page_ins,
        predicted: predictions[predictions.len() / 2],
        predictions,
        live: vec![],
        decisions: None,
        suspensions: None,
    }
}

/// The time that an instruction takes if nothing tells, in picoseconds.
pub const INSTRUCTION_PS: u64 = TIDEMARK.costs.instruction_ps;

/// The time that an instruction on record takes natively, in picoseconds; the lab's own guess if
/// that can't be told.
pub fn instruction_ps(read: &Replay, native_ns: Option<u64>) -> u64 {
    match (native_ns, read.instructions()) {
        (Some(ns), Some(count @ 1..)) => {
            let ps = u128::from(ns) * 1000 / u128::from(count);
            (ps as u64).max(1)
        }
        _ => INSTRUCTION_PS,
    }
}
