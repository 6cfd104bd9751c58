//! Which mapping a page belongs to, as the events of its process tell.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Event, Rights};

/// The name of memory that belongs to no file and has no other name.
pub const ANONYMOUS: &str = "[anonymous]";

/// The name of the heap, as in the kernel's list of mappings.
pub const HEAP: &str = "[heap]";

/// The name of the first thread's stack, as in the kernel's list of mappings.
pub const STACK: &str = "[stack]";

/// The mappings of a process. No two overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    by_start: BTreeMap<u64, Region>,
}

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first page.
    pub start: u64,
    /// The first page behind it.
    pub end: u64,
    /// Its file, [`HEAP`], [`STACK`] or [`ANONYMOUS`].
    pub name: Arc<str>,
    /// What may be done with it.
    pub rights: Rights,
}

impl Regions {
    /// Takes in what happened; whether that changed any mapping.
    pub fn apply(&mut self, event: &Event) -> bool {
        match event {
            Event::Map {
                start,
                pages,
                rights,
                file,
                ..
            } => {
                let name = if file.is_empty() { ANONYMOUS } else { file };
                self.insert(Region {
                    start: *start,
                    end: start.saturating_add(*pages),
                    name: name.into(),
                    rights: *rights,
                });
            }
            Event::Unmap { start, pages } => self.cut(*start, start.saturating_add(*pages)),
            Event::Remap {
                from,
                from_pages,
                to,
                to_pages,
            } => self.remap((*from, *from_pages), (*to, *to_pages)),
            Event::Protect {
                start,
                pages,
                rights,
            } => self.protect(*start, start.saturating_add(*pages), *rights),
            Event::Break { end } => self.set_break(*end),
            Event::StackGrowth { start, pages } => self.grow_stack(*start, *pages),
            Event::Exec { .. } => self.by_start.clear(),
            Event::Start { .. }
            | Event::ThreadStart { .. }
            | Event::ThreadExit { .. }
            | Event::ThreadSwitch { .. }
            | Event::Fork { .. }
            | Event::Wait { .. }
            | Event::Mark { .. }
            | Event::Exit { .. }
            | Event::Killed { .. } => return false,
        }
        true
    }

    /// The mapping that `page` belongs to.
    pub fn find(&self, page: u64) -> Option<&Region> {
        let (_, region) = self.by_start.range(..=page).next_back()?;
        (page < region.end).then_some(region)
    }

    /// The mappings, by their places.
    pub fn iter(&self) -> impl Iterator<Item = &Region> {
        self.by_start.values()
    }

    fn insert(&mut self, region: Region) {
        if region.start < region.end {
            self.cut(region.start, region.end);
            self.by_start.insert(region.start, region);
        }
    }

    /// Takes the pages from `start` to before `end` away from whatever they belong to.
    fn cut(&mut self, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        let inside: Vec<u64> = self
            .by_start
            .range(start..end.max(start))
            .map(|(&at, _)| at)
            .collect();
        for at in inside {
            self.by_start.remove(&at);
        }
    }

    /// Makes two regions of one that has `at` inside.
    fn split(&mut self, at: u64) {
        let Some((_, region)) = self.by_start.range_mut(..at).next_back() else {
            return;
        };
        if region.end > at {
            let mut behind = region.clone();
            region.end = at;
            behind.start = at;
            self.by_start.insert(at, behind);
        }
    }

    fn remap(&mut self, from: (u64, u64), to: (u64, u64)) {
        let moved = self.find(from.0).cloned();
        self.cut(from.0, from.0.saturating_add(from.1));
        let (name, rights) = moved.map_or((ANONYMOUS.into(), Rights::default()), |region| {
            (region.name, region.rights)
        });
        self.insert(Region {
            start: to.0,
            end: to.0.saturating_add(to.1),
            name,
            rights,
        });
    }

    fn protect(&mut self, start: u64, end: u64, rights: Rights) {
        self.split(start);
        self.split(end);
        for (_, region) in self.by_start.range_mut(start..end.max(start)) {
            region.rights = rights;
        }
    }

    fn set_break(&mut self, end: u64) {
        let heap = self
            .by_start
            .values()
            .find(|region| &*region.name == HEAP)
            .cloned();
        if let Some(heap) = heap {
            self.cut(heap.start, heap.end.max(end));
            self.insert(Region { end, ..heap });
        }
    }

    fn grow_stack(&mut self, start: u64, pages: u64) {
        let end = start.saturating_add(pages);
        let above = self.find(end).cloned();
        let (name, rights) = above.map_or((STACK.into(), Rights::default()), |region| {
            (region.name, region.rights)
        });
        self.insert(Region {
            start,
            end,
            name,
            rights,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(start: u64, pages: u64, file: &str) -> Event {
        Event::Map {
            start,
            pages,
            rights: Rights::READ,
            is_shared: false,
            file: file.into(),
            offset: 0,
        }
    }

    fn after(events: &[Event]) -> Vec<(u64, u64, String)> {
        let mut regions = Regions::default();
        events.iter().for_each(|event| {
            regions.apply(event);
        });
        regions
            .iter()
            .map(|region| (region.start, region.end, region.name.to_string()))
            .collect()
    }

    fn spans(expected: &[(u64, u64, &str)]) -> Vec<(u64, u64, String)> {
        let owned = |&(start, end, name): &(u64, u64, &str)| (start, end, name.to_owned());
        expected.iter().map(owned).collect()
    }

    #[test]
    fn a_mapping_replaces_what_it_covers() {
        let found = after(&[map(10, 10, "a"), map(14, 2, "")]);
        let expected = [(10, 14, "a"), (14, 16, ANONYMOUS), (16, 20, "a")];
        assert_eq!(found, spans(&expected));
        let found = after(&[map(10, 10, "a"), map(0, 100, "b")]);
        assert_eq!(found, spans(&[(0, 100, "b")]));
    }

    #[test]
    fn unmapping_leaves_the_rest() {
        let unmap = Event::Unmap {
            start: 12,
            pages: 3,
        };
        let found = after(&[map(10, 10, "a"), unmap]);
        assert_eq!(found, spans(&[(10, 12, "a"), (15, 20, "a")]));
    }

    #[test]
    fn a_moved_mapping_keeps_its_name() {
        let moved = Event::Remap {
            from: 10,
            from_pages: 10,
            to: 50,
            to_pages: 20,
        };
        assert_eq!(after(&[map(10, 10, "a"), moved]), spans(&[(50, 70, "a")]));
    }

    #[test]
    fn heap_and_stack_grow() {
        let events = [
            map(10, 1, HEAP),
            Event::Break { end: 20 },
            map(90, 10, STACK),
            Event::StackGrowth {
                start: 88,
                pages: 2,
            },
        ];
        let expected = [(10, 20, HEAP), (88, 90, STACK), (90, 100, STACK)];
        assert_eq!(after(&events), spans(&expected));
        let shrunk = after(&[map(10, 10, HEAP), Event::Break { end: 12 }]);
        assert_eq!(shrunk, spans(&[(10, 12, HEAP)]));
    }

    #[test]
    fn another_program_begins_with_nothing() {
        let exec = Event::Exec {
            program: "b".into(),
        };
        assert_eq!(after(&[map(10, 10, "a"), exec]), []);
    }

    #[test]
    fn pages_are_found_in_their_mappings() {
        let mut regions = Regions::default();
        regions.apply(&map(10, 10, "a"));
        regions.apply(&map(u64::MAX - 1, 1, "b"));
        assert_eq!(&*regions.find(19).unwrap().name, "a");
        assert_eq!(&*regions.find(u64::MAX - 1).unwrap().name, "b");
        assert!(regions.find(20).is_none() && regions.find(9).is_none());
        assert!(regions.find(u64::MAX).is_none());
    }
}
