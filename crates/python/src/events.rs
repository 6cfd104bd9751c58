//! The events between the records of a trace, as columns and dictionaries.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tidemark_trace::{Event, Rights};

/// An event and its place in the whole trace.
pub struct Located {
    /// It happened after this many records of the trace.
    pub record: u64,
    /// The process it happened in.
    pub process: u32,
    /// The process's time.
    pub time: u64,
    /// The event.
    pub event: Event,
}

/// The name of an event.
pub fn name(event: &Event) -> &'static str {
    match event {
        Event::Start { .. } => "start",
        Event::Map { .. } => "map",
        Event::Unmap { .. } => "unmap",
        Event::Remap { .. } => "remap",
        Event::Protect { .. } => "protect",
        Event::Break { .. } => "break",
        Event::StackGrowth { .. } => "stack_growth",
        Event::ThreadStart { .. } => "thread_start",
        Event::ThreadExit { .. } => "thread_exit",
        Event::ThreadSwitch { .. } => "thread_switch",
        Event::Fork { .. } => "fork",
        Event::Exec { .. } => "exec",
        Event::Wait { .. } => "wait",
        Event::Mark { .. } => "mark",
        Event::Exit { .. } => "exit",
        Event::Killed { .. } => "killed",
        Event::FileRead { .. } => "file_read",
        Event::FileWrite { .. } => "file_write",
        Event::FileCut { .. } => "file_cut",
        Event::Windows { .. } => "windows",
        Event::Visit => "visit",
        Event::Size { .. } => "size",
    }
}

/// The fields of an event: its fields by their names.
pub fn fields<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    match event {
        Event::Map {
            start,
            pages,
            rights,
            is_shared,
            file,
            offset,
        } => {
            set_range(&fields, *start, *pages)?;
            fields.set_item("rights", letters(*rights))?;
            fields.set_item("is_shared", is_shared)?;
            fields.set_item("file", file)?;
            fields.set_item("offset", offset)?;
        }
        Event::Protect {
            start,
            pages,
            rights,
        } => {
            set_range(&fields, *start, *pages)?;
            fields.set_item("rights", letters(*rights))?;
        }
        Event::Unmap { start, pages } | Event::StackGrowth { start, pages } => {
            set_range(&fields, *start, *pages)?;
        }
        Event::Remap {
            from,
            from_pages,
            to,
            to_pages,
        } => {
            fields.set_item("from", from)?;
            fields.set_item("from_pages", from_pages)?;
            fields.set_item("to", to)?;
            fields.set_item("to_pages", to_pages)?;
        }
        Event::Start { .. }
        | Event::Break { .. }
        | Event::ThreadStart { .. }
        | Event::ThreadExit { .. }
        | Event::ThreadSwitch { .. }
        | Event::Fork { .. }
        | Event::Exec { .. }
        | Event::Wait { .. }
        | Event::Mark { .. }
        | Event::Exit { .. }
        | Event::Killed { .. }
        | Event::FileRead { .. }
        | Event::FileWrite { .. }
        | Event::FileCut { .. }
        | Event::Windows { .. }
        | Event::Visit
        | Event::Size { .. } => set_plain(&fields, event)?,
    }
    Ok(fields)
}

/// The fields of events that speak of no range.
fn set_plain(fields: &Bound<'_, PyDict>, event: &Event) -> PyResult<()> {
    match event {
        Event::Start {
            pid,
            parent,
            program,
        } => {
            fields.set_item("pid", pid)?;
            fields.set_item("parent", parent)?;
            fields.set_item("program", program)
        }
        Event::Break { end } => fields.set_item("end", end),
        Event::ThreadStart { thread }
        | Event::ThreadExit { thread }
        | Event::ThreadSwitch { thread } => fields.set_item("thread", thread),
        Event::Fork { child } => fields.set_item("child", child),
        Event::Exec { program } => fields.set_item("program", program),
        Event::Wait { call, ns } => {
            fields.set_item("call", call)?;
            fields.set_item("ns", ns)
        }
        Event::Mark { name } => fields.set_item("name", name),
        Event::Exit { status } => fields.set_item("status", status),
        Event::Killed { signal } => fields.set_item("signal", signal),
        Event::FileRead {
            file,
            offset,
            bytes,
        }
        | Event::FileWrite {
            file,
            offset,
            bytes,
        } => {
            fields.set_item("file", file)?;
            fields.set_item("offset", offset)?;
            fields.set_item("bytes", bytes)
        }
        Event::Windows { ns } => fields.set_item("ns", ns),
        Event::Size { page, bytes } => {
            fields.set_item("page", page)?;
            fields.set_item("bytes", bytes)
        }
        Event::FileCut { file, bytes } => {
            fields.set_item("file", file)?;
            fields.set_item("bytes", bytes)
        }
        Event::Map { .. }
        | Event::Unmap { .. }
        | Event::Remap { .. }
        | Event::Protect { .. }
        | Event::StackGrowth { .. }
        | Event::Visit => Ok(()),
    }
}

fn set_range(fields: &Bound<'_, PyDict>, start: u64, pages: u64) -> PyResult<()> {
    fields.set_item("start", start)?;
    fields.set_item("pages", pages)
}

/// Rights as the kernel lists them: `rw-`.
fn letters(rights: Rights) -> String {
    [
        (Rights::READ, 'r'),
        (Rights::WRITE, 'w'),
        (Rights::EXECUTE, 'x'),
    ]
    .map(|(right, letter)| match rights.0 & right.0 {
        0 => '-',
        _ => letter,
    })
    .into_iter()
    .collect()
}
