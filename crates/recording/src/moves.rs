//! Moves: what system calls read from files and write to them, a few events for many calls.

use tidemark_trace::{Event, FileEvent};

/// The number of events back that are searched for one that a move goes on from: a program may read
/// one file and write another, by turns.
const BACK: usize = 4;

/// The rule by which events are joined where the first ended on the border of a page too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// Anywhere: both are in one quantum.
    Anywhere,
    /// Only inside a page of this many bytes: so that a program that reads byte by byte makes at
    /// most an event for each page.
    Inside(u64),
}

/// Makes `moved` a part of one of the last of `events` that it goes on from, if there is one.
pub fn join<'a>(
    events: impl DoubleEndedIterator<Item = &'a mut Event>,
    moved: &Event,
    joint: Joint,
) -> bool {
    let Some(next) = moved.copied() else {
        return false;
    };
    for before in events.rev().take(BACK) {
        let Some(known) = before.copied() else {
            return false;
        };
        let end = known.offset.saturating_add(known.bytes);
        let is_inside = match joint {
            Joint::Anywhere => true,
            Joint::Inside(page_bytes) => !end.is_multiple_of(page_bytes),
        };
        let goes_on = (known.is_write, known.file, end) == (next.is_write, next.file, next.offset);
        if goes_on && is_inside {
            if let Event::File(FileEvent::Read { bytes, .. } | FileEvent::Write { bytes, .. }) =
                before
            {
                *bytes += next.bytes;
            }
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, offset: u64, bytes: u64) -> Event {
        let file = file.into();
        Event::File(FileEvent::Read {
            file,
            offset,
            bytes,
        })
    }

    fn write(file: &str, offset: u64, bytes: u64) -> Event {
        let file = file.into();
        Event::File(FileEvent::Write {
            file,
            offset,
            bytes,
        })
    }

    fn joined(moves: &[Event], joint: Joint) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        for moved in moves {
            if !join(events.iter_mut(), moved, joint) {
                events.push(moved.clone());
            }
        }
        events
    }

    #[test]
    fn what_goes_on_from_another_is_one_with_it() {
        let moves = [
            read("a", 0, 100),
            write("b", 0, 50),
            read("a", 100, 3996),
            write("b", 50, 1),
            read("a", 4096, 1),
            read("a", 4098, 1),
        ];
        let expected = [read("a", 0, 4097), write("b", 0, 51), read("a", 4098, 1)];
        assert_eq!(joined(&moves, Joint::Anywhere), expected);
    }

    #[test]
    fn inside_pages_only_there_is_an_event_for_each() {
        let moves: Vec<Event> = (0..10_000).map(|at| read("a", at, 1)).collect();
        let expected = [
            read("a", 0, 4096),
            read("a", 4096, 4096),
            read("a", 8192, 1808),
        ];
        assert_eq!(joined(&moves, Joint::Inside(4096)), expected);
    }

    #[test]
    fn nothing_is_joined_across_a_cut() {
        let cut = Event::File(FileEvent::Cut {
            file: "a".into(),
            bytes: 0,
        });
        let moves = [write("a", 0, 5), cut, write("a", 5, 5)];
        assert_eq!(joined(&moves, Joint::Anywhere), moves);
    }
}
