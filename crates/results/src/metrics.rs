//! The state of a run as metrics: text in the OpenMetrics format, version 1.0.0, which Prometheus
//! and its like collect.

use std::fmt::Write;

use tidemark_core::counters::{Basis, Counter, Kind, Unit};

use crate::control::activity::{COUNTED, name_of};
use crate::control::{Counts, JobsState, RunState, Task, TaskState};

/// The type of the text, as HTTP names it.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A level of the run, or of each task.
type Gauge<T> = (&'static str, &'static str, &'static str, fn(&T) -> u64);

const OF_RUN: [Gauge<RunState>; 9] = [
    (
        "budget_bytes",
        "bytes",
        "The budget of all tasks together.",
        |state| state.memory.budget_bytes,
    ),
    (
        "budget_max_bytes",
        "bytes",
        "The most that the budget can be.",
        |state| state.memory.budget_bytes_max,
    ),
    (
        "resident_bytes",
        "bytes",
        "Memory in frames, and compressed pages.",
        |state| state.memory.resident_bytes,
    ),
    (
        "unassigned_bytes",
        "bytes",
        "The part of the budget that no task has.",
        |state| state.memory.unassigned_bytes,
    ),
    (
        "unmanaged_bytes",
        "bytes",
        "Resident memory that is not managed (sampled).",
        |state| state.memory.unmanaged_bytes,
    ),
    (
        "engine_bytes",
        "bytes",
        "Memory of the engines themselves (sampled).",
        |state| state.memory.engine_bytes,
    ),
    (
        "swap_bytes",
        "bytes",
        "The size of the swap file.",
        |state| state.swap.bytes,
    ),
    (
        "swap_used_bytes",
        "bytes",
        "The part of the swap file that pages have.",
        |state| state.swap.used_bytes,
    ),
    ("tasks", "", "Tasks that are there.", |state| {
        state.tasks.len() as u64
    }),
];

/// Levels of a job server, where there is one.
const OF_JOBS: [Gauge<JobsState>; 3] = [
    ("jobs_slots", "", "The most jobs at a time.", |jobs| {
        jobs.slots.into()
    }),
    (
        "jobs_allowed",
        "",
        "Jobs that memory has room for.",
        |jobs| jobs.allowed.into(),
    ),
    ("jobs_at_work", "", "Jobs that are at work.", |jobs| {
        jobs.at_work.into()
    }),
];

const OF_TASK: [Gauge<Task>; 7] = [
    (
        "task_budget_bytes",
        "bytes",
        "The memory that a task may use.",
        |task| task.budget_bytes,
    ),
    (
        "task_resident_bytes",
        "bytes",
        "Its memory in frames, and compressed.",
        |task| task.resident_bytes,
    ),
    (
        "task_unmanaged_bytes",
        "bytes",
        "Its memory that is not managed (sampled).",
        |task| task.unmanaged_bytes,
    ),
    (
        "task_engine_bytes",
        "bytes",
        "Memory of its engine (sampled).",
        |task| task.engine_bytes,
    ),
    (
        "task_pinned_pages",
        "pages",
        "Its pages that can't be moved.",
        |task| task.pinned_pages,
    ),
    (
        "task_stores_under_way_pages",
        "pages",
        "Its pages on their way to the store.",
        |task| task.stores_under_way,
    ),
    (
        "task_suspended",
        "",
        "1 if it is suspended, else 0.",
        |task| u64::from(task.state == TaskState::Suspended),
    ),
];

/// The state of a run in the OpenMetrics format.
pub fn open_metrics(state: &RunState) -> String {
    let mut text = String::new();
    head(
        &mut text,
        "run",
        "info",
        "",
        "The run, and how it was begun.",
    );
    let (policy, store) = (quoted(&state.policy), quoted(&state.store));
    let labels = format!("pid=\"{}\",policy={policy},store={store}", state.pid);
    line(&mut text, "run_info", &labels, "1");
    for (name, unit, help, level) in OF_RUN {
        head(&mut text, name, "gauge", unit, help);
        line(&mut text, name, "", &level(state).to_string());
    }
    for (jobs, (name, unit, help, level)) in state.jobs.iter().flat_map(of_jobs) {
        head(&mut text, name, "gauge", unit, help);
        line(&mut text, name, "", &level(jobs).to_string());
    }
    for (name, unit, help, level) in OF_TASK {
        head(&mut text, name, "gauge", unit, help);
        for task in &state.tasks {
            line(&mut text, name, &labels_of(task), &level(task).to_string());
        }
    }
    for counter in COUNTED {
        tell_counter(&mut text, state, counter);
    }
    text.push_str("# EOF\n");
    text
}

/// One of the counters: of the run, and of each task.
fn tell_counter(text: &mut String, state: &RunState, counter: Counter) {
    let (name, unit) = counter_name(counter);
    let help = match counter.basis() {
        Basis::Counted => counter.meaning().to_owned(),
        Basis::Inferred | Basis::Sampled => {
            format!("{} ({}.)", counter.meaning(), counter.basis().name())
        }
    };
    let (kind, ending) = match counter.kind() {
        Kind::Sum => ("counter", "_total"),
        Kind::Level | Kind::Peak | Kind::MeasuredLevel | Kind::MeasuredPeak => ("gauge", ""),
    };
    head(text, &name, kind, unit, &help);
    let sample = format!("{name}{ending}");
    line(text, &sample, "", &value(&state.counts, counter));
    let name = format!("task_{name}");
    head(text, &name, kind, unit, &help);
    let sample = format!("{name}{ending}");
    for task in &state.tasks {
        let value = value(&task.counts, counter);
        line(text, &sample, &labels_of(task), &value);
    }
}

fn of_jobs(jobs: &JobsState) -> impl Iterator<Item = (&JobsState, Gauge<JobsState>)> {
    OF_JOBS.into_iter().map(move |gauge| (jobs, gauge))
}

/// The name of a counter, which ends in its unit if it has one here.
fn counter_name(counter: Counter) -> (String, &'static str) {
    match counter {
        Counter::BytesRead => ("read_bytes".into(), "bytes"),
        Counter::BytesWritten => ("written_bytes".into(), "bytes"),
        Counter::StallNs => ("stall_seconds".into(), "seconds"),
        Counter::EngineNs => ("engine_seconds".into(), "seconds"),
        other => (name_of(other).into(), ""),
    }
}

fn value(counts: &Counts, counter: Counter) -> String {
    let count = counts.get(counter);
    match counter.unit() {
        Unit::Nanoseconds => format!("{:.9}", count as f64 / 1e9),
        _ => count.to_string(),
    }
}

fn labels_of(task: &Task) -> String {
    format!("pid=\"{}\",program={}", task.pid, quoted(&task.program))
}

fn head(text: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    let written = writeln!(text, "# TYPE tidemark_{name} {kind}");
    written.expect("text takes text");
    if !unit.is_empty() {
        writeln!(text, "# UNIT tidemark_{name} {unit}").expect("text takes text");
    }
    writeln!(text, "# HELP tidemark_{name} {}", escaped(help)).expect("text takes text");
}

fn line(text: &mut String, name: &str, labels: &str, value: &str) {
    let labels = match labels {
        "" => String::new(),
        labels => format!("{{{labels}}}"),
    };
    writeln!(text, "tidemark_{name}{labels} {value}").expect("text takes text");
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// A name may have anything in it.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_anything_in_them_are_escaped() {
        let mut state = RunState {
            policy: "a\"b\\c\nd".into(),
            ..RunState::default()
        };
        state.counts = Counts::of(|_| 1_500_000_000);
        let text = open_metrics(&state);
        assert!(text.contains(r#"policy="a\"b\\c\nd""#), "{text}");
        assert!(text.contains("\ntidemark_stall_seconds_total 1.500000000\n"));
        assert!(text.contains("\ntidemark_page_ins_total 1500000000\n"));
        assert!(text.ends_with("\n# EOF\n"));
        assert!(!text.contains("tidemark_jobs"));
        state.jobs = Some(JobsState {
            slots: 8,
            allowed: 3,
            at_work: 2,
        });
        assert!(open_metrics(&state).contains("\ntidemark_jobs_allowed 3\n"));
    }
}
