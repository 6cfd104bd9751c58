//! The timeline of a run: its tasks' rates and memory over time, and what was asked of it, in the
//! trace event format of Chrome, which Perfetto opens.
//!
//! It is an array of events, and grows as the run goes on: that of a run that was killed lacks its
//! end, which viewers let pass. A counter is written when it has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use serde_json::{Value, json};
use tidemark_results::control::{Counter, Counts, RunState, Task, TaskState};
use tidemark_results::{Refusal, refuse};

use crate::program::plain;

/// The name of the time for which a task is kept out of memory.
const SUSPENDED: &str = "suspended";

/// A timeline that is being written.
#[derive(Debug)]
pub struct Timeline {
    file: File,
    began_ns: u64,
    /// The events of now, before they are written.
    events: String,
    is_begun: bool,
    /// The state of each task that was written last.
    tasks: BTreeMap<u32, Past>,
    /// The counters of the run that were written last.
    run: BTreeMap<&'static str, Value>,
    /// The tasks that are suspended.
    suspended: BTreeSet<u32>,
    /// The reason for which it ended early.
    failure: Option<String>,
}

/// The part of the past of a task that its next events depend on.
#[derive(Debug)]
struct Past {
    at_ns: u64,
    counts: Counts,
    program: String,
    last: BTreeMap<&'static str, Value>,
}

impl Timeline {
    /// A timeline in `file`, of a run that begins at `began_ns` on the monotonic clock.
    ///
    /// # Errors
    /// The file is none that takes what is written at once: the supervisor waits for no reader.
    pub fn begin(file: OwnedFd, began_ns: u64) -> Result<Timeline, Refusal> {
        let file = File::from(file);
        match file.metadata() {
            Ok(found) if found.is_file() => {}
            Ok(_) => refuse!("the timeline is to be no plain file; name a file on a disk"),
            Err(error) => refuse!("the timeline: {}", plain(&error)),
        }
        let mut timeline = Timeline {
            file,
            began_ns,
            events: String::new(),
            is_begun: false,
            tasks: BTreeMap::new(),
            run: BTreeMap::new(),
            suspended: BTreeSet::new(),
            failure: None,
        };
        timeline.name(std::process::id(), "tidemark run");
        Ok(timeline)
    }

    /// Writes down how tasks stand now, and the run as a whole.
    pub fn note(&mut self, state: &RunState, now_ns: u64) {
        self.note_run(state, now_ns);
        for task in &state.tasks {
            self.note_task(task, now_ns);
        }
        self.tasks
            .retain(|pid, _| state.tasks.iter().any(|task| task.pid == *pid));
        let is_there = |pid: &u32| state.tasks.iter().any(|task| task.pid == *pid);
        let suspended = std::mem::take(&mut self.suspended);
        let (there, gone): (BTreeSet<u32>, BTreeSet<u32>) =
            suspended.into_iter().partition(is_there);
        self.suspended = there;
        for pid in gone {
            self.end_span(pid, "the end of the task", now_ns);
        }
        self.write();
    }

    /// Writes down that something was done to a task, or else to the whole run, and on whose
    /// account.
    pub fn mark(&mut self, name: &str, pid: Option<u32>, by: &str, now_ns: u64) {
        let scope = if pid.is_some() { "p" } else { "g" };
        let pid = pid.unwrap_or(std::process::id());
        let ts = self.time_us(now_ns);
        self.push(&json!({
            "name": name, "ph": "i", "s": scope, "pid": pid, "tid": pid, "ts": ts,
            "args": { "by": by },
        }));
        self.write();
    }

    /// Writes down that a task is suspended from now on, or no longer, and on whose account.
    pub fn mark_suspension(&mut self, pid: u32, is_suspended: bool, by: &str, now_ns: u64) {
        if is_suspended && self.suspended.insert(pid) {
            let ts = self.time_us(now_ns);
            self.push(&json!({
                "name": SUSPENDED, "ph": "B", "pid": pid, "tid": pid, "ts": ts,
                "args": { "by": by },
            }));
        } else if !is_suspended && self.suspended.remove(&pid) {
            self.end_span(pid, by, now_ns);
        }
        self.write();
    }

    /// Writes the end. A note, if not everything could be written.
    pub fn end(mut self, now_ns: u64) -> Option<String> {
        for pid in std::mem::take(&mut self.suspended) {
            self.end_span(pid, "the end of the run", now_ns);
        }
        self.events.push_str("\n]\n");
        self.write();
        self.failure
    }

    fn end_span(&mut self, pid: u32, by: &str, now_ns: u64) {
        let ts = self.time_us(now_ns);
        self.push(&json!({
            "name": SUSPENDED, "ph": "E", "pid": pid, "tid": pid, "ts": ts,
            "args": { "resumed by": by },
        }));
    }

    /// Writes down what all tasks have and do together.
    fn note_run(&mut self, state: &RunState, now_ns: u64) {
        let pid = std::process::id();
        let rate = |counter| state.rates.get(counter).round() as u64;
        let suspended = state.tasks.iter();
        let suspended = suspended.filter(|task| task.state == TaskState::Suspended);
        let suspended = suspended.count();
        let memory = &state.memory;
        let counters = vec![
            ("faults per second", faults(rate)),
            ("pages per second", pages(rate)),
            (
                "memory",
                json!({ "resident bytes": memory.resident_bytes,
                    "unmanaged bytes": memory.unmanaged_bytes,
                    "engines' bytes": memory.engine_bytes }),
            ),
            ("budget", json!({ "bytes": memory.budget_bytes })),
            ("swap", json!({ "used bytes": state.swap.used_bytes })),
            (
                "tasks",
                json!({ "running": state.tasks.len() - suspended, "suspended": suspended }),
            ),
        ];
        let mut last = std::mem::take(&mut self.run);
        self.push_changed(pid, counters, &mut last, now_ns);
        self.run = last;
    }

    /// Writes those counters that have changed.
    fn push_changed(
        &mut self,
        pid: u32,
        mut counters: Vec<(&'static str, Value)>,
        last: &mut BTreeMap<&'static str, Value>,
        now_ns: u64,
    ) {
        counters.retain(|(name, values)| last.get(name) != Some(values));
        last.extend(counters.iter().cloned());
        let ts = self.time_us(now_ns);
        for (name, values) in counters {
            self.push(&json!({ "name": name, "ph": "C", "pid": pid, "ts": ts, "args": values }));
        }
    }

    fn note_task(&mut self, task: &Task, now_ns: u64) {
        let pid = task.pid;
        let past = self.tasks.entry(pid).or_insert_with(|| Past {
            at_ns: now_ns,
            counts: task.counts,
            program: String::new(),
            last: BTreeMap::new(),
        });
        let is_new = past.program != task.program;
        past.program.clone_from(&task.program);
        let rates = task.counts.since(&past.counts, now_ns - past.at_ns);
        (past.at_ns, past.counts) = (now_ns, task.counts);
        let rate = |counter| rates.get(counter).round() as u64;
        let counters = vec![
            ("faults per second", faults(rate)),
            ("pages per second", pages(rate)),
            ("memory", json!({ "resident bytes": task.resident_bytes })),
            ("budget", json!({ "bytes": task.budget_bytes })),
        ];
        let mut last = std::mem::take(&mut past.last);
        if is_new {
            self.name(pid, &task.program);
        }
        self.push_changed(pid, counters, &mut last, now_ns);
        if let Some(past) = self.tasks.get_mut(&pid) {
            past.last = last;
        }
    }

    fn name(&mut self, pid: u32, name: &str) {
        self.push(&json!({
            "name": "process_name", "ph": "M", "pid": pid, "args": { "name": name },
        }));
    }

    fn push(&mut self, event: &Value) {
        let before = if self.is_begun { ",\n" } else { "[\n" };
        self.is_begun = true;
        self.events.push_str(before);
        self.events.push_str(&event.to_string());
    }

    fn write(&mut self) {
        let events = std::mem::take(&mut self.events);
        if self.failure.is_none()
            && let Err(error) = self.file.write_all(events.as_bytes())
        {
            let error = plain(&error);
            self.failure = Some(format!("the timeline ends before the run: {error}"));
        }
    }

    /// Microseconds since the beginning, as viewers count.
    fn time_us(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.began_ns) / 1000
    }
}

/// Faults by kind, in the words of the record of a run.
fn faults(rate: impl Fn(Counter) -> u64) -> Value {
    json!({
        "soft": rate(Counter::SoftFaults),
        "zero fill": rate(Counter::ZeroFills),
        "copy": rate(Counter::CowFaults),
        "page-in": rate(Counter::PageInFaults),
    })
}

fn pages(rate: impl Fn(Counter) -> u64) -> Value {
    json!({ "in": rate(Counter::PageIns), "out": rate(Counter::PageOuts) })
}
