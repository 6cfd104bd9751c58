//! The outcome of a run.

use std::fmt;

use tidemark_core::compressed::tier::Tally;
use tidemark_core::counters::{Counter, Counters};
use tidemark_core::decision::Decision;
use tidemark_core::id::PAGE_BYTES;

use super::disk::DiskUse;

/// The outcome of a scenario on a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The system's name.
    pub system: &'static str,
    /// The policy that was in force.
    pub policy: String,
    /// The load control that was in force.
    pub load: String,
    /// True if every program came to its end. If not, all numbers are of what was done until the
    /// scenario's limit.
    pub is_complete: bool,
    /// From the start of the first program to the end of the last.
    pub elapsed_ns: u64,
    /// Time processors spent in programs, added up.
    pub user_ns: u64,
    /// Time processors spent on faults, requests, switches and the daemon's work, added up.
    pub system_ns: u64,
    /// Time processors had nothing to do, added up.
    pub idle_ns: u64,
    /// The part of `system_ns` that answering the policy's questions took.
    pub policy_ns: u64,
    /// The core's counts: faults by kind, page-ins and page-outs in pages and requests,
    /// read-ahead used and wasted, reactivations, refusals, questions.
    pub counters: Counters,
    /// Pages read from the swap store.
    pub swap_ins: u64,
    /// Pages written to the swap store.
    pub swap_outs: u64,
    /// Pages that the swap disk read: of what is compressed, as many as its blocks have.
    pub swap_pages_read: u64,
    /// Pages that it wrote.
    pub swap_pages_written: u64,
    /// True if pages that leave are compressed first, in memory.
    pub is_compressing: bool,
    /// The work of compressed memory.
    pub compressed: Tally,
    /// The most memory that compressed pages had, in pages.
    pub compressed_memory_peak: u32,
    /// Pages read from files.
    pub file_ins: u64,
    /// Pages written to files.
    pub file_outs: u64,
    /// Messages to pagers.
    pub messages: u64,
    /// Changes from one program to another.
    pub switches: u64,
    /// Entries of page tables made and removed.
    pub mappings: u64,
    /// The most bytes that chains of the reverse map held.
    pub reverse_map_bytes_max: u64,
    /// The most entries of page tables there were at one time.
    pub mappings_max: u64,
    /// The most frames that were in use at one time.
    pub frames_used_max: u32,
    /// Uses of pages that the trace does not say are mapped, or mapped so. They were let pass.
    pub irregular: u64,
    /// Bytes of files that system calls copied to and from programs.
    pub bytes_copied: u64,
    /// The programs, in the order of the scenario.
    pub programs: Vec<ProgramOutcome>,
    /// The disks: swap, and files if those are on another.
    pub disks: Vec<DiskUse>,
    /// The samples that were asked for, at equal distances.
    pub samples: Vec<Sample>,
    /// The core's decisions, if that was asked for.
    pub decisions: Vec<Decision>,
    /// The decisions of load control about whole tasks, where each program has a memory of its own,
    /// in order.
    pub suspensions: Vec<Suspension>,
}

impl Outcome {
    /// The count of one counter; zero of one that only live runs have.
    pub fn count(&self, counter: Counter) -> u64 {
        match counter {
            Counter::SwapIns => self.swap_ins,
            Counter::SwapOuts => self.swap_outs,
            Counter::FileIns => self.file_ins,
            Counter::FileOuts => self.file_outs,
            Counter::Messages => self.messages,
            Counter::Switches => self.switches,
            Counter::ReverseMapBytesMax => self.reverse_map_bytes_max,
            Counter::Irregular => self.irregular,
            Counter::CompressedPages => self.compressed.compressed,
            Counter::CompressedBytes => self.compressed.compressed_bytes,
            Counter::IncompressiblePages => self.compressed.refused,
            Counter::DecompressedPages => self.compressed.decompressed,
            Counter::CompressedMemoryPeak => u64::from(self.compressed_memory_peak),
            Counter::BytesRead => self.swap_pages_read * PAGE_BYTES,
            Counter::BytesWritten => self.swap_pages_written * PAGE_BYTES,
            // What is compressed counts as in use.
            Counter::FramesPeak if self.is_compressing => u64::from(self.frames_used_max),
            of_the_core => self.counters.get(of_the_core).unwrap_or(0),
        }
    }

    /// Writes the decisions, one a line, in the form by which the lab and a live process are
    /// compared.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn write_decisions(&self, out: &mut impl fmt::Write) -> fmt::Result {
        for decision in &self.decisions {
            writeln!(out, "{decision}")?;
        }
        Ok(())
    }
}

/// The outcome of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOutcome {
    /// Its name in the scenario.
    pub name: String,
    /// The start of its first process.
    pub start_ns: u64,
    /// The end of its last process.
    pub end_ns: u64,
    /// Its processes, in the order of the trace.
    pub processes: Vec<ProcessOutcome>,
}

impl ProgramOutcome {
    /// The sum of what `part` says of each process.
    pub fn sum(&self, part: impl Fn(&ProcessOutcome) -> u64) -> u64 {
        self.processes.iter().map(part).sum()
    }

    /// Returns true if it has come to its end, whichever way.
    pub fn has_ended(&self) -> bool {
        !self.processes.is_empty() && !self.processes.iter().any(|process| process.was_cut)
    }
}

/// The outcome of one process. Its times add up to its life if it has one thread; if it has several
/// they are those of all, but for what threads wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOutcome {
    /// The path of its program, where the trace says it.
    pub program: String,
    /// The time at which it started.
    pub start_ns: u64,
    /// The time at which it ended.
    pub end_ns: u64,
    /// On a processor, in the program itself.
    pub user_ns: u64,
    /// On a processor, in the kernel.
    pub system_ns: u64,
    /// Waiting for pages, or for a frame to put them in.
    pub page_wait_ns: u64,
    /// Waiting for the world, or for its children.
    pub think_ns: u64,
    /// Ready to run, and not running.
    pub ready_ns: u64,
    /// Suspended by load control.
    pub suspended_ns: u64,
    /// Faults taken.
    pub faults: u64,
    /// Faults it had to wait for, and pages of files that a system call had to wait for.
    pub waits: u64,
    /// Records done.
    pub records: u64,
    /// True if memory could not serve it, so that it was ended.
    pub was_killed: bool,
    /// True if it was still alive when the time was up.
    pub was_cut: bool,
}

/// A decision of load control about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// The time at which it was made.
    pub time_ns: u64,
    /// The task's process, by its place among all that there are: program by program, and in the
    /// order of their ids when they were recorded.
    pub process: usize,
    /// True if the task is to wait from then on, and false if it is to go on.
    pub is_suspended: bool,
}

/// The state of the world at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The time at which it was taken.
    pub time_ns: u64,
    /// Frames that were free.
    pub frames_free: u32,
    /// Pages on their way to their pagers.
    pub laundry: u32,
    /// Resident pages of files.
    pub external: u32,
    /// Pages each program had mapped, in the order of the scenario. A page that several of its
    /// processes share counts once for each.
    pub resident: Vec<u32>,
    /// Requests waiting or being served at each disk.
    pub queues: Vec<u32>,
    /// Processes that were ready and not running.
    pub ready: u32,
}
