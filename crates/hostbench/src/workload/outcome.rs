//! The report of a workload: one line of JSON on standard output.

use serde::{Deserialize, Serialize};

use super::array::ArrayRun;

/// One run of a workload, as it saw it itself.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct WorkloadOutcome {
    /// All that was read, folded into a number; equal under every contender.
    pub checksum: String,
    /// The measured phase: allocation, first touch and all accesses. Not process start.
    pub elapsed_s: f64,
    /// Of that, up to the end of the first touch. Zero for the real programs.
    pub fill_s: f64,
    /// Accesses after the first touch. Zero for the real programs.
    pub accesses: u64,
    /// Bytes the kernel read from disks for this process, if it counts them.
    pub read_bytes: Option<u64>,
}

impl WorkloadOutcome {
    /// The outcome of one run over an array.
    pub fn of_array_run(array_run: &ArrayRun) -> WorkloadOutcome {
        WorkloadOutcome {
            checksum: format!("{:016x}", array_run.checksum),
            elapsed_s: (array_run.fill + array_run.access).as_secs_f64(),
            fill_s: array_run.fill.as_secs_f64(),
            accesses: array_run.accesses,
            read_bytes: own_read_bytes(),
        }
    }

    /// The line that [`from_output`](Self::from_output) finds again.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("numbers and a string always have a JSON form")
    }

    /// Finds the outcome in what a workload printed: its last line.
    pub fn from_output(output: &str) -> Option<WorkloadOutcome> {
        serde_json::from_str(output.lines().next_back()?).ok()
    }
}

/// `read_bytes` of `/proc/self/io`: what this process had fetched from disks, swap included.
fn own_read_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_comes_back_from_its_line() {
        let outcome = WorkloadOutcome {
            checksum: "00ff".to_owned(),
            elapsed_s: 1.5,
            fill_s: 0.25,
            accesses: 7,
            read_bytes: Some(4096),
        };
        let output = format!("a warning\n{}\n", outcome.to_line());
        assert_eq!(WorkloadOutcome::from_output(&output), Some(outcome));
        assert_eq!(WorkloadOutcome::from_output("no outcome here"), None);
        assert_eq!(WorkloadOutcome::from_output(""), None);
    }
}
