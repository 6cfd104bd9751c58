//! The events between the records of a trace, as columns and dictionaries.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tidemark_trace::{Event, FileEvent, LifeEvent, MappingEvent, Rights};

/// An event and its place in the whole trace.
pub struct Located {
    /// The number of records of the trace that came before the event.
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
        Event::Mapping(event) => match event {
            MappingEvent::Map { .. } => "map",
            MappingEvent::Unmap { .. } => "unmap",
            MappingEvent::Remap { .. } => "remap",
            MappingEvent::Protect { .. } => "protect",
            MappingEvent::Break { .. } => "break",
            MappingEvent::StackGrowth { .. } => "stack_growth",
        },
        Event::Life(event) => match event {
            LifeEvent::Start { .. } => "start",
            LifeEvent::ThreadStart { .. } => "thread_start",
            LifeEvent::ThreadExit { .. } => "thread_exit",
            LifeEvent::ThreadSwitch { .. } => "thread_switch",
            LifeEvent::Fork { .. } => "fork",
            LifeEvent::Exec { .. } => "exec",
            LifeEvent::Wait { .. } => "wait",
            LifeEvent::Exit { .. } => "exit",
            LifeEvent::Killed { .. } => "killed",
        },
        Event::File(event) => match event {
            FileEvent::Read { .. } => "file_read",
            FileEvent::Write { .. } => "file_write",
            FileEvent::Cut { .. } => "file_cut",
        },
        Event::Mark { .. } => "mark",
        Event::Windows { .. } => "windows",
        Event::Visit => "visit",
        Event::Size { .. } => "size",
    }
}

/// The fields of an event by their names.
pub fn fields<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    match event {
        Event::Mapping(event) => set_mapping(&fields, event)?,
        Event::Life(event) => set_life(&fields, event)?,
        Event::File(event) => set_file(&fields, event)?,
        Event::Mark { name } => fields.set_item("name", name)?,
        Event::Windows { ns } => fields.set_item("ns", ns)?,
        Event::Visit => {}
        Event::Size { page, bytes } => {
            fields.set_item("page", page)?;
            fields.set_item("bytes", bytes)?;
        }
    }
    Ok(fields)
}

fn set_mapping(fields: &Bound<'_, PyDict>, event: &MappingEvent) -> PyResult<()> {
    match event {
        MappingEvent::Map {
            start,
            pages,
            rights,
            is_shared,
            memory,
            offset,
        } => {
            set_range(fields, *start, *pages)?;
            fields.set_item("rights", letters(*rights))?;
            fields.set_item("is_shared", is_shared)?;
            fields.set_item("file", memory.name())?;
            fields.set_item("offset", offset)
        }
        MappingEvent::Protect {
            start,
            pages,
            rights,
        } => {
            set_range(fields, *start, *pages)?;
            fields.set_item("rights", letters(*rights))
        }
        MappingEvent::Unmap { start, pages } | MappingEvent::StackGrowth { start, pages } => {
            set_range(fields, *start, *pages)
        }
        MappingEvent::Remap {
            from,
            from_pages,
            to,
            to_pages,
        } => {
            fields.set_item("from", from)?;
            fields.set_item("from_pages", from_pages)?;
            fields.set_item("to", to)?;
            fields.set_item("to_pages", to_pages)
        }
        MappingEvent::Break { end } => fields.set_item("end", end),
    }
}

fn set_life(fields: &Bound<'_, PyDict>, event: &LifeEvent) -> PyResult<()> {
    match event {
        LifeEvent::Start {
            pid,
            parent,
            program,
        } => {
            fields.set_item("pid", pid)?;
            fields.set_item("parent", parent)?;
            fields.set_item("program", program)
        }
        LifeEvent::ThreadStart { thread }
        | LifeEvent::ThreadExit { thread }
        | LifeEvent::ThreadSwitch { thread } => fields.set_item("thread", thread),
        LifeEvent::Fork { child } => fields.set_item("child", child),
        LifeEvent::Exec { program } => fields.set_item("program", program),
        LifeEvent::Wait { call, ns } => {
            fields.set_item("call", call)?;
            fields.set_item("ns", ns)
        }
        LifeEvent::Exit { status } => fields.set_item("status", status),
        LifeEvent::Killed { signal } => fields.set_item("signal", signal),
    }
}

fn set_file(fields: &Bound<'_, PyDict>, event: &FileEvent) -> PyResult<()> {
    let (file, offset, bytes) = event.parts();
    if let Some(offset) = offset {
        fields.set_item("offset", offset)?;
    }
    fields.set_item("file", file)?;
    fields.set_item("bytes", bytes)
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
