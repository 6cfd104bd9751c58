//! Events as bytes: a tag, how far from the event before in records and in time, and the fields.

use crate::event::{Event, FileEvent, LifeEvent, MappingEvent};
use crate::model::{Block, Placed, Rights};

use super::varint;

/// The most bytes the events of a block take: each has at most seven numbers and one text.
pub const BYTES_MAX: usize = Block::EVENTS_MAX * (8 * varint::BYTES_MAX + Block::TEXT_BYTES_MAX);

const START: u8 = 1;
const MAP: u8 = 2;
const UNMAP: u8 = 3;
const REMAP: u8 = 4;
const PROTECT: u8 = 5;
const BREAK: u8 = 6;
const STACK_GROWTH: u8 = 7;
const THREAD_START: u8 = 8;
const THREAD_EXIT: u8 = 9;
const THREAD_SWITCH: u8 = 10;
const FORK: u8 = 11;
const EXEC: u8 = 12;
const WAIT: u8 = 13;
const MARK: u8 = 14;
const EXIT: u8 = 15;
const KILLED: u8 = 16;
// Since version 2.
const FILE_READ: u8 = 17;
const FILE_WRITE: u8 = 18;
const FILE_CUT: u8 = 19;
const WINDOWS: u8 = 20;
// Since version 4.
const VISIT: u8 = 21;
const SIZE: u8 = 22;

/// The bit beside the rights of a mapping that marks it as shared.
const SHARED: u64 = 8;

/// Appends `events`, which lie in a block that begins at `time_start`.
///
/// - Needs: the block keeps its invariants.
pub fn put(out: &mut Vec<u8>, events: &[Placed], time_start: u64) {
    let (mut after, mut time) = (0, time_start);
    for placed in events {
        out.push(tag(&placed.event));
        varint::put(out, u64::from(placed.after - after));
        varint::put(out, placed.time - time);
        put_fields(out, &placed.event);
        (after, time) = (placed.after, placed.time);
    }
}

/// Reads `count` events into `events`; `None` if `bytes` does not hold exactly those.
pub fn take(
    mut bytes: &[u8],
    count: usize,
    time_start: u64,
    events: &mut Vec<Placed>,
) -> Option<()> {
    let (mut after, mut time) = (0_u32, time_start);
    for _ in 0..count {
        let (&tag, rest) = bytes.split_first()?;
        bytes = rest;
        after = after.checked_add(take_small(&mut bytes)?)?;
        time = time.checked_add(varint::take(&mut bytes)?)?;
        let event = take_fields(&mut bytes, tag)?;
        events.push(Placed { after, time, event });
    }
    bytes.is_empty().then_some(())
}

fn tag(event: &Event) -> u8 {
    match event {
        Event::Mapping(event) => match event {
            MappingEvent::Map { .. } => MAP,
            MappingEvent::Unmap { .. } => UNMAP,
            MappingEvent::Remap { .. } => REMAP,
            MappingEvent::Protect { .. } => PROTECT,
            MappingEvent::Break { .. } => BREAK,
            MappingEvent::StackGrowth { .. } => STACK_GROWTH,
        },
        Event::Life(event) => match event {
            LifeEvent::Start { .. } => START,
            LifeEvent::ThreadStart { .. } => THREAD_START,
            LifeEvent::ThreadExit { .. } => THREAD_EXIT,
            LifeEvent::ThreadSwitch { .. } => THREAD_SWITCH,
            LifeEvent::Fork { .. } => FORK,
            LifeEvent::Exec { .. } => EXEC,
            LifeEvent::Wait { .. } => WAIT,
            LifeEvent::Exit { .. } => EXIT,
            LifeEvent::Killed { .. } => KILLED,
        },
        Event::File(event) => match event {
            FileEvent::Read { .. } => FILE_READ,
            FileEvent::Write { .. } => FILE_WRITE,
            FileEvent::Cut { .. } => FILE_CUT,
        },
        Event::Mark { .. } => MARK,
        Event::Windows { .. } => WINDOWS,
        Event::Visit => VISIT,
        Event::Size { .. } => SIZE,
    }
}

fn put_fields(out: &mut Vec<u8>, event: &Event) {
    match event {
        Event::Mapping(event) => put_mapping(out, event),
        Event::Life(event) => put_life(out, event),
        Event::File(event) => put_file(out, event),
        Event::Mark { name } => put_text(out, name),
        Event::Windows { ns } => put_numbers(out, &[*ns]),
        Event::Visit => {}
        Event::Size { page, bytes } => put_numbers(out, &[*page, *bytes]),
    }
}

fn put_mapping(out: &mut Vec<u8>, event: &MappingEvent) {
    match *event {
        MappingEvent::Map {
            start,
            pages,
            rights,
            is_shared,
            ref memory,
            offset,
        } => {
            let shared = if is_shared { SHARED } else { 0 };
            put_numbers(out, &[start, pages, u64::from(rights.0) | shared, offset]);
            put_text(out, memory.name());
        }
        MappingEvent::Unmap { start, pages } | MappingEvent::StackGrowth { start, pages } => {
            put_numbers(out, &[start, pages]);
        }
        MappingEvent::Remap {
            from,
            from_pages,
            to,
            to_pages,
        } => put_numbers(out, &[from, from_pages, to, to_pages]),
        MappingEvent::Protect {
            start,
            pages,
            rights,
        } => put_numbers(out, &[start, pages, u64::from(rights.0)]),
        MappingEvent::Break { end } => put_numbers(out, &[end]),
    }
}

fn put_life(out: &mut Vec<u8>, event: &LifeEvent) {
    match event {
        LifeEvent::Start {
            pid,
            parent,
            program,
        } => {
            put_numbers(out, &[u64::from(*pid), u64::from(*parent)]);
            put_text(out, program);
        }
        LifeEvent::ThreadStart { thread: number }
        | LifeEvent::ThreadExit { thread: number }
        | LifeEvent::ThreadSwitch { thread: number }
        | LifeEvent::Fork { child: number }
        | LifeEvent::Exit { status: number }
        | LifeEvent::Killed { signal: number } => put_numbers(out, &[u64::from(*number)]),
        LifeEvent::Wait { call, ns } => put_numbers(out, &[u64::from(*call), *ns]),
        LifeEvent::Exec { program } => put_text(out, program),
    }
}

fn put_file(out: &mut Vec<u8>, event: &FileEvent) {
    let (file, offset, bytes) = event.parts();
    if let Some(offset) = offset {
        put_numbers(out, &[offset]);
    }
    put_numbers(out, &[bytes]);
    put_text(out, file);
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|&number| varint::put(out, number));
}

fn take_fields(bytes: &mut &[u8], tag: u8) -> Option<Event> {
    Some(match tag {
        MAP | UNMAP | REMAP | PROTECT | BREAK | STACK_GROWTH => {
            Event::Mapping(take_mapping(bytes, tag)?)
        }
        FILE_READ | FILE_WRITE | FILE_CUT => Event::File(take_file(bytes, tag)?),
        MARK => Event::Mark {
            name: take_text(bytes)?,
        },
        WINDOWS => Event::Windows {
            ns: varint::take(bytes)?,
        },
        VISIT => Event::Visit,
        SIZE => Event::Size {
            page: varint::take(bytes)?,
            bytes: varint::take(bytes)?,
        },
        _ => Event::Life(take_life(bytes, tag)?),
    })
}

fn take_mapping(bytes: &mut &[u8], tag: u8) -> Option<MappingEvent> {
    Some(match tag {
        MAP => take_map(bytes)?,
        UNMAP => MappingEvent::Unmap {
            start: varint::take(bytes)?,
            pages: varint::take(bytes)?,
        },
        REMAP => MappingEvent::Remap {
            from: varint::take(bytes)?,
            from_pages: varint::take(bytes)?,
            to: varint::take(bytes)?,
            to_pages: varint::take(bytes)?,
        },
        PROTECT => MappingEvent::Protect {
            start: varint::take(bytes)?,
            pages: varint::take(bytes)?,
            rights: Rights(u8::try_from(varint::take(bytes)?).ok()?),
        },
        BREAK => MappingEvent::Break {
            end: varint::take(bytes)?,
        },
        STACK_GROWTH => MappingEvent::StackGrowth {
            start: varint::take(bytes)?,
            pages: varint::take(bytes)?,
        },
        _ => return None,
    })
}

fn take_life(bytes: &mut &[u8], tag: u8) -> Option<LifeEvent> {
    Some(match tag {
        START => LifeEvent::Start {
            pid: take_small(bytes)?,
            parent: take_small(bytes)?,
            program: take_text(bytes)?,
        },
        THREAD_START => LifeEvent::ThreadStart {
            thread: take_small(bytes)?,
        },
        THREAD_EXIT => LifeEvent::ThreadExit {
            thread: take_small(bytes)?,
        },
        THREAD_SWITCH => LifeEvent::ThreadSwitch {
            thread: take_small(bytes)?,
        },
        FORK => LifeEvent::Fork {
            child: take_small(bytes)?,
        },
        EXEC => LifeEvent::Exec {
            program: take_text(bytes)?,
        },
        WAIT => LifeEvent::Wait {
            call: take_small(bytes)?,
            ns: varint::take(bytes)?,
        },
        EXIT => LifeEvent::Exit {
            status: take_small(bytes)?,
        },
        KILLED => LifeEvent::Killed {
            signal: take_small(bytes)?,
        },
        _ => return None,
    })
}

fn take_map(bytes: &mut &[u8]) -> Option<MappingEvent> {
    let start = varint::take(bytes)?;
    let pages = varint::take(bytes)?;
    let rights = varint::take(bytes)?;
    let offset = varint::take(bytes)?;
    Some(MappingEvent::Map {
        start,
        pages,
        rights: Rights(u8::try_from(rights & !SHARED).ok()?),
        is_shared: rights & SHARED != 0,
        memory: take_text(bytes)?.into(),
        offset,
    })
}

fn take_file(bytes: &mut &[u8], tag: u8) -> Option<FileEvent> {
    if tag == FILE_CUT {
        let bytes_left = varint::take(bytes)?;
        let file = take_text(bytes)?;
        return Some(FileEvent::Cut {
            file,
            bytes: bytes_left,
        });
    }
    let (offset, moved) = (varint::take(bytes)?, varint::take(bytes)?);
    let file = take_text(bytes)?;
    Some(match tag {
        FILE_READ => FileEvent::Read {
            file,
            offset,
            bytes: moved,
        },
        _ => FileEvent::Write {
            file,
            offset,
            bytes: moved,
        },
    })
}

fn take_small(bytes: &mut &[u8]) -> Option<u32> {
    u32::try_from(varint::take(bytes)?).ok()
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    varint::put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(varint::take(bytes)?).ok()?;
    if length > Block::TEXT_BYTES_MAX {
        return None;
    }
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(std::str::from_utf8(text).ok()?.to_owned())
}
