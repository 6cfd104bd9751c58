//! Several processes at once: the same workload, each on an array of its own.
//!
//! The members start, say `ready`, and begin together when the leader tells them. The leader
//! touches no memory meanwhile.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::Order;
use super::outcome::WorkloadOutcome;

/// Runs `order.procs` members and returns what they did together.
pub fn measure(order: &Order) -> Result<WorkloadOutcome, String> {
    let mut members = Team {
        children: Vec::new(),
    };
    for number in 0..order.procs {
        members.children.push(start_member(order, number)?);
    }
    let mut outputs = Vec::new();
    for child in &mut members.children {
        let stdout = child
            .stdout
            .take()
            .expect("members are started with a pipe");
        let mut reader = BufReader::new(stdout);
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .map_err(|error| format!("a member can't be read: {error}"))?;
        if line != "ready\n" {
            return Err(format!(
                "a member said `{}` where `ready` was due",
                line.trim_end()
            ));
        }
        outputs.push(reader);
    }
    let start = Instant::now();
    for child in &mut members.children {
        let mut stdin = child.stdin.take().expect("members are started with a pipe");
        stdin
            .write_all(b"\n")
            .map_err(|error| format!("a member can't be started: {error}"))?;
    }
    let mut outcomes = Vec::new();
    for (child, mut reader) in members.children.iter_mut().zip(outputs) {
        let mut output = String::new();
        reader
            .read_to_string(&mut output)
            .map_err(|error| format!("a member can't be read: {error}"))?;
        let status = child
            .wait()
            .map_err(|error| format!("a member can't be waited for: {error}"))?;
        if !status.success() {
            return Err(format!("a member ended with {status}"));
        }
        outcomes.push(WorkloadOutcome::from_output(&output).ok_or("a member gave no outcome")?);
    }
    Ok(together(&outcomes, start.elapsed().as_secs_f64()))
}

/// Says `ready` and waits for a line on standard input.
pub fn wait_for_signal() -> Result<(), String> {
    std::io::stdout()
        .write_all(b"ready\n")
        .map_err(|error| format!("standard output can't be written: {error}"))?;
    // Read into the stack: the heap may be paged by the time a system call gets it.
    let mut byte = [0u8; 1];
    match std::io::stdin().lock().read(&mut byte) {
        Ok(1) => Ok(()),
        Ok(_) => Err("standard input ended before the start".to_owned()),
        Err(error) => Err(format!("standard input can't be read: {error}")),
    }
}

/// Members under way; those that are left are ended with the team.
struct Team {
    children: Vec<Child>,
}

impl Drop for Team {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Fails for those that are over, which is the usual case.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start_member(order: &Order, number: u32) -> Result<Child, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("no path to this program: {error}"))?;
    let mut command = Command::new(program);
    command
        .arg("workload")
        .arg(order.workload.name())
        .arg("--on-signal");
    command.arg("--bytes").arg(order.bytes.to_string());
    command
        .arg("--seed")
        .arg(order.seed.wrapping_add(u64::from(number)).to_string())
        .args(["--contents", order.contents.name()]);
    if let Some(laps) = order.laps {
        command.arg("--laps").arg(laps.to_string());
    }
    if let Some(scratch) = &order.scratch {
        command.arg("--scratch").arg(scratch);
    }
    if order.mapped {
        command.arg("--mapped");
    }
    if !order.words.is_empty() {
        command.arg("--").args(&order.words);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
        .spawn()
        .map_err(|error| format!("a member can't be started: {error}"))
}

/// Sums what can be summed; the elapsed time is the leader's, from the start to the last end.
fn together(outcomes: &[WorkloadOutcome], elapsed_s: f64) -> WorkloadOutcome {
    let checksums: Vec<&str> = outcomes
        .iter()
        .map(|outcome| outcome.checksum.as_str())
        .collect();
    WorkloadOutcome {
        checksum: checksums.join("-"),
        elapsed_s,
        fill_s: outcomes
            .iter()
            .map(|outcome| outcome.fill_s)
            .fold(0.0, f64::max),
        accesses: outcomes.iter().map(|outcome| outcome.accesses).sum(),
        read_bytes: outcomes.iter().map(|outcome| outcome.read_bytes).sum(),
    }
}
