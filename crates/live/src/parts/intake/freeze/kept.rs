//! The tables of what an engine at rest keeps for later, which a forked child copies while they
//! grow.
//!
//! Memory is not copied in one moment. So an entry lies in one line of the processor's cache, and
//! has the number of the rest in which it was made: a copy has all of it, or an older one.

use std::sync::atomic::{Ordering::Release, fence};

use crate::sys::memory::Table;
use crate::sys::uffd::Message;
use crate::sys::{Errno, PAGE};

const HELD_MAX: usize = 4096;
const ASIDE_MAX: usize = 64 << 10;

/// A table of entries of `WORDS` words, the first of which is the number of a rest. Memory is taken
/// as far as it is used.
struct Entries<const WORDS: usize> {
    words: Table<u64>,
    count: usize,
    /// The number of this rest. Entries of earlier ones have others, and unused ones zero.
    number: u64,
}

impl<const WORDS: usize> Entries<WORDS> {
    fn new(most: usize) -> Result<Entries<WORDS>, Errno> {
        Ok(Entries {
            words: Table::new(most * WORDS)?,
            count: 0,
            number: 1,
        })
    }

    /// Forgets all of them, for another rest.
    fn clear(&mut self) {
        self.number += 1;
        self.count = 0;
    }

    fn push(&mut self, rest: &[u64]) {
        let entry = &mut self.words[self.count * WORDS..][..WORDS];
        entry[1..][..rest.len()].copy_from_slice(rest);
        fence(Release);
        entry[0] = self.number;
        self.count += 1;
    }

    /// All entries without their numbers, oldest first.
    fn iter(&self) -> impl Iterator<Item = &[u64]> {
        let entries = self.words.chunks_exact(WORDS);
        let ours = entries.take_while(|entry| entry[0] == self.number);
        ours.map(|entry| &entry[1..])
    }

    /// Returns true if there is room for that many more.
    fn has_room(&self, more: usize) -> bool {
        (self.count + more) * WORDS <= self.words.len()
    }
}

/// Changes of the address space that were read at rest.
pub struct Held(Entries<8>);

/// The state of a page of which the tables know what was there before the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The page is as the tables know it.
    Unchanged,
    /// The program has emptied it since.
    Emptied,
    /// The program has unmapped what was there, or moved something to it or away from it.
    Remapped,
}

impl Held {
    pub fn new() -> Result<Held, Errno> {
        Entries::new(HELD_MAX).map(Held)
    }

    /// Forgets all of them, for another rest.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends a change.
    pub fn push(&mut self, message: &Message) {
        let (kind, from, to, bytes) = match *message {
            Message::Remap { from, to, bytes } => (1, from, to, bytes),
            Message::Remove { start, end } => (2, start, end, 0),
            Message::Unmap { start, end } => (3, start, end, 0),
            // These change nothing of the address space.
            Message::Fault { .. } | Message::Fork { .. } | Message::Unknown(_) => return,
        };
        self.0.push(&[kind, from as u64, to as u64, bytes as u64]);
    }

    /// Answers all of them, oldest first, and forgets them.
    pub fn take(&mut self) -> Vec<Message> {
        let messages = self.iter().collect();
        self.clear();
        messages
    }

    /// The state of the page at `address`.
    pub fn fate_of(&self, address: usize) -> Fate {
        let touches = |start: usize, bytes: usize| {
            let end = start.saturating_add(bytes);
            start < address + PAGE && address < end
        };
        let mut fate = Fate::Unchanged;
        for message in self.iter() {
            match message {
                Message::Remap { from, to, bytes }
                    if touches(from, bytes) || touches(to, bytes) =>
                {
                    return Fate::Remapped;
                }
                Message::Unmap { start, end } if touches(start, end - start) => {
                    return Fate::Remapped;
                }
                Message::Remove { start, end } if touches(start, end - start) => {
                    fate = Fate::Emptied;
                }
                _ => {}
            }
        }
        fate
    }

    /// Returns true if there is room for that many more.
    pub fn has_room(&self, more: usize) -> bool {
        self.0.has_room(more)
    }

    fn iter(&self) -> impl Iterator<Item = Message> {
        self.0.iter().map(|entry| {
            let [from, to, bytes] = [1, 2, 3].map(|word| entry[word] as usize);
            let (start, end) = (from, to);
            match entry[0] {
                1 => Message::Remap { from, to, bytes },
                2 => Message::Remove { start, end },
                _ => Message::Unmap { start, end },
            }
        })
    }
}

/// The addresses of pages that were copied to their places at rest.
pub struct Aside(Entries<2>);

impl Aside {
    pub fn new() -> Result<Aside, Errno> {
        Entries::new(ASIDE_MAX).map(Aside)
    }

    /// Forgets all of them, for another rest.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends one, unless it is known.
    pub fn note(&mut self, address: usize) {
        if self.0.has_room(1) && !self.contains(address) {
            self.0.push(&[address as u64]);
        }
    }

    /// Answers all of them, and forgets them.
    pub fn take(&mut self) -> Vec<usize> {
        let addresses = self.iter().collect();
        self.clear();
        addresses
    }

    pub fn contains(&self, address: usize) -> bool {
        self.iter().any(|known| known == address)
    }

    /// Returns true if there is room for that many more.
    pub fn has_room(&self, more: usize) -> bool {
        self.0.has_room(more)
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|entry| entry[0] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_what_was_said_of_it_since_the_rest_began() {
        let mut held = Held::new().unwrap();
        let page = |number: usize| number * PAGE;
        let range = |start, end| (page(start), page(end));
        let (start, end) = range(10, 12);
        held.push(&Message::Remove { start, end });
        held.push(&Message::Remap {
            from: page(20),
            to: page(30),
            bytes: page(2),
        });
        let (start, end) = range(11, 12);
        held.push(&Message::Unmap { start, end });
        let fates = |held: &Held| [9, 10, 11, 12, 21, 31, 32].map(|at| held.fate_of(page(at)));
        let (unchanged, remapped) = (Fate::Unchanged, Fate::Remapped);
        assert_eq!(
            fates(&held),
            [
                unchanged,
                Fate::Emptied,
                remapped,
                unchanged,
                remapped,
                remapped,
                unchanged
            ]
        );
        assert_eq!(held.take().len(), 3);
        assert_eq!(fates(&held), [unchanged; 7]);
    }

    #[test]
    fn a_copy_made_while_an_entry_was_written_has_all_of_it_or_none() {
        let mut aside = Aside::new().unwrap();
        aside.note(3 * PAGE);
        aside.note(4 * PAGE);
        assert_eq!(aside.take(), [3 * PAGE, 4 * PAGE]);
        aside.note(5 * PAGE);
        aside.note(5 * PAGE);
        // The copy has the count of one more, and what was there in an earlier rest.
        aside.0.count += 1;
        assert!(aside.contains(5 * PAGE) && !aside.contains(4 * PAGE));
        assert_eq!(aside.take(), [5 * PAGE]);
    }
}
