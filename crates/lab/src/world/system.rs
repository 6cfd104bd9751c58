//! A memory system: a policy, how memory is run, and what its machine's work costs.

use tidemark_core::kernels::SwapAhead;
use tidemark_core::time::{STEP_NS, STEP_TICK_NS};
use tidemark_core::vm::Config;

use crate::analysis::simulate::MachineKind;

/// A complete memory system on its machine.
#[derive(Clone, Debug)]
pub struct System {
    /// The name on the command line and in reports: lower case, hyphens.
    pub name: &'static str,
    /// One line of meaning.
    pub summary: &'static str,
    /// The systems and publications it follows, oldest first.
    pub lineage: &'static [&'static str],
    /// The policy's name in the core's registry.
    pub policy: &'static str,
    /// The policy's knobs, where they differ from their defaults.
    pub knobs: &'static [(&'static str, u64)],
    /// The configuration of memory, by its frames: watermarks, clusters, laundry, read-ahead.
    pub config: fn(u32) -> Config,
    /// The pages read with one from the swap store on a disk that seeks, if that is something else.
    pub swap_ahead_seeking: Option<SwapAhead>,
    /// The costs of the work of its machine and its kernel.
    pub costs: Costs,
    /// The name of its load control; `none` for none.
    pub load: &'static str,
    /// The source of the answers to the policy's questions: reference bits, or soft faults.
    pub eyes: MachineKind,
    /// True if each process has a memory of its own that manages only its private memory, as an
    /// engine inside it has: see [`Scenario::is_divided`](super::Scenario::is_divided).
    pub is_divided: bool,
    /// The interval at which the memory gets the time, in nanoseconds; 0: never.
    pub tick_ns: u64,
}

impl System {
    /// This system on a machine on which an instruction takes `instruction_ps` picoseconds.
    pub fn with_instructions_of(&self, instruction_ps: u64) -> System {
        System {
            costs: Costs {
                instruction_ps,
                ..self.costs
            },
            ..self.clone()
        }
    }

    /// This system with a clock that counts faults alone, for [`Scenario::is_in_step`].
    ///
    /// [`Scenario::is_in_step`]: super::Scenario::is_in_step
    pub fn in_step(&self) -> System {
        System {
            costs: Costs {
                instruction_ps: 0,
                reference_ps: 0,
                fault_ns: STEP_NS,
                ..Costs::FREE
            },
            tick_ns: STEP_TICK_NS,
            ..self.clone()
        }
    }
}

/// The costs of work, in processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// An instruction, for traces that count instructions; in picoseconds.
    pub instruction_ps: u64,
    /// A reference, for traces that count nothing but those; in picoseconds.
    pub reference_ps: u64,
    /// Taking a fault and returning from it, whatever it comes to.
    pub fault_ns: u64,
    /// Filling a page with zeros.
    pub zero_ns: u64,
    /// Copying a page.
    pub copy_ns: u64,
    /// Entering a page in a page table, or removing it.
    pub page_table_ns: u64,
    /// Entering a mapping in the reverse map, or removing it.
    pub reverse_map_ns: u64,
    /// Answering a question of the policy: looking at one frame.
    pub question_ns: u64,
    /// Starting and ending a request to the swap store.
    pub swap_request_ns: u64,
    /// Starting and ending a request to a file.
    pub file_request_ns: u64,
    /// Compressing a page, or trying to.
    pub compress_ns: u64,
    /// Decompressing one.
    pub decompress_ns: u64,
    /// Sending a message and receiving it.
    pub message_ns: u64,
    /// Messages that a request to the swap store takes: none where that is inside the kernel.
    pub messages_per_swap_request: u32,
    /// Messages that a request to a file takes.
    pub messages_per_file_request: u32,
    /// Changing from one program to another.
    pub switch_ns: u64,
    /// Making a process.
    pub fork_ns: u64,
}

impl Costs {
    /// Nothing costs anything but references, which take a microsecond or an instruction's
    /// nanosecond each. For counting.
    pub const FREE: Costs = Costs {
        instruction_ps: 1000,
        reference_ps: 1_000_000,
        fault_ns: 0,
        zero_ns: 0,
        copy_ns: 0,
        page_table_ns: 0,
        reverse_map_ns: 0,
        question_ns: 0,
        swap_request_ns: 0,
        file_request_ns: 0,
        compress_ns: 0,
        decompress_ns: 0,
        message_ns: 0,
        messages_per_swap_request: 0,
        messages_per_file_request: 0,
        switch_ns: 0,
        fork_ns: 0,
    };
}
