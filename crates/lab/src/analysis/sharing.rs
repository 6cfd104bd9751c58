//! Sharing: which pages of several processes are one page of memory.
//!
//! Processes have a page in common where they map the same page of a file, or shared memory that
//! one has inherited from the other, and after a fork. One that stores to it gets a page of its
//! own, unless the mapping is shared, or no other process has the page any more.
//!
//! A [`Space`] is what one process has where; [`Sharing`] knows who else has it. A store to a
//! private page is the common case, and the watch beside the page's number shows it.
//!
//! # Invariants
//! 1. A held page is in `holders` with the number of its holders: each process once.
//! 2. `pages` and `keys` are each other's inverse, and have only held pages.
//! 3. In a trace of one process, pages are distinguished by their virtual page numbers alone.
//!
//! # What is left out
//! Files are distinguished by their paths, and a file whose name was removed is none. Where traces
//! have pages above 4 KiB, mappings need not begin with a page, and files are not followed. A page
//! of a file that a process maps twice is two pages in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use tidemark_trace::spans::Spans;
use tidemark_trace::{Event, FileEvent, Kinds, MappingEvent};

use super::references::Numbers;

/// Pages of at most this many bytes lie in files as they do in memory.
pub(crate) const FILE_PAGE_BYTES_MAX: u64 = 4096;
/// The number of pages and mappings that living children have from their parents, all together: a
/// trace of a few bytes may start a child of a parent with very many. Later ones begin with
/// nothing.
const INHERITED_MAX: usize = 1 << 22;

/// The watch of a page of one process: no access changes its number.
const OWN: u8 = 0;
/// The watch of a shared page: a store gets the process another page.
const COPIED: u8 = Kinds::STORE.0;
/// The watch of a page in a range that was mapped anew: any access looks it up again.
const STALE: u8 = Kinds::ALL.0;
/// The watch of a page in a shared mapping. It is no kind of access.
const SHARED: u8 = 1 << 7;

/// The accesses of `kinds` as watches have them. What is not known to be a load is a store.
#[inline(always)]
pub(crate) fn accesses(kinds: u8) -> u8 {
    match kinds {
        0 => Kinds::STORE.0,
        known => known,
    }
}

/// The memory of one process.
pub(crate) struct Space {
    /// The pages that it has touched, or inherited.
    pub(crate) numbers: Numbers,
    /// The part of its memory that is a file's, or shared.
    origins: Spans<Origin>,
    /// The pages of the process that are a page of an object, a file or shared memory.
    held: BTreeSet<u32>,
    /// The number of pages and mappings it had from its parent.
    inherited: usize,
}

/// The object that a mapping shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    object: u32,
    /// The address at which its first page would be mapped; it may be below all addresses.
    base: u64,
    /// True if stores go to the object.
    is_shared: bool,
    /// True if the object is this mapping's, and that of mappings that inherit it.
    is_anonymous: bool,
}

/// A page of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    object: u32,
    index: u64,
}

/// A page of a file: every process that maps it has the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePage {
    /// The path.
    pub file: Arc<str>,
    /// The number of the page in the file.
    pub index: u64,
}

/// The state of a page that was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    /// The page that the process has there now.
    pub(crate) number: u32,
    /// The page that it had before, if no process has that any more.
    pub(crate) gone: Option<u32>,
}

/// The owners of each page.
pub(crate) struct Sharing {
    page_bytes: u64,
    /// Files by their names.
    files: HashMap<String, u32>,
    objects: u32,
    /// The names of files, by their objects.
    names: HashMap<u32, Arc<str>>,
    /// Pages that were a file's from the first, and were not stored to by a process that alone had
    /// them.
    common: BTreeMap<u32, FilePage>,
    /// The page that stands for one of an object.
    pages: HashMap<Key, u32>,
    keys: HashMap<u32, Key>,
    /// The number of processes that have each page.
    holders: Vec<u32>,
    /// Of all living children: see [`INHERITED_MAX`].
    inherited: usize,
}

impl Space {
    /// One without anything.
    pub(crate) fn new() -> Space {
        Space {
            numbers: Numbers::new(),
            origins: Spans::default(),
            held: BTreeSet::new(),
            inherited: 0,
        }
    }

    /// Returns true if nothing was touched or mapped yet.
    pub(crate) fn is_untouched(&self) -> bool {
        self.numbers.is_empty() && self.origins.is_empty()
    }

    /// The numbers of all its pages, rising.
    pub(crate) fn into_numbers(mut self) -> Vec<u32> {
        let numbers = self.numbers.slots().map(|slot| slot.number);
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        numbers
    }

    /// Makes the next touch of a page in `range` look up its mapping.
    fn mark_stale(&mut self, range: Range<u64>) {
        if range.end - range.start < self.numbers.room() as u64 {
            for page in range {
                if let Some(slot) = self.numbers.find(page) {
                    slot.watch = STALE;
                }
            }
            return;
        }
        let inside = self.numbers.slots();
        inside
            .filter(|slot| range.contains(&slot.page()))
            .for_each(|slot| slot.watch = STALE);
    }
}

impl Sharing {
    /// No process has a page yet, in a trace with pages of that size.
    pub(crate) fn new(page_bytes: u64) -> Sharing {
        Sharing {
            page_bytes,
            files: HashMap::new(),
            objects: 0,
            names: HashMap::new(),
            common: BTreeMap::new(),
            pages: HashMap::new(),
            keys: HashMap::new(),
            holders: Vec::new(),
            inherited: 0,
        }
    }

    /// The pages that are a file's, as other programs have them that map it.
    pub(crate) fn take_common(&mut self) -> BTreeMap<u32, FilePage> {
        std::mem::take(&mut self.common)
    }

    /// Takes in what happened to a process's memory.
    pub(crate) fn happen(&mut self, space: &mut Space, event: &Event) {
        match event {
            Event::Mapping(MappingEvent::Map {
                start,
                pages,
                is_shared,
                memory,
                offset,
                ..
            }) => {
                let range = *start..start.saturating_add(*pages);
                match self.object_of(memory.name(), *is_shared) {
                    Some((object, is_anonymous)) => {
                        let origin = Origin {
                            object,
                            base: start.wrapping_sub(offset / self.page_bytes),
                            is_shared: *is_shared,
                            is_anonymous,
                        };
                        map(space, range, origin);
                    }
                    None => unmap(space, range),
                }
            }
            Event::Mapping(MappingEvent::Unmap { start, pages }) => {
                unmap(space, *start..start.saturating_add(*pages));
            }
            Event::Mapping(MappingEvent::Remap {
                from,
                from_pages,
                to,
                to_pages,
            }) => {
                let moved = space.origins.find(*from).map(|(_, origin)| *origin);
                unmap(space, *from..from.saturating_add(*from_pages));
                let range = *to..to.saturating_add(*to_pages);
                unmap(space, range.clone());
                if let Some(origin) = moved {
                    let base = to.wrapping_sub(from.wrapping_sub(origin.base));
                    map(space, range, Origin { base, ..origin });
                }
            }
            Event::File(FileEvent::Cut { file, bytes: 0 }) => {
                // What is mapped from now on is another file, or what has been written anew.
                self.files.remove(file);
            }
            _ => {}
        }
    }

    /// The memory of a child that `parent` forks. If that is too much, nothing.
    pub(crate) fn fork(&mut self, parent: &mut Space) -> Space {
        let inherited = parent.numbers.len() + parent.origins.iter().count();
        if self.inherited + inherited > INHERITED_MAX {
            return Space::new();
        }
        self.inherited += inherited;
        for slot in parent.numbers.slots() {
            self.holders[slot.number as usize] += 1;
            if slot.watch & SHARED == 0 {
                slot.watch |= COPIED;
            }
        }
        Space {
            numbers: parent.numbers.clone(),
            origins: parent.origins.clone(),
            held: parent.held.clone(),
            inherited,
        }
    }

    /// Takes everything from a process. Returns the pages without a holder, rising.
    pub(crate) fn clear(&mut self, space: &mut Space) -> Vec<u32> {
        let mut space = std::mem::replace(space, Space::new());
        self.inherited -= space.inherited;
        let numbers = space.numbers.slots().map(|slot| slot.number);
        let mut gone: Vec<u32> = numbers.filter(|&number| self.release(number)).collect();
        gone.sort_unstable();
        gone
    }

    /// Looks up a process's page at `page`, which it does not have yet, or whose watch is for such
    /// an access. `fresh` is the number of the next new page.
    #[inline(never)]
    pub(crate) fn settle(
        &mut self,
        space: &mut Space,
        page: u64,
        accesses: u8,
        fresh: u32,
    ) -> Settled {
        let origin = space.origins.find(page).map(|(_, origin)| *origin);
        let is_shared = origin.is_some_and(|origin| origin.is_shared);
        let is_copied = accesses & Kinds::STORE.0 != 0 && !is_shared;
        let key = origin.filter(|_| !is_copied).map(|origin| Key {
            object: origin.object,
            index: page.wrapping_sub(origin.base),
        });
        let before = space
            .numbers
            .find(page)
            .map(|slot| (slot.number, slot.watch));
        let settled = match before {
            None => Settled {
                number: self.come(space, key, fresh),
                gone: None,
            },
            Some((number, _)) if is_copied => self.store(space, number, fresh),
            Some((number, STALE)) => self.look_again(space, number, key, fresh),
            Some((number, _)) => Settled { number, gone: None },
        };
        let is_common = self.holders[settled.number as usize] > 1;
        let watch = match is_shared {
            true => SHARED,
            false if is_common || self.keys.contains_key(&settled.number) => COPIED,
            false => OWN,
        };
        space.numbers.set(page, settled.number, watch);
        settled
    }

    /// A page for one of an object, or for a process alone: the one that others have, if they do.
    fn come(&mut self, space: &mut Space, key: Option<Key>, fresh: u32) -> u32 {
        let known = key.and_then(|key| self.pages.get(&key).copied());
        match known {
            Some(number) if !space.held.contains(&number) => {
                self.holders[number as usize] += 1;
                space.held.insert(number);
                return number;
            }
            Some(_) => {}
            None => self.stand_for(space, key, fresh),
        }
        assert_eq!(self.holders.len(), fresh as usize);
        self.holders.push(1);
        fresh
    }

    /// A process stores to a page that it has. If others have it, too, it gets one of its own.
    fn store(&mut self, space: &mut Space, number: u32, fresh: u32) -> Settled {
        let is_alone = self.holders[number as usize] == 1;
        space.held.remove(&number);
        let number = match is_alone {
            true => {
                self.forget_key(number);
                self.common.remove(&number);
                number
            }
            false => {
                self.release(number);
                self.come(space, None, fresh)
            }
        };
        Settled { number, gone: None }
    }

    /// A process touches a page over which something else was mapped, for which `key` stands.
    fn look_again(
        &mut self,
        space: &mut Space,
        number: u32,
        key: Option<Key>,
        fresh: u32,
    ) -> Settled {
        if key.is_some() && self.keys.get(&number) == key.as_ref() {
            return Settled { number, gone: None };
        }
        let known = key.and_then(|key| self.pages.get(&key).copied());
        let is_others = known.is_some_and(|known| !space.held.contains(&known));
        space.held.remove(&number);
        if is_others || self.holders[number as usize] > 1 {
            let gone = self.release(number).then_some(number);
            let number = self.come(space, key, fresh);
            return Settled { number, gone };
        }
        self.forget_key(number);
        if known.is_none() {
            self.stand_for(space, key, number);
        }
        Settled { number, gone: None }
    }

    /// Has a page stand for one of an object, if there is one.
    fn stand_for(&mut self, space: &mut Space, key: Option<Key>, number: u32) {
        if let Some(key) = key {
            self.pages.insert(key, number);
            self.keys.insert(number, key);
            space.held.insert(number);
            if let Some(file) = self.names.get(&key.object) {
                let page = FilePage {
                    file: file.clone(),
                    index: key.index,
                };
                self.common.insert(number, page);
            }
        }
    }

    /// Takes a page from one who has it. Whether that was the last.
    fn release(&mut self, number: u32) -> bool {
        let holders = &mut self.holders[number as usize];
        *holders -= 1;
        let is_gone = *holders == 0;
        if is_gone {
            self.forget_key(number);
        }
        is_gone
    }

    fn forget_key(&mut self, number: u32) {
        if let Some(key) = self.keys.remove(&number) {
            self.pages.remove(&key);
        }
    }

    /// The object that a mapping shows, and whether it is that mapping's alone. `None` for memory
    /// that is the process's own.
    fn object_of(&mut self, file: &str, is_shared: bool) -> Option<(u32, bool)> {
        let known = self.files.get(file).copied();
        let is_named = self.page_bytes <= FILE_PAGE_BYTES_MAX && is_file(file);
        if let Some(object) = known.filter(|_| is_named) {
            return Some((object, false));
        }
        if !is_named && !is_shared {
            return None;
        }
        let object = self.objects;
        self.objects += 1;
        if is_named {
            self.files.insert(file.to_owned(), object);
            self.names.insert(object, file.into());
        }
        Some((object, !is_named))
    }
}

/// Maps what `origin` says. A forked child's trace tells its parent's mappings once more; where it
/// says nothing new, all stays as it is.
fn map(space: &mut Space, range: Range<u64>, origin: Origin) {
    let is_known = |other: &Origin| match origin.is_anonymous {
        true => other.is_anonymous,
        false => *other == origin,
    };
    let overlapping = space.origins.within(range.start, range.end);
    let known: Vec<Range<u64>> = overlapping
        .filter(|(_, other)| is_known(other))
        .map(|(place, _)| place.start.max(range.start)..place.end.min(range.end))
        .collect();
    let mut from = range.start;
    let end = range.end..range.end;
    for known in known.into_iter().chain([end]) {
        if from < known.start {
            space.origins.insert(from, known.start, origin);
            space.mark_stale(from..known.start);
        }
        from = known.end;
    }
}

/// Unmaps what has an origin.
fn unmap(space: &mut Space, range: Range<u64>) {
    let overlapping = space.origins.within(range.start, range.end);
    let places: Vec<Range<u64>> = overlapping
        .map(|(place, _)| place.start.max(range.start)..place.end.min(range.end))
        .collect();
    space.origins.cut(range.start, range.end);
    places.into_iter().for_each(|place| space.mark_stale(place));
}

/// Returns true if a mapping's name tells its file: names in brackets are the kernel's, and several
/// files may have had a name that is gone.
fn is_file(name: &str) -> bool {
    let is_other = ["[", "/memfd:", "/dev/zero", "/SYSV", "anon_inode:"];
    let is_other = is_other.iter().any(|start| name.starts_with(start));
    !name.is_empty() && !is_other && !name.ends_with(" (deleted)")
}

#[cfg(test)]
mod tests;
