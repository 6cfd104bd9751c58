//! Events as bytes: a tag, how far from the event before in records and in time, and the fields.

use crate::model::{Block, Event, Placed, Rights};

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
        Event::Start { .. } => START,
        Event::Map { .. } => MAP,
        Event::Unmap { .. } => UNMAP,
        Event::Remap { .. } => REMAP,
        Event::Protect { .. } => PROTECT,
        Event::Break { .. } => BREAK,
        Event::StackGrowth { .. } => STACK_GROWTH,
        Event::ThreadStart { .. } => THREAD_START,
        Event::ThreadExit { .. } => THREAD_EXIT,
        Event::ThreadSwitch { .. } => THREAD_SWITCH,
        Event::Fork { .. } => FORK,
        Event::Exec { .. } => EXEC,
        Event::Wait { .. } => WAIT,
        Event::Mark { .. } => MARK,
        Event::Exit { .. } => EXIT,
        Event::Killed { .. } => KILLED,
        Event::FileRead { .. } => FILE_READ,
        Event::FileWrite { .. } => FILE_WRITE,
        Event::FileCut { .. } => FILE_CUT,
        Event::Windows { .. } => WINDOWS,
        Event::Visit => VISIT,
        Event::Size { .. } => SIZE,
    }
}

fn put_fields(out: &mut Vec<u8>, event: &Event) {
    let mut put = |numbers: &[u64]| numbers.iter().for_each(|&number| varint::put(out, number));
    match event {
        Event::Start {
            pid,
            parent,
            program,
        } => {
            put(&[u64::from(*pid), u64::from(*parent)]);
            put_text(out, program);
        }
        Event::Map {
            start,
            pages,
            rights,
            is_shared,
            file,
            offset,
        } => {
            let shared = if *is_shared { SHARED } else { 0 };
            put(&[*start, *pages, u64::from(rights.0) | shared, *offset]);
            put_text(out, file);
        }
        Event::Unmap { start, pages } | Event::StackGrowth { start, pages } => {
            put(&[*start, *pages]);
        }
        Event::Remap {
            from,
            from_pages,
            to,
            to_pages,
        } => put(&[*from, *from_pages, *to, *to_pages]),
        Event::Protect {
            start,
            pages,
            rights,
        } => put(&[*start, *pages, u64::from(rights.0)]),
        Event::Break { end: number } | Event::Windows { ns: number } => put(&[*number]),
        Event::ThreadStart { thread }
        | Event::ThreadExit { thread }
        | Event::ThreadSwitch { thread } => put(&[u64::from(*thread)]),
        Event::Visit => {}
        Event::Size { page, bytes } => put(&[*page, *bytes]),
        Event::Fork { child } => put(&[u64::from(*child)]),
        Event::Wait { call, ns } => put(&[u64::from(*call), *ns]),
        Event::Exit { status } => put(&[u64::from(*status)]),
        Event::Killed { signal } => put(&[u64::from(*signal)]),
        Event::Exec { program: text } | Event::Mark { name: text } => put_text(out, text),
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
            put(&[*offset, *bytes]);
            put_text(out, file);
        }
        Event::FileCut { file, bytes } => {
            put(&[*bytes]);
            put_text(out, file);
        }
    }
}

fn take_fields(bytes: &mut &[u8], tag: u8) -> Option<Event> {
    Some(match tag {
        START => Event::Start {
            pid: take_small(bytes)?,
            parent: take_small(bytes)?,
            program: take_text(bytes)?,
        },
        MAP => take_map(bytes)?,
        UNMAP => Event::Unmap {
            start: varint::take(bytes)?,
            pages: varint::take(bytes)?,
        },
        REMAP => Event::Remap {
            from: varint::take(bytes)?,
            from_pages: varint::take(bytes)?,
            to: varint::take(bytes)?,
            to_pages: varint::take(bytes)?,
        },
        PROTECT => Event::Protect {
            start: varint::take(bytes)?,
            pages: varint::take(bytes)?,
            rights: Rights(u8::try_from(varint::take(bytes)?).ok()?),
        },
        BREAK => Event::Break {
            end: varint::take(bytes)?,
        },
        STACK_GROWTH => Event::StackGrowth {
            start: varint::take(bytes)?,
            pages: varint::take(bytes)?,
        },
        THREAD_START => Event::ThreadStart {
            thread: take_small(bytes)?,
        },
        THREAD_EXIT => Event::ThreadExit {
            thread: take_small(bytes)?,
        },
        THREAD_SWITCH => Event::ThreadSwitch {
            thread: take_small(bytes)?,
        },
        FORK => Event::Fork {
            child: take_small(bytes)?,
        },
        EXEC => Event::Exec {
            program: take_text(bytes)?,
        },
        WAIT => Event::Wait {
            call: take_small(bytes)?,
            ns: varint::take(bytes)?,
        },
        MARK => Event::Mark {
            name: take_text(bytes)?,
        },
        EXIT => Event::Exit {
            status: take_small(bytes)?,
        },
        KILLED => Event::Killed {
            signal: take_small(bytes)?,
        },
        FILE_READ | FILE_WRITE | FILE_CUT => take_file(bytes, tag)?,
        WINDOWS => Event::Windows {
            ns: varint::take(bytes)?,
        },
        VISIT => Event::Visit,
        SIZE => Event::Size {
            page: varint::take(bytes)?,
            bytes: varint::take(bytes)?,
        },
        _ => return None,
    })
}

fn take_map(bytes: &mut &[u8]) -> Option<Event> {
    let start = varint::take(bytes)?;
    let pages = varint::take(bytes)?;
    let rights = varint::take(bytes)?;
    let offset = varint::take(bytes)?;
    Some(Event::Map {
        start,
        pages,
        rights: Rights(u8::try_from(rights & !SHARED).ok()?),
        is_shared: rights & SHARED != 0,
        file: take_text(bytes)?,
        offset,
    })
}

fn take_file(bytes: &mut &[u8], tag: u8) -> Option<Event> {
    if tag == FILE_CUT {
        let bytes_left = varint::take(bytes)?;
        let file = take_text(bytes)?;
        return Some(Event::FileCut {
            file,
            bytes: bytes_left,
        });
    }
    let (offset, moved) = (varint::take(bytes)?, varint::take(bytes)?);
    let file = take_text(bytes)?;
    Some(match tag {
        FILE_READ => Event::FileRead {
            file,
            offset,
            bytes: moved,
        },
        _ => Event::FileWrite {
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
