//! The plan of a benchmark: everything that was asked for, checked.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tidemark_lab::analysis::optimum::{REFERENCES_MAX, count_page_ins};

use crate::contender::{Contender, Rival};
use crate::workload::Workload;
use crate::workload::array::{Contents, PAGE_BYTES};

/// The least array that is worth measuring, and the least memory.
const BYTES_MIN: u64 = 1 << 20;

/// Another user's program that is ready to run.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The folder with what it needs.
    pub folder: PathBuf,
    /// The program and its arguments.
    pub words: Vec<OsString>,
}

impl Prepared {
    /// The program and its arguments as texts.
    pub fn command_line(&self) -> Vec<String> {
        let words = self.words.iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }
}

/// The default number of runs of each contender.
pub const ROUNDS_DEFAULT: u32 = 3;

/// With which read-ahead the kernel's swap takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAhead {
    /// The host's own.
    Host,
    /// The host's own, and whichever is best.
    Best,
}

/// The workload to run, its memory, the number of rounds, and the contenders.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The workload.
    pub workload: Workload,
    /// The memory of all processes together.
    pub memory_bytes: u64,
    /// The size of each process's array.
    pub size_bytes: u64,
    /// The number of processes.
    pub procs: u32,
    /// Passes, if not the workload's own number.
    pub laps: Option<u32>,
    /// The seed of random numbers.
    pub seed: u64,
    /// The contents of the arrays.
    pub contents: Contents,
    /// The number of runs of each contender.
    pub rounds: u32,
    /// Our own contenders.
    pub own: Vec<Contender>,
    /// The rivals they are measured against.
    pub rivals: Vec<Rival>,
    /// The read-ahead of the kernel's swap.
    pub read_ahead: ReadAhead,
    /// The program that [`Workload::Program`] runs.
    pub prepared: Option<Prepared>,
    /// The longest time that one run may take; a contender that takes longer is dropped.
    pub limit: Duration,
    /// The folder of swap files and scratch files.
    pub folder: PathBuf,
}

/// A setting that does not fit what it is to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The name of the setting.
    pub setting: &'static str,
    /// Its value, and what it must be.
    pub told: String,
}

/// The fault of a count of none.
pub(crate) const AT_LEAST_1: &str = "is 0; it must be at least 1";

impl fmt::Display for Unfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` {}", self.setting, self.told)
    }
}

impl Plan {
    /// Checks what belongs together.
    ///
    /// # Errors
    /// The first setting that does not fit.
    pub fn check(&self) -> Result<(), Unfit> {
        let (memory, size) = (self.memory_bytes, self.size_bytes);
        let (setting, told) = if memory < BYTES_MIN {
            ("memory", format!("is {memory} bytes; the least is 1M"))
        } else if self.workload != Workload::Compile && size < BYTES_MIN {
            ("size", format!("is {size} bytes; the least is 1M"))
        } else if self.workload.shape().is_some() && size / PAGE_BYTES > u64::from(u32::MAX) / 2 {
            ("size", format!("is {size} bytes; the most is 8T"))
        } else if self.workload == Workload::Program {
            let told = "is `program`, which `tidemark experiment` runs; name another";
            ("workload", told.into())
        } else if self.procs == 0 || self.procs > 256 {
            let told = format!("is {}; it must be from 1 to 256", self.procs);
            ("procs", told)
        } else if self.workload.shape().is_none() && self.procs > 1 {
            let name = self.workload.name();
            let told = format!("is {}; `{name}` runs one program: leave it out", self.procs);
            ("procs", told)
        } else if self.rounds == 0 {
            ("rounds", AT_LEAST_1.into())
        } else if self.own.is_empty() && self.rivals.is_empty() {
            ("against", "names no contender; name some".into())
        } else {
            return Ok(());
        };
        Err(Unfit { setting, told })
    }

    /// The passes each process makes; 0 for the real programs.
    pub fn laps(&self) -> u32 {
        let shape = self.workload.shape();
        shape.map_or(0, |shape| self.laps.unwrap_or(shape.laps_default()))
    }

    /// The bytes all processes touch together.
    pub fn touched_bytes(&self) -> u64 {
        self.size_bytes * u64::from(self.procs)
    }

    /// The fewest page-ins possible, if the reference string is known and not too long.
    pub fn optimal_page_ins(&self) -> Option<u64> {
        let (pages, page_count) = self.reference_string()?;
        if pages.len() > REFERENCES_MAX {
            return None;
        }
        let frames = u32::try_from(self.memory_bytes / PAGE_BYTES).unwrap_or(u32::MAX);
        Some(count_page_ins(&pages, page_count, frames.max(1)))
    }

    /// The pages of all processes in step, one page each in turn, and how many pages there are.
    fn reference_string(&self) -> Option<(Vec<u32>, u32)> {
        let first = self
            .workload
            .pattern(self.size_bytes, self.laps, self.seed)?;
        let mut strings = Vec::new();
        for number in 0..self.procs {
            let seed = self.seed.wrapping_add(u64::from(number));
            let pattern = self.workload.pattern(self.size_bytes, self.laps, seed)?;
            let offset = number * first.pages;
            strings.push(pattern.pages_in_order().map(move |page| page + offset));
        }
        let mut pages = Vec::new();
        // All strings are of one length, so that they end together.
        loop {
            for string in &mut strings {
                match string.next() {
                    Some(page) => pages.push(page),
                    None => return Some((pages, first.pages * self.procs)),
                }
            }
        }
    }
}
