//! The mapping of each page, as the events of its process tell.

use std::ops::Range;
use std::sync::Arc;

use crate::event::{Event, LifeEvent, MappingEvent, Memory};
use crate::model::Rights;
use crate::spans::Spans;

/// The name of memory that belongs to no file and has no other name.
pub const ANONYMOUS: &str = "[anonymous]";

/// The name of the heap, as in the kernel's list of mappings.
pub const HEAP: &str = "[heap]";

/// The name of the first thread's stack, as in the kernel's list of mappings.
pub const STACK: &str = "[stack]";

/// The name of a region of this memory.
fn name_of(memory: &Memory) -> &str {
    match memory {
        Memory::Anonymous | Memory::Inner => ANONYMOUS,
        _ => memory.name(),
    }
}

/// The mappings of a process. No two overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    spans: Spans<Region>,
    /// The beginning of the heap, which may be empty, and its rights.
    heap: Option<(u64, Rights)>,
}

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its file, [`HEAP`], [`STACK`] or [`ANONYMOUS`].
    pub name: Arc<str>,
    /// The rights of the mapping.
    pub rights: Rights,
}

impl Regions {
    /// Takes in what happened; whether that changed any mapping.
    pub fn apply(&mut self, event: &Event) -> bool {
        match event {
            Event::Mapping(event) => self.change(event),
            Event::Life(LifeEvent::Exec { .. }) => *self = Regions::default(),
            Event::Life(_)
            | Event::File(_)
            | Event::Mark { .. }
            | Event::Windows { .. }
            | Event::Visit
            | Event::Size { .. } => return false,
        }
        true
    }

    fn change(&mut self, event: &MappingEvent) {
        match event {
            MappingEvent::Map {
                start,
                pages,
                rights,
                memory,
                ..
            } => {
                let region = Region {
                    name: name_of(memory).into(),
                    rights: *rights,
                };
                if *memory == Memory::Heap {
                    self.heap = Some((*start, *rights));
                }
                let end = start.saturating_add(*pages);
                self.spans.insert(*start, end, region);
            }
            MappingEvent::Unmap { start, pages } => {
                self.spans.cut(*start, start.saturating_add(*pages));
            }
            MappingEvent::Remap {
                from,
                from_pages,
                to,
                to_pages,
            } => self.remap((*from, *from_pages), (*to, *to_pages)),
            MappingEvent::Protect {
                start,
                pages,
                rights,
            } => {
                let end = start.saturating_add(*pages);
                let protect = |region: &mut Region| region.rights = *rights;
                self.spans.change(*start, end, protect);
            }
            MappingEvent::Break { end } => self.set_break(*end),
            MappingEvent::StackGrowth { start, pages } => self.grow_stack(*start, *pages),
        }
    }

    /// The mapping that `page` belongs to.
    pub fn find(&self, page: u64) -> Option<&Region> {
        self.spans.find(page).map(|(_, region)| region)
    }

    /// The mapping that `page` belongs to, with all its pages.
    pub fn find_span(&self, page: u64) -> Option<(Range<u64>, &Region)> {
        self.spans.find(page)
    }

    /// The mappings with their pages, by address.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, &Region)> {
        self.spans.iter()
    }

    /// The number of mappings.
    pub fn count(&self) -> usize {
        self.spans.iter().count()
    }

    fn remap(&mut self, from: (u64, u64), to: (u64, u64)) {
        let moved = self.find(from.0).cloned();
        self.spans.cut(from.0, from.0.saturating_add(from.1));
        let region = moved.unwrap_or_else(|| Region::named(ANONYMOUS));
        self.spans.insert(to.0, to.0.saturating_add(to.1), region);
    }

    /// Moves the end of the heap. It is empty until a program first asks for some.
    fn set_break(&mut self, end: u64) {
        let Some((start, rights)) = self.heap else {
            return;
        };
        let heaps = self.spans.iter();
        let last = heaps.filter(|(_, region)| &*region.name == HEAP).last();
        let last = last.map(|(place, region)| (place, region.clone()));
        match last {
            Some((place, _)) if end < place.end => {
                self.spans.cut(end.max(start), place.end);
            }
            Some((place, region)) => self.spans.insert(place.start, end, region),
            None => {
                let name = HEAP.into();
                self.spans.insert(start, end, Region { name, rights });
            }
        }
    }

    fn grow_stack(&mut self, start: u64, pages: u64) {
        let end = start.saturating_add(pages);
        let above = self.find(end).cloned();
        let region = above.unwrap_or_else(|| Region::named(STACK));
        self.spans.insert(start, end, region);
    }
}

impl Region {
    /// A region of which nothing else is known.
    fn named(name: &str) -> Region {
        Region {
            name: name.into(),
            rights: Rights::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(start: u64, pages: u64, file: &str) -> Event {
        Event::Mapping(MappingEvent::Map {
            start,
            pages,
            rights: Rights::READ,
            is_shared: false,
            memory: file.into(),
            offset: 0,
        })
    }

    fn after(events: &[Event]) -> Vec<(u64, u64, String)> {
        let mut regions = Regions::default();
        events.iter().for_each(|event| {
            regions.apply(event);
        });
        let spans = regions.spans.iter();
        spans
            .map(|(place, region)| (place.start, place.end, region.name.to_string()))
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
        let unmap = Event::Mapping(MappingEvent::Unmap {
            start: 12,
            pages: 3,
        });
        let found = after(&[map(10, 10, "a"), unmap]);
        assert_eq!(found, spans(&[(10, 12, "a"), (15, 20, "a")]));
    }

    #[test]
    fn a_moved_mapping_keeps_its_name() {
        let moved = Event::Mapping(MappingEvent::Remap {
            from: 10,
            from_pages: 10,
            to: 50,
            to_pages: 20,
        });
        assert_eq!(after(&[map(10, 10, "a"), moved]), spans(&[(50, 70, "a")]));
    }

    #[test]
    fn heap_and_stack_grow() {
        let events = [
            map(10, 1, HEAP),
            Event::Mapping(MappingEvent::Break { end: 20 }),
            map(90, 10, STACK),
            Event::Mapping(MappingEvent::StackGrowth {
                start: 88,
                pages: 2,
            }),
        ];
        let expected = [(10, 20, HEAP), (88, 90, STACK), (90, 100, STACK)];
        assert_eq!(after(&events), spans(&expected));
        let shrunk = after(&[
            map(10, 10, HEAP),
            Event::Mapping(MappingEvent::Break { end: 12 }),
        ]);
        assert_eq!(shrunk, spans(&[(10, 12, HEAP)]));
    }

    #[test]
    fn found_m1_a_heap_begins_empty_and_grows_where_it_began() {
        let events = [
            map(10, 0, HEAP),
            Event::Mapping(MappingEvent::Break { end: 20 }),
            map(14, 2, "in the middle"),
            Event::Mapping(MappingEvent::Break { end: 30 }),
        ];
        let expected = [(10, 14, HEAP), (14, 16, "in the middle"), (16, 30, HEAP)];
        assert_eq!(after(&events), spans(&expected));
        let gone = [
            map(10, 0, HEAP),
            Event::Mapping(MappingEvent::Break { end: 20 }),
            Event::Mapping(MappingEvent::Break { end: 10 }),
        ];
        assert_eq!(after(&gone), []);
        assert_eq!(
            after(&[Event::Mapping(MappingEvent::Break { end: 20 })]),
            []
        );
        let exec = Event::Life(LifeEvent::Exec {
            program: "b".into(),
        });
        assert_eq!(
            after(&[
                map(10, 0, HEAP),
                exec,
                Event::Mapping(MappingEvent::Break { end: 20 })
            ]),
            []
        );
    }

    #[test]
    fn another_program_begins_with_nothing() {
        let exec = Event::Life(LifeEvent::Exec {
            program: "b".into(),
        });
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
