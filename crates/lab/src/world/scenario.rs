//! A scenario for a system: programs, and the rest of the machine.

use std::borrow::Cow;
use std::sync::Arc;

use tidemark_core::kernels::Kernel;
use tidemark_core::load::{unlimited, working_set};
use tidemark_core::memory::address_space::Advice;
use tidemark_core::vm::Config;
use tidemark_partition::Divider;

use super::disk::DiskModel;
use super::script::Script;
use super::sizes::PageSizes;

/// Programs on a machine of a given size.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The size of memory, in pages.
    pub memory_pages: u32,
    /// The part of it that programs can't have: the kernel's share.
    pub wired_pages: u32,
    /// The programs that run.
    pub programs: Vec<Program>,
    /// The number of processors.
    pub processors: u32,
    /// The rule by which the next thread is chosen.
    pub scheduler: Scheduler,
    /// The disks on which pages are kept.
    pub disks: Disks,
    /// The sizes to which pages compress, if those that leave are compressed first, in memory;
    /// `None`: they go to the swap disk as they are.
    pub compressed: Option<Arc<PageSizes>>,
    /// True if compressed pages have no swap disk behind them. A process for which memory is too
    /// little is ended.
    pub is_diskless: bool,
    /// Pages that each process has beside what it is given and that count, up to a quarter of that:
    /// frames and compressed pages make do with the rest.
    pub beside_pages: u32,
    /// The seed of random numbers: the policy's, and the disks'.
    pub seed: u64,
    /// A policy in place of the system's own.
    pub policy: Option<PolicyChoice>,
    /// A load control in place of the system's own, by name.
    pub load: Option<String>,
    /// The load control's knobs, where they differ from their defaults.
    pub load_knobs: Vec<(String, u64)>,
    /// Requests of other sizes than the system's own.
    pub clusters: Clusters,
    /// The simulated time at which the run is given up; `None`: never.
    pub limit_ns: Option<u64>,
    /// The measures to be taken.
    pub watch: Watch,
    /// True if each anonymous mapping is memory of its own, even where it continues another. A
    /// kernel that maps downwards gives neighbours that a recorder, which maps upwards, has not.
    pub is_apart: bool,
    /// True if each program that is started or executed has a memory of its own, which frames are
    /// divided among as `tidemark run` does it. If not, all processes share one.
    pub is_divided: bool,
    /// The way in which they are divided then.
    pub divider: Divider,
    /// True if threads of a process run beside each other, as far as their recording allows. If
    /// not, they take turns as they did when they were recorded.
    pub are_threads_overlapping: bool,
    /// True if time is counted in faults, each of which is over, with all that follows from it,
    /// before a program goes on. A page that is mapped counts as modified. Wants a system that
    /// [`System::in_step`](super::System::in_step) has made, and disks without delays.
    pub is_in_step: bool,
}

impl Scenario {
    /// These programs in memory of this number of pages; one processor, round robin, and one disk
    /// of 5 ms for a request.
    pub fn new(memory_pages: u32, programs: Vec<Program>) -> Scenario {
        Scenario {
            memory_pages,
            wired_pages: 0,
            programs,
            processors: 1,
            scheduler: Scheduler::default(),
            disks: Disks {
                swap: DiskModel::Fixed {
                    request_ns: 5_000_000,
                    page_ns: 100_000,
                    channels: 1,
                },
                files: None,
            },
            compressed: None,
            is_diskless: false,
            beside_pages: 0,
            seed: 1,
            policy: None,
            load: None,
            load_knobs: Vec::new(),
            clusters: Clusters::default(),
            limit_ns: None,
            watch: Watch::default(),
            is_apart: false,
            is_divided: false,
            divider: Divider::default(),
            are_threads_overlapping: false,
            is_in_step: false,
        }
    }
}

impl Scenario {
    /// The name of the load control of whole tasks, where memory is divided: that of `tidemark run`
    /// if no other is asked for.
    pub(super) fn load_of_tasks(&self) -> &str {
        let usual = match self.is_in_step {
            // A process waits for nothing but its own faults.
            true => unlimited::DESCRIPTION.name,
            false => working_set::DESCRIPTION.name,
        };
        self.load.as_deref().unwrap_or(usual)
    }
}

/// One program: a trace, and when and how it runs. Its processes start as the trace says.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name in reports.
    pub name: String,
    /// The script that it runs.
    pub script: Arc<Script>,
    /// The time at which it starts.
    pub start_ns: u64,
    /// Its share of the processors against the others': [`Program::WEIGHT`] is the usual. Scales
    /// quanta where turns are taken, and the clock by which turns are given where that is fair.
    pub weight: u32,
    /// The advice it gives on the use of all its memory, whatever it did when it was recorded.
    pub advice: Advice,
    /// Files with this in their path are its own, though other programs have some of that name:
    /// copies of a program that are to work in folders of their own.
    pub own_files: Option<String>,
}

impl Program {
    /// The usual [`weight`](Self::weight).
    pub const WEIGHT: u32 = 1024;

    /// A program that starts at once, with the usual weight.
    pub fn new(name: impl Into<String>, script: Arc<Script>) -> Program {
        Program {
            name: name.into(),
            script,
            start_ns: 0,
            weight: Program::WEIGHT,
            advice: Advice::Normal,
            own_files: None,
        }
    }

    /// The key that tells the file.
    pub(super) fn file_key<'a>(&self, number: usize, path: &'a str) -> Cow<'a, str> {
        match &self.own_files {
            Some(part) if path.contains(part) => Cow::Owned(format!("{path} of {number}")),
            _ => Cow::Borrowed(path),
        }
    }
}

/// The rule by which the next thread is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The thread that has waited longest, for one quantum.
    RoundRobin {
        /// The longest turn while others wait.
        quantum_ns: u64,
    },
    /// The thread that has run least, by a clock that goes slower the greater the weight.
    Fair {
        /// The longest turn while others wait.
        quantum_ns: u64,
    },
}

impl Scheduler {
    /// The longest turn where nothing else is asked for.
    pub const QUANTUM_NS: u64 = 10_000_000;
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        Scheduler::RoundRobin {
            quantum_ns: Scheduler::QUANTUM_NS,
        }
    }
}

/// The disks on which pages are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disks {
    /// The disk of anonymous memory.
    pub swap: DiskModel,
    /// The disk of files; `None`: on the same disk.
    pub files: Option<DiskModel>,
}

/// The number of pages that go in one request, where that is not to be as the system has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clusters {
    /// The most pages in one request.
    pub most: Option<u32>,
    /// The number of pages read around a fault that belongs to no stream.
    pub around: Option<u32>,
    /// The distance that reads run in front of a sequential reader; 0: not at all.
    pub ahead: Option<u32>,
}

impl Clusters {
    /// The system's way with memory, with requests of these sizes.
    pub(super) fn apply(&self, config: Config) -> Config {
        let cluster_pages = self.most.unwrap_or(config.cluster_pages);
        let around = self.around.unwrap_or(config.default_cluster_pages);
        let swap_ahead = config.kernel.swap_ahead;
        let swap_around = self.around.or(swap_ahead.pages_max());
        Config {
            cluster_pages,
            default_cluster_pages: around.min(cluster_pages),
            ahead_pages_max: self.ahead.unwrap_or(config.ahead_pages_max),
            kernel: Kernel {
                swap_ahead: swap_ahead.resized(swap_around.unwrap_or(1).min(cluster_pages)),
                ..config.kernel
            },
            ..config
        }
    }
}

/// A policy and its knobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyChoice {
    /// The name in the core's registry.
    pub name: String,
    /// The knobs, where they differ from their defaults.
    pub knobs: Vec<(String, u64)>,
}

/// The measures kept of a run beside its sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// The first distance between samples, in nanoseconds; 0: none are. When there are
    /// twice [`SAMPLES`](Self::SAMPLES), every other is dropped, and they are taken half as often.
    pub sample_ns: u64,
    /// True if the decisions of the core are kept.
    pub is_logging: bool,
}

impl Watch {
    /// A run that is long enough has at least this number of samples, and less than twice the
    /// number.
    pub const SAMPLES: usize = 512;
}
