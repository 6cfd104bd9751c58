//! Small traces for tests.

use tidemark_trace::{
    Block, Event, Granularity, Header, Kinds, LifeEvent, MappingEvent, Placed, Rights, TimeUnit,
};

/// The header of an exact trace, whose time counts references.
pub(super) fn header() -> Header {
    Header {
        page_bytes: 4096,
        granularity: Granularity::Exact,
        time: TimeUnit::References,
        source: String::new(),
        command: vec![],
        speed: None,
    }
}

/// Process `pid` begins with a program of its own.
pub(super) fn start(pid: u32, parent: u32) -> Event {
    Event::Life(LifeEvent::Start {
        pid,
        parent,
        program: "/bin/x".into(),
    })
}

/// Pages of a file, or of no file, are mapped.
pub(super) fn map(start: u64, pages: u64, file: &str) -> Event {
    Event::Mapping(MappingEvent::Map {
        start,
        pages,
        rights: Rights::READ,
        is_shared: false,
        memory: file.into(),
        offset: 0,
    })
}

/// Loads of these pages, one a unit of time, with events behind given numbers of them.
pub(super) fn block(process: u32, pages: &[u64], events: Vec<(u32, Event)>) -> Block {
    let placed = |(after, event)| Placed {
        after,
        time: u64::from(after),
        event,
    };
    Block {
        process,
        time_start: 0,
        pages: pages.to_vec(),
        kinds: vec![Kinds::LOAD.0; pages.len()],
        gaps: vec![1; pages.len()],
        events: events.into_iter().map(placed).collect(),
    }
}
