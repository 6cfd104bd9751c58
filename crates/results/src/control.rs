//! Requests to a run while it runs, and the replies: what passes over its control socket.
//!
//! A request is one line of JSON, and so is its reply. [`RunState`] is the reply to `stats`: what
//! the run has, and what each of its tasks has, needs and waits for. [`activity`] counts what a
//! task does, in all and per second. `docs/formats/control-v1.md` describes all of it.

pub mod activity;
mod map;

use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::basis::Bases;
pub use activity::{Counts, Rates};
pub use map::{CELLS_MAX, CELLS_USUAL, Cell, MemoryMap};
pub use tidemark_core::counters::Counter;

/// The name and version of the layout of a [`RunState`].
pub const SCHEMA: &str = "tidemark.control.v1";
/// The longest request, in bytes, with the end of its line.
pub const REQUEST_BYTES_MAX: usize = 4096;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The state of the run.
    Stats,
    /// Changes the memory that all tasks may use together.
    Budget {
        /// Its size.
        bytes: u64,
    },
    /// Stops a task.
    Suspend {
        /// The task.
        pid: u32,
    },
    /// Lets a suspended task go on.
    Resume {
        /// The task.
        pid: u32,
    },
    /// Pages a task out as a whole, and lets it grow again.
    Evict {
        /// The task.
        pid: u32,
    },
    /// Reports the replacement policy, or asks for another.
    Policy {
        /// The policy asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Reports the load control, or changes it.
    LoadControl {
        /// The load control asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// The state of the run as [metrics](crate::metrics).
    Metrics,
    /// The places of a task's pages. The reply is what was drawn last, and a new map is drawn.
    Map {
        /// The task.
        pid: u32,
        /// The number of cells, from 1 to [`CELLS_MAX`]; [`CELLS_USUAL`] if it is not said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cells: Option<u32>,
    },
}

/// The reply to a request: an object with one field, whose name tells which it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The state of the run.
    Stats(Box<RunState>),
    /// The name of the replacement policy.
    Policy(String),
    /// The name of the load control.
    LoadControl(String),
    /// The state of the run in the OpenMetrics format.
    Metrics(String),
    /// The place of each part of a task's memory.
    Map(Box<MemoryMap>),
    /// The request is carried out, or under way, as the line says.
    Done(String),
    /// The request can't be carried out, for the reason that the line says.
    Refused(String),
}

/// The state of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The process id of `tidemark run`.
    pub pid: u32,
    /// The process id of the program that it started.
    pub program_pid: Option<u32>,
    /// The time since it began, in seconds.
    pub elapsed_s: f64,
    /// The replacement policy.
    pub policy: String,
    /// The store of pages that leave.
    pub store: String,
    /// The load control.
    #[serde(default)]
    pub load_control: String,
    /// The rule by which memory is divided among tasks.
    #[serde(default)]
    pub division: String,
    /// The memory of all tasks together.
    pub memory: MemoryState,
    /// The swap file.
    pub swap: SwapState,
    /// The jobs, if there is a job server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobsState>,
    /// The bases of the numbers that are not counted.
    #[serde(default, skip_serializing_if = "Bases::is_empty")]
    pub basis: Bases,
    /// The counts of all tasks that are there and of those that have ended.
    pub counts: Counts,
    /// The rates of the tasks that are there, per second.
    pub rates: Rates,
    /// The tasks that are there, in the order in which they came.
    pub tasks: Vec<Task>,
}

/// The memory of all tasks together, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryState {
    /// The budget.
    pub budget_bytes: u64,
    /// The most that the budget can be while this run lasts.
    pub budget_bytes_max: u64,
    /// Memory in frames, and compressed pages.
    pub resident_bytes: u64,
    /// The most resident memory at a time.
    pub resident_bytes_peak: u64,
    /// The part of the budget that no task has.
    pub unassigned_bytes: u64,
    /// The memory that is left to each task that uses so much.
    #[serde(default)]
    pub task_bytes_min: u64,
    /// Memory beside it that is not managed, with that of programs that can't be managed.
    pub unmanaged_bytes: u64,
    /// Memory of the engines themselves.
    pub engine_bytes: u64,
}

/// The swap file, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapState {
    /// Its size.
    pub bytes: u64,
    /// The part of it that pages have.
    pub used_bytes: u64,
}

/// The jobs that a job server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobsState {
    /// The most at a time that were asked for.
    pub slots: u32,
    /// The jobs that may be at work now, by the memory that there is.
    pub allowed: u32,
    /// The jobs that are at work, with the one that needs no token.
    pub at_work: u32,
}

/// A managed process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The process id.
    pub pid: u32,
    /// The process id of the process that forked it, if that one was managed.
    pub parent: Option<u32>,
    /// The name of the program.
    pub program: String,
    /// The state it is in.
    pub state: TaskState,
    /// The thing that it waits for, as far as the supervisor knows.
    pub waits_for: Option<Wait>,
    /// The time since its engine began, in seconds.
    pub elapsed_s: f64,
    /// The memory that it may use.
    pub budget_bytes: u64,
    /// The memory that it asks for in all; zero if it does not ask.
    pub asked_bytes: u64,
    /// Memory in frames, and compressed pages.
    pub resident_bytes: u64,
    /// The part of its budget that memory of other kinds takes.
    pub beside_bytes: u64,
    /// Memory that is not managed.
    pub unmanaged_bytes: u64,
    /// Memory of the engine itself.
    pub engine_bytes: u64,
    /// Address space under management.
    pub managed_bytes: u64,
    /// Pages that can't be moved for now.
    pub pinned_pages: u64,
    /// Pages on their way to the store.
    pub stores_under_way: u64,
    /// The counts since it began.
    pub counts: Counts,
    /// The counts per second, over the last second or two.
    pub rates: Rates,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// The task has said hello, and waits for its first frames.
    Coming,
    /// The task is neither being paged out nor suspended.
    Running,
    /// The task is being paged out.
    Evicting,
    /// The task waits, out of memory, by request or by load control.
    Suspended,
}

/// A thing that a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Its first frames.
    Admission,
    /// More memory than it may use: it asks for it.
    Memory,
    /// The store: its threads spent most of the last seconds waiting for pages.
    Store,
    /// A request to resume it.
    Resume,
    /// Its turn: load control lets it go on.
    Turn,
}

impl Request {
    /// The request on a line.
    ///
    /// # Errors
    /// The line is not a request.
    pub fn parse(line: &[u8]) -> Result<Request, Refusal> {
        serde_json::from_slice(line)
            .map_err(|error| Refusal::new(format!("not a request: {error}")))
    }

    /// The line that says it.
    pub fn to_line(&self) -> String {
        to_line(self)
    }
}

impl Reply {
    /// The reply on a line.
    ///
    /// # Errors
    /// The line is not a reply.
    pub fn parse(line: &[u8]) -> Result<Reply, Refusal> {
        serde_json::from_slice(line).map_err(|error| Refusal::new(format!("not a reply: {error}")))
    }

    /// The line that says it.
    pub fn to_line(&self) -> String {
        to_line(self)
    }
}

impl From<Result<String, Refusal>> for Reply {
    fn from(outcome: Result<String, Refusal>) -> Reply {
        match outcome {
            Ok(line) => Reply::Done(line),
            Err(refusal) => Reply::Refused(refusal.to_string()),
        }
    }
}

impl TaskState {
    /// The name in records and tables.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Coming => "coming",
            TaskState::Running => "running",
            TaskState::Evicting => "evicting",
            TaskState::Suspended => "suspended",
        }
    }
}

impl Wait {
    /// The name in records and tables.
    pub fn name(self) -> &'static str {
        match self {
            Wait::Admission => "admission",
            Wait::Memory => "memory",
            Wait::Store => "store",
            Wait::Resume => "resume",
            Wait::Turn => "turn",
        }
    }
}

fn to_line(message: &impl Serialize) -> String {
    // No message has a line's end in it: in strings it is escaped.
    let mut line = serde_json::to_string(message).expect("every key is a string");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests;
