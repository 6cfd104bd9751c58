//! The thrashing curve: what several programs do in a second, over how much they want of memory.

use serde::Serialize;

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.thrashing.v1";

/// The measured points of all contenders.
#[derive(Clone, Debug, Serialize)]
pub struct Thrashing {
    /// The layout: [`SCHEMA`].
    pub schema: &'static str,
    /// The version of the command that wrote the record.
    pub tidemark: &'static str,
    /// The memory of all tasks together.
    pub memory_bytes: u64,
    /// The working set of each task.
    pub size_bytes: u64,
    /// The accesses of each task, as a multiple of the pages of its working set.
    pub laps: u32,
    /// The points, by rising [`load`](ThrashPoint::load).
    pub points: Vec<ThrashPoint>,
    /// The contenders that failed or were given up, each with the load and the reason.
    pub left_out: Vec<String>,
}

/// One contender with a number of tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThrashPoint {
    /// The contender.
    pub contender: String,
    /// The number of tasks that worked at the same time.
    pub tasks: u32,
    /// The working sets of all tasks together, as a multiple of memory.
    pub load: f64,
    /// The time until the last task was done, in seconds: the median of all rounds.
    pub elapsed_s: f64,
    /// Page accesses of all tasks together in a second, first touches included.
    pub accesses_per_s: f64,
    /// Pages read back.
    pub page_ins: u64,
}

impl Thrashing {
    /// The contenders in the order in which they first come, each with its points.
    pub fn lines(&self) -> Vec<(&str, Vec<&ThrashPoint>)> {
        let mut lines: Vec<(&str, Vec<&ThrashPoint>)> = vec![];
        for point in &self.points {
            match lines.iter_mut().find(|(name, _)| *name == point.contender) {
                Some((_, points)) => points.push(point),
                None => lines.push((&point.contender, vec![point])),
            }
        }
        lines
    }
}
