//! The parts that regions and processes have in references, pages and misses under LRU.
//!
//! A [`Portioner`] takes the blocks of a trace one by one. It follows one LRU stack of the whole
//! program, as the [curve](super::stack) does, and counts each reference for what is mapped where
//! it goes: so the misses of all regions add up to those of the program, in every size. Regions of
//! one label are one, in whichever process; a page counts where it was touched first. A reference
//! counts for its process, too.
//!
//! # Bounds
//! Memory: 28 bytes a page, as much again for each process that has a page in common with others,
//! and what the address spaces take. A reference costs a walk of the
//! stack, and two ordered maps where mappings have changed since its page was used.

mod processes;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use tidemark_results::diff::{ProcessUse, RegionUse};
use tidemark_trace::{Block, Header};

use super::map::UNNAMED;
use super::map::places::{Place, Places};
use super::references::{Choice, Columns, Loading};
use super::stack::Stack;

use processes::Processes;

/// Counts the parts of regions in the blocks it is given.
pub struct Portioner {
    loading: Loading,
    columns: Columns,
    /// The number of references taken in before the present block.
    handed: u64,
    places: Places,
    stack: Stack,
    sizes: Vec<u64>,
    portions: Vec<RegionUse>,
    portion_of: HashMap<Place, u32>,
    /// For each page, the generation of the mappings in which it was found last, and its portion.
    found: Vec<(u64, u32)>,
    processes: Processes,
}

/// The parts of all references that were counted.
pub struct Portions {
    /// The portion of each label that was used, most pages first.
    pub regions: Vec<RegionUse>,
    /// The portion of each process, in the order of the trace.
    pub processes: Vec<ProcessUse>,
}

impl Portioner {
    /// Starts with a trace's header, for the chosen processes. Misses are counted in memory
    /// of each of `sizes`, in pages.
    pub fn new(header: &Header, processes: usize, sizes: &[u64]) -> Portioner {
        Portioner {
            loading: Loading::of(header, Choice::All, processes),
            columns: Columns::default(),
            handed: 0,
            places: Places::default(),
            stack: Stack::new(0),
            sizes: sizes.to_vec(),
            portions: vec![],
            portion_of: HashMap::new(),
            found: vec![],
            processes: Processes::default(),
        }
    }

    /// Takes in the next block of the trace.
    pub fn take(&mut self, block: &Block) {
        self.loading.take(block);
        self.processes.take(block);
        let mut columns = std::mem::take(&mut self.columns);
        self.loading.hand_over(&mut columns);
        if let Some(last) = self.loading.page_count().checked_sub(1) {
            self.stack.make_room(last);
            self.found.resize(last as usize + 1, (0, 0));
            self.processes.make_room(last);
        }
        for (stretch, event) in block.stretches() {
            self.count(block, &columns, stretch);
            if let Some(event) = event {
                self.places.happen(block.process, event);
            }
        }
        self.handed += columns.pages.len() as u64;
        self.columns = columns;
    }

    /// The parts of all that was taken in.
    pub fn finish(self) -> Portions {
        let mut by_label: BTreeMap<String, RegionUse> = BTreeMap::new();
        for portion in self.portions {
            let sum = by_label.entry(portion.label.clone()).or_insert(RegionUse {
                label: portion.label,
                misses: vec![0; self.sizes.len()],
                ..RegionUse::default()
            });
            sum.is_program |= portion.is_program;
            sum.pages += portion.pages;
            sum.references += portion.references;
            for (sum, misses) in sum.misses.iter_mut().zip(portion.misses) {
                *sum += misses;
            }
        }
        let mut regions: Vec<RegionUse> = by_label.into_values().collect();
        regions.sort_by_key(|region| std::cmp::Reverse(region.pages));
        Portions {
            regions,
            processes: self.processes.finish(self.sizes.len()),
        }
    }

    /// Counts a stretch of the references of the block.
    fn count(&mut self, block: &Block, columns: &Columns, stretch: Range<usize>) {
        let generation = self.places.generation();
        let mut own = ProcessUse {
            misses: vec![0; self.sizes.len()],
            ..ProcessUse::default()
        };
        let departures = &columns.departures;
        let first = self.handed + stretch.start as u64;
        let mut departed = departures.partition_point(|departure| departure.before < first);
        for at in stretch {
            while let Some(departure) = departures.get(departed)
                && departure.before <= self.handed + at as u64
            {
                departure
                    .pages
                    .iter()
                    .for_each(|page| self.stack.depart(*page));
                departed += 1;
            }
            let page = columns.pages[at];
            let known = self.found[page as usize];
            let portion = match known.0 == generation {
                true => known.1,
                false => self.portion(block.process, block.pages[at]),
            };
            self.found[page as usize] = (generation, portion);
            let depth = self.stack.refer_one(page).map(u64::from);
            let portion = &mut self.portions[portion as usize];
            portion.references += 1;
            portion.pages += u64::from(depth.is_none());
            own.references += 1;
            own.pages += u64::from(self.processes.is_new(block.process, page));
            let both = portion.misses.iter_mut().zip(&mut own.misses);
            for ((misses, own), size) in both.zip(&self.sizes) {
                let is_miss = u64::from(depth.is_none_or(|depth| depth > *size));
                *misses += is_miss;
                *own += is_miss;
            }
        }
        self.processes.add(block.process, &own);
    }

    /// The portion that a page of a process belongs to, found or made.
    fn portion(&mut self, process: u32, page: u64) -> u32 {
        let place = self.places.place(process, page);
        if let Some(portion) = self.portion_of.get(&place) {
            return *portion;
        }
        let (program, label) = self.places.names(place);
        let label = label.unwrap_or(UNNAMED);
        self.portions.push(RegionUse {
            label: label.into(),
            is_program: label == program,
            misses: vec![0; self.sizes.len()],
            ..RegionUse::default()
        });
        let portion = self.portions.len() as u32 - 1;
        self.portion_of.insert(place, portion);
        portion
    }
}

#[cfg(test)]
mod tests {
    use tidemark_trace::{Event, LifeEvent};

    use super::super::reference_string::ReferenceString;
    use super::super::references::References;
    use super::super::stack::count_depths_of;
    use super::super::testing::{block, header, map, start};
    use super::*;

    fn portions(blocks: &[Block], processes: usize, sizes: &[u64]) -> Vec<RegionUse> {
        let mut portioner = Portioner::new(&header(), processes, sizes);
        blocks.iter().for_each(|block| portioner.take(block));
        portioner.finish().regions
    }

    #[test]
    fn misses_go_to_the_region_of_the_page() {
        // Two pages of the heap in turn with four of the program's file, in two and in six pages.
        let pages: Vec<u64> = (0..60).map(|at| [10, 20, 11, 21, 22, 23][at % 6]).collect();
        let events = vec![
            (0, start(7, 0)),
            (0, map(10, 5, "[heap]")),
            (0, map(20, 9, "/bin/x")),
        ];
        let found = portions(&[block(0, &pages, events)], 1, &[2, 6]);
        let of = |label: &str| found.iter().find(|it| it.label == label).unwrap();
        let (heap, program) = (of("[heap]"), of("/bin/x"));
        assert_eq!(
            (heap.pages, heap.references, &heap.misses[..]),
            (2, 20, &[20, 2][..])
        );
        assert_eq!((program.pages, program.references), (4, 40));
        assert_eq!(program.misses, [40, 4]);
        assert!(program.is_program && !heap.is_program);
    }

    #[test]
    fn a_page_that_is_mapped_anew_has_its_references_where_it_is() {
        let events = vec![(0, map(1, 1, "a")), (2, map(1, 1, "b"))];
        let found = portions(&[block(0, &[1, 1, 1], events)], 1, &[1]);
        let told: Vec<(&str, u64, u64)> = found
            .iter()
            .map(|it| (&it.label[..], it.pages, it.references))
            .collect();
        assert_eq!(told, [("a", 1, 2), ("b", 0, 1)]);
    }

    #[test]
    fn regions_add_up_to_the_curve_though_processes_share_and_end() {
        let walk = |from: u64, turns: u64| -> Vec<u64> {
            (0..turns).map(|at| from + at * at % 13).collect()
        };
        let blocks = [
            block(
                0,
                &walk(10, 100),
                vec![(0, start(7, 0)), (0, map(10, 20, "[heap]"))],
            ),
            block(
                1,
                &walk(12, 100),
                vec![
                    (0, start(8, 7)),
                    (90, Event::Life(LifeEvent::Exit { status: 0 })),
                ],
            ),
            block(0, &walk(15, 100), vec![(50, map(15, 3, "/lib/x"))]),
        ];
        let sizes = [1, 3, 8, 100];
        let found = portions(&blocks, 2, &sizes);
        let mut loading = Loading::of(&header(), Choice::All, 2);
        blocks.iter().for_each(|block| loading.take(block));
        let references: References = loading.finish();
        let misses = count_depths_of(ReferenceString::of(&references)).misses();
        for (place, size) in sizes.iter().enumerate() {
            let sum: u64 = found.iter().map(|it| it.misses[place]).sum();
            assert_eq!(
                sum,
                misses[(*size as usize).min(misses.len() - 1)],
                "{size}"
            );
        }
        let pages: u64 = found.iter().map(|it| it.pages).sum();
        assert_eq!(pages, u64::from(references.page_count));
    }

    #[test]
    fn each_process_has_its_own_references_pages_time_and_misses() {
        // Both have a page of one file, which is one page in memory; the rest is each one's own.
        let blocks = [
            block(
                0,
                &[1, 50, 1, 50],
                vec![(0, start(7, 0)), (0, map(50, 1, "/lib/x"))],
            ),
            block(
                1,
                &[50, 2, 3],
                vec![(0, start(8, 7)), (0, map(50, 1, "/lib/x"))],
            ),
            block(
                0,
                &[50, 1],
                vec![(
                    1,
                    Event::Life(LifeEvent::Exec {
                        program: "/bin/y".into(),
                    }),
                )],
            ),
        ];
        let mut portioner = Portioner::new(&header(), 2, &[1, 100]);
        blocks.iter().for_each(|block| portioner.take(block));
        let found = portioner.finish();
        let told: Vec<_> = found
            .processes
            .iter()
            .map(|it| {
                (
                    it.pid,
                    it.program.as_str(),
                    it.pages,
                    it.references,
                    it.time,
                )
            })
            .collect();
        // After it executed another program the first has a page of its own again.
        assert_eq!(
            told,
            [(Some(7), "/bin/y", 3, 6, 6), (Some(8), "/bin/x", 3, 3, 3)]
        );
        let misses: Vec<&[u64]> = found.processes.iter().map(|it| &it.misses[..]).collect();
        assert_eq!(misses, [&[6, 3], &[2, 2]]);
        let sum: u64 = found.regions.iter().map(|it| it.misses[0]).sum();
        assert_eq!(sum, 8);
    }
}
