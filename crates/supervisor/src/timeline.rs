//! The timeline of a run: its tasks' rates and memory over time, and what was asked of it, in the
//! trace event format of Chrome, which Perfetto opens.
//!
//! It is an array of events, and grows as the run goes on: that of a run that was killed lacks its
//! end, which viewers let pass. A counter is written when it has changed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use serde_json::{Value, json};
use tidemark_results::control::{Counter, Counts, RunState, Task};
use tidemark_results::{Refusal, refuse};

use crate::program::plain;

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
    /// The file is none that takes what is written at once: the supervisor waits for nobody.
    pub fn begin(file: OwnedFd, began_ns: u64) -> Result<Timeline, Refusal> {
        let file = File::from(file);
        match file.metadata() {
            Ok(found) if found.is_file() => {}
            Ok(_) => refuse!("`--timeline`: not a plain file; name a file on a disk"),
            Err(error) => refuse!("`--timeline`: {}", plain(&error)),
        }
        let mut timeline = Timeline {
            file,
            began_ns,
            events: String::new(),
            is_begun: false,
            tasks: BTreeMap::new(),
            failure: None,
        };
        timeline.name(std::process::id(), "tidemark run");
        Ok(timeline)
    }

    /// Writes down how tasks stand now.
    pub fn note(&mut self, state: &RunState, now_ns: u64) {
        for task in &state.tasks {
            self.note_task(task, now_ns);
        }
        self.tasks
            .retain(|pid, _| state.tasks.iter().any(|task| task.pid == *pid));
        self.write();
    }

    /// Writes down that something was done: to a task, or else to the whole run.
    pub fn mark(&mut self, name: &str, pid: Option<u32>, now_ns: u64) {
        let scope = if pid.is_some() { "p" } else { "g" };
        let pid = pid.unwrap_or(std::process::id());
        let ts = self.time_us(now_ns);
        self.push(&json!({
            "name": name, "ph": "i", "s": scope, "pid": pid, "tid": pid, "ts": ts,
        }));
        self.write();
    }

    /// Writes the end. A note, if not everything could be written.
    pub fn end(mut self) -> Option<String> {
        self.events.push_str("\n]\n");
        self.write();
        self.failure
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
        let counters = [
            (
                "faults per second",
                json!({
                    "minor": rate(Counter::SoftFaults),
                    "zero fill": rate(Counter::ZeroFills),
                    "copy": rate(Counter::CowFaults),
                    "major": rate(Counter::PageInFaults),
                }),
            ),
            (
                "pages per second",
                json!({ "in": rate(Counter::PageIns), "out": rate(Counter::PageOuts) }),
            ),
            ("memory", json!({ "resident bytes": task.resident_bytes })),
            ("budget", json!({ "bytes": task.budget_bytes })),
        ];
        let changed: Vec<(&str, Value)> = counters
            .into_iter()
            .filter(|(name, values)| past.last.get(name) != Some(values))
            .collect();
        past.last.extend(changed.iter().cloned());
        if is_new {
            self.name(pid, &task.program);
        }
        let ts = self.time_us(now_ns);
        for (name, values) in changed {
            self.push(&json!({ "name": name, "ph": "C", "pid": pid, "ts": ts, "args": values }));
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
