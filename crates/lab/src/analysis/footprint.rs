//! The footprint: how many pages are touched in each interval of time, how many of them for the
//! first time, and how many are mapped meanwhile.
//!
//! A [`Footprinter`] takes the blocks of a trace one by one. Pages are numbered as for all other
//! analyses, so that what processes share is touched once; mappings are those of each process,
//! until it ends or executes another program.
//!
//! # Bounds
//! Memory: 24 bytes a page, and what the address spaces take. A reference costs two looks into
//! tables, and a walk of ordered maps where mappings have changed since its page was used. The end
//! of an interval in which mappings changed costs a walk of all mappings.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use tidemark_results::analysis::footprint::{Footprint, Interval, MappedRegion};
use tidemark_trace::regions::{ANONYMOUS, HEAP, STACK};
use tidemark_trace::spans::Spans;
use tidemark_trace::{Block, Event, Header, LifeEvent, MappingEvent, TimeUnit};

use super::map::places::{Place, Places};
use super::references::{Choice, Clock, Columns, Loading};

/// Counts the footprint of the blocks it is given.
pub struct Footprinter {
    unit: TimeUnit,
    ticks: u64,
    loading: Loading,
    columns: Columns,
    clock: Clock,
    places: Places,
    /// The processes that are there.
    alive: BTreeSet<u32>,
    /// The generation of the mappings that `now` is of, and the pages: allocated, and all.
    counted: u64,
    now: (u64, u64),
    has_mappings: bool,
    intervals: Vec<Interval>,
    /// For each page, the interval in which it was touched last, counted from 1.
    last: Vec<u32>,
    /// For each page, the generation of the mappings in which its place was last noted, and the
    /// process whose place that was.
    noted: Vec<(u64, u32)>,
    used: HashMap<Place, Used>,
}

/// The pages of one place that were mapped at any time.
#[derive(Default)]
struct Used {
    mapped: Spans<()>,
    /// The pages that were touched, 64 a word.
    touched: HashMap<u64, u64>,
}

impl Footprinter {
    /// Starts with a trace's header, for the chosen processes, which last for `time` in all: in at
    /// most `pieces` intervals of at least `ticks_least` each.
    ///
    /// # Panics
    /// If there is to be no interval.
    pub fn new(
        header: &Header,
        processes: usize,
        time: u64,
        (pieces, ticks_least): (u64, u64),
    ) -> Footprinter {
        assert!(pieces > 0, "`pieces` is 0; needs 1");
        Footprinter {
            unit: header.time,
            ticks: time.div_ceil(pieces).max(ticks_least).max(1),
            loading: Loading::of(header, Choice::All, processes),
            columns: Columns::default(),
            clock: Clock::default(),
            places: Places::default(),
            alive: BTreeSet::new(),
            counted: 0,
            now: (0, 0),
            has_mappings: false,
            intervals: vec![],
            last: vec![],
            noted: vec![],
            used: HashMap::new(),
        }
    }

    /// Takes in the next block of the trace.
    pub fn take(&mut self, block: &Block) {
        self.loading.take(block);
        let mut columns = std::mem::take(&mut self.columns);
        self.loading.hand_over(&mut columns);
        let pages = self.loading.page_count() as usize;
        self.last.resize(pages, 0);
        self.noted.resize(pages, (0, 0));
        if self.unit != TimeUnit::References {
            self.clock.begin(block.process, block.time_start);
        }
        self.alive.insert(block.process);
        for (stretch, event) in block.stretches() {
            self.touch(block, &columns, stretch);
            if let Some(event) = event {
                self.happen(block.process, event);
            }
        }
        self.columns = columns;
    }

    /// The footprint of all blocks that were taken in.
    pub fn finish(mut self) -> Footprint {
        self.close();
        if !self.has_mappings {
            for interval in &mut self.intervals {
                (interval.allocated, interval.mapped) = (None, None);
            }
        }
        Footprint {
            interval: self.ticks,
            regions: self.regions(),
            intervals: self.intervals,
        }
    }

    /// Takes in a stretch of the references of a block.
    fn touch(&mut self, block: &Block, columns: &Columns, stretch: Range<usize>) {
        let generation = self.places.generation();
        for at in stretch {
            self.clock.pass(match self.unit {
                TimeUnit::References => 1,
                TimeUnit::Instructions | TimeUnit::Nanoseconds => u64::from(block.gaps[at]),
            });
            // A reference at time t belongs to the interval that ends there.
            let number = self.clock.now.saturating_sub(1) / self.ticks;
            while self.intervals.len() as u64 <= number {
                self.open();
            }
            let page = columns.pages[at] as usize;
            let now = self.intervals.len() as u32;
            let before = std::mem::replace(&mut self.last[page], now);
            if let Some(interval) = self.intervals.last_mut() {
                interval.touched += u64::from(before != now);
                interval.new += u64::from(before == 0);
            }
            let place = (generation, block.process);
            if self.noted[page] != place {
                self.noted[page] = place;
                self.note_touch(block.process, block.pages[at]);
            }
        }
    }

    /// Notes that a page of a process was touched where it is mapped.
    fn note_touch(&mut self, process: u32, page: u64) {
        let place = self.places.place(process, page);
        if place.label.is_some() {
            let touched = &mut self.used.entry(place).or_default().touched;
            *touched.entry(page / 64).or_default() |= 1 << (page % 64);
        }
    }

    /// Follows an event of a process.
    fn happen(&mut self, process: u32, event: &Event) {
        self.places.happen(process, event);
        match *event {
            Event::Mapping(
                MappingEvent::Map { start, pages, .. } | MappingEvent::StackGrowth { start, pages },
            ) => {
                self.note_mapped(process, start, pages);
            }
            Event::Mapping(MappingEvent::Remap { to, to_pages, .. }) => {
                self.note_mapped(process, to, to_pages)
            }
            Event::Mapping(MappingEvent::Break { end }) => self.note_heap(process, end),
            Event::Life(LifeEvent::Start { .. }) => {
                self.alive.insert(process);
                self.note_inherited(process);
            }
            Event::Life(LifeEvent::Exit { .. } | LifeEvent::Killed { .. }) => {
                self.alive.remove(&process);
                self.counted = 0;
            }
            _ => {}
        }
    }

    /// Notes that pages of a process are mapped.
    fn note_mapped(&mut self, process: u32, start: u64, pages: u64) {
        if pages == 0 {
            return;
        }
        self.has_mappings = true;
        let place = self.places.place(process, start);
        let mapped = &mut self.used.entry(place).or_default().mapped;
        mapped.insert(start, start.saturating_add(pages), ());
    }

    /// Notes that the heap reaches up to `end`.
    fn note_heap(&mut self, process: u32, end: u64) {
        let regions = self.places.regions(process);
        let last = end.checked_sub(1).and_then(|last| regions.find_span(last));
        if let Some((span, _)) = last.filter(|(_, region)| &*region.name == HEAP) {
            self.note_mapped(process, span.start, span.end - span.start);
        }
    }

    /// Notes what a process has from its parent.
    fn note_inherited(&mut self, process: u32) {
        let regions = self.places.regions(process).iter();
        let spans: Vec<(u64, u64)> = regions.map(|(span, _)| (span.start, span.end)).collect();
        for (start, end) in spans {
            self.note_mapped(process, start, end - start);
        }
    }

    /// Begins the next interval.
    fn open(&mut self) {
        self.close();
        self.intervals.push(Interval {
            from: self.intervals.len() as u64 * self.ticks,
            ..Interval::default()
        });
    }

    /// Ends the present interval: what is mapped now is what it had at its end.
    fn close(&mut self) {
        if self.counted != self.places.generation() {
            self.counted = self.places.generation();
            self.now = self.count_mapped();
        }
        if let Some(interval) = self.intervals.last_mut() {
            (interval.allocated, interval.mapped) = (Some(self.now.0), Some(self.now.1));
        }
    }

    /// The pages that are mapped: those of no file, and all.
    fn count_mapped(&mut self) -> (u64, u64) {
        let mut sums = (0, 0);
        for &process in &self.alive {
            for (span, region) in self.places.regions(process).iter() {
                let pages = span.end - span.start;
                let is_allocated = [ANONYMOUS, HEAP, STACK].contains(&&*region.name);
                sums.0 += if is_allocated { pages } else { 0 };
                sums.1 += pages;
            }
        }
        sums
    }

    /// The pages that were mapped at any time, by label.
    fn regions(&self) -> Vec<MappedRegion> {
        let mut by_label: BTreeMap<&str, MappedRegion> = BTreeMap::new();
        for (place, used) in &self.used {
            let Some(label) = self.places.names(*place).1 else {
                continue;
            };
            let sum = by_label.entry(label).or_default();
            let spans = used.mapped.iter();
            sum.mapped += spans.map(|(span, ())| span.end - span.start).sum::<u64>();
            let touched = used.touched.values();
            sum.touched += touched
                .map(|word| u64::from(word.count_ones()))
                .sum::<u64>();
        }
        let regions = by_label.into_iter().map(|(label, region)| MappedRegion {
            label: label.into(),
            ..region
        });
        let mut regions: Vec<MappedRegion> = regions.collect();
        regions.sort_by_key(|region| std::cmp::Reverse(region.never_touched()));
        regions
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, header, map, start};
    use super::*;

    fn footprint(blocks: &[Block], processes: usize, pieces: u64) -> Footprint {
        let time = blocks.iter().map(|block| block.pages.len() as u64).sum();
        let mut footprinter = Footprinter::new(&header(), processes, time, (pieces, 0));
        blocks.iter().for_each(|block| footprinter.take(block));
        footprinter.finish()
    }

    fn region(label: &str, mapped: u64, touched: u64) -> MappedRegion {
        MappedRegion {
            label: label.into(),
            mapped,
            touched,
        }
    }

    #[test]
    fn pages_are_new_once_and_touched_in_each_interval() {
        let found = footprint(&[block(0, &[1, 2, 2, 1, 3, 3, 1, 4], vec![])], 1, 2);
        let told: Vec<(u64, u64, u64)> = found
            .intervals
            .iter()
            .map(|it| (it.from, it.touched, it.new))
            .collect();
        assert_eq!(told, [(0, 2, 2), (4, 3, 2)]);
        assert_eq!(found.touched_so_far(), [2, 4]);
        // The trace has no mappings.
        assert_eq!(
            (found.intervals[0].mapped, &found.regions[..]),
            (None, &[][..])
        );
    }

    #[test]
    fn what_is_mapped_is_counted_at_the_end_of_each_interval() {
        let unmap = Event::Mapping(MappingEvent::Unmap {
            start: 14,
            pages: 6,
        });
        let events = vec![
            (0, map(10, 10, "")),
            (0, map(40, 5, "/lib/a")),
            (0, map(60, 1, HEAP)),
            (2, Event::Mapping(MappingEvent::Break { end: 70 })),
            (5, unmap),
        ];
        let found = footprint(&[block(0, &[10, 40, 61, 62, 10, 11, 40, 41], events)], 1, 2);
        let told: Vec<(Option<u64>, Option<u64>)> = found
            .intervals
            .iter()
            .map(|it| (it.allocated, it.mapped))
            .collect();
        assert_eq!(told, [(Some(20), Some(25)), (Some(14), Some(19))]);
        let expected = [
            region("[heap]", 10, 2),
            region("anonymous", 10, 2),
            region("/lib/a", 5, 2),
        ];
        assert_eq!(found.regions, expected);
    }

    #[test]
    fn a_child_has_its_parents_mappings_until_it_ends() {
        let blocks = [
            block(
                0,
                &[10, 11],
                vec![(0, start(7, 0)), (0, map(10, 8, "/lib/a"))],
            ),
            block(1, &[10, 12], vec![(0, start(8, 7))]),
            block(
                1,
                &[10],
                vec![(1, Event::Life(LifeEvent::Exit { status: 0 }))],
            ),
            block(0, &[10], vec![]),
        ];
        let found = footprint(&blocks, 2, 3);
        let mapped: Vec<u64> = found.intervals.iter().filter_map(|it| it.mapped).collect();
        // The child begins as the second interval does.
        assert_eq!(mapped, [16, 16, 8]);
        // One page of the file is the same in both.
        assert_eq!(found.touched_so_far(), [2, 3, 3]);
        assert_eq!(found.regions, [region("/lib/a", 16, 4)]);
    }
}
