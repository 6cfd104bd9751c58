//! Runs: stretches of code that execute whole, and what each refers to.
//!
//! The recorder defines a run once and then logs its number and the addresses of its data, a word
//! each. [`Run`] is a definition made ready to be played: which code pages it fetches from, when,
//! and where among them its data accesses stand.
//!
//! A superblock is defined as a whole. Each of its side exits ends a run that began where the
//! superblock did; the runs have numbers in a row, the shortest first. Most are never executed, so
//! [`Runs`] makes each ready when it is first asked for.

use std::rc::Rc;

use tidemark_trace::Kinds;

/// The address a conditional access logs when it did not happen.
pub const NOWHERE: u64 = u64::MAX;

/// The number of bits of an address in a definition.
const ADDRESS_BITS: u32 = 48;

/// The runs of a process, by number.
#[derive(Debug, Default)]
pub struct Runs {
    /// For each number the place below, plus one; zero if it has none. A log that is damaged may
    /// name any number, which costs memory for those alone that are defined.
    places: Vec<u32>,
    /// One that is not ready has more words than any log.
    runs: Vec<Run>,
    definitions: Vec<Definition>,
}

/// The place where a run is defined.
#[derive(Clone, Debug)]
struct Definition {
    /// The items of its superblock.
    items: Rc<[u64]>,
    /// The number of shorter runs of the superblock.
    shorter: u32,
}

/// The words of a run that has not been made ready.
const WORDS_UNREADY: usize = usize::MAX >> 1;

/// More runs than any program's code has at a time.
const RUNS_MAX: usize = 1 << 26;

/// A reference of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its address, counted from what the word of the log says.
    pub offset: i64,
    /// The number of the run's instructions that have begun, this one's included.
    pub instruction: u32,
    /// The word of the log its address is counted from, the run's number being word 0, from which
    /// absolute addresses count.
    pub word: u16,
    /// Its size in bytes less one.
    pub reach: u16,
    /// The kinds of access.
    pub kinds: u8,
}

/// A page that a run refers to whenever it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The page.
    pub page: u64,
    /// The instruction of the first reference.
    pub instruction: u32,
    /// Kinds of access, of all together.
    pub kinds: u8,
}

/// Accesses of a run whose addresses count from one word, and so are mostly on one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The lowest address of all, counted from what the word says.
    pub offset: i64,
    /// The number of bytes between the lowest and the highest.
    pub reach: u32,
    /// The instruction of the first.
    pub instruction: u32,
    /// The word.
    pub word: u16,
    /// Kinds of access, of all together.
    pub kinds: u8,
}

/// The values that a word of the log may have without anything new being said: addresses with which
/// a group is on the page that it was on when it was last recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The lowest.
    pub start: u64,
    /// The number of values.
    pub length: u32,
    /// The word.
    pub word: u16,
}

/// A run, ready to be played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// References in the order of execution. Fetches from the page of the fetch before are left
    /// out, unless an access stands between them.
    pub steps: Vec<Step>,
    /// Data accesses by the word their addresses count from; none for constant addresses.
    pub groups: Vec<Group>,
    /// A span for each group.
    pub spans: Vec<Span>,
    /// Pages of code, and of data at constant addresses.
    pub fixed: Vec<Fixed>,
    /// The number of words that follow its number in the log.
    pub words: usize,
    /// The number of its instructions.
    pub instructions: u32,
    /// The most records it can make.
    pub records_max: usize,
    /// The quantum in which its fixed pages were last recorded.
    pub quantum_fixed: u64,
    /// The place of each instruction, and the number of steps before the next.
    places: Vec<Place>,
}

/// The place of an instruction in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    address: u64,
    /// Steps up to its own fetch, if that is one.
    steps: u32,
}

/// An item of a definition: `recorder/translate.c` has the layout.
enum Item {
    Instruction { address: u64, bytes: u64 },
    Logged { word: u16 },
    Derived { word: u16, offset: i64 },
    Constant { address: i64 },
    End,
}

impl Item {
    fn parse(item: u64) -> Item {
        let word = (item >> 32 & 0xfff) as u16 + 1;
        match (item >> 63, item >> 61 & 3) {
            (0, _) => Item::Instruction {
                address: item & ((1 << ADDRESS_BITS) - 1),
                bytes: (item >> ADDRESS_BITS).max(1),
            },
            (_, 0) => Item::Logged { word },
            (_, 1) => Item::Derived {
                word,
                offset: i64::from(item as i32),
            },
            (_, 2) => Item::Constant { address: 0 },
            (_, _) => Item::End,
        }
    }
}

impl Runs {
    /// Takes in the definition of a superblock whose shortest run has this number.
    pub fn define(&mut self, number: usize, items: Rc<[u64]>) {
        let ends = Items(&items).filter(|(item, _)| matches!(item, Item::End));
        let count = ends.count();
        if number + count > RUNS_MAX {
            return;
        }
        self.reach(number + count);
        for at in 0..count {
            let definition = Definition {
                items: items.clone(),
                shorter: at as u32,
            };
            match self.place_of(number + at) {
                Some(place) => {
                    self.runs[place] = Run::unready();
                    self.definitions[place] = definition;
                }
                None => {
                    self.runs.push(Run::unready());
                    self.definitions.push(definition);
                    self.places[number + at] = self.runs.len() as u32;
                }
            }
        }
    }

    /// Makes room for the places of numbers below `end`. What is not written of it takes no memory.
    fn reach(&mut self, end: usize) {
        if self.places.len() < end {
            let mut places = vec![0; end.next_power_of_two()];
            places[..self.places.len()].copy_from_slice(&self.places);
            self.places = places;
        }
    }

    #[inline]
    fn place_of(&self, number: usize) -> Option<usize> {
        (*self.places.get(number)? as usize).checked_sub(1)
    }

    /// Makes a run ready; false if it is, or has no definition. `page_shift` is the logarithm of
    /// the page size.
    #[cold]
    pub fn prepare(&mut self, number: usize, page_shift: u32) -> bool {
        let Some(place) = self.place_of(number) else {
            return false;
        };
        let run = &mut self.runs[place];
        if run.words != WORDS_UNREADY {
            return false;
        }
        let definition = &self.definitions[place];
        *run = Run::new(&definition.items, definition.shorter, page_shift);
        true
    }

    /// The run of this number, ready or not.
    #[inline]
    pub fn get(&mut self, number: usize) -> Option<&mut Run> {
        let place = self.place_of(number)?;
        self.runs.get_mut(place)
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.places.clear();
        self.runs.clear();
        self.definitions.clear();
    }
}

/// The items of a definition, each with what its first word says.
struct Items<'a>(&'a [u64]);

impl Iterator for Items<'_> {
    type Item = (Item, u64);

    fn next(&mut self) -> Option<(Item, u64)> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        let item = match Item::parse(first) {
            Item::Constant { .. } => {
                let (&address, rest) = rest.split_first()?;
                self.0 = rest;
                Item::Constant {
                    address: address.cast_signed(),
                }
            }
            item => item,
        };
        Some((item, first))
    }
}

impl Run {
    /// One that has yet to be made ready.
    fn unready() -> Run {
        Run {
            words: WORDS_UNREADY,
            ..Run::default()
        }
    }

    /// Reads the definition of a run with `shorter` shorter ones in its superblock. `page_shift` is
    /// the logarithm of the page size.
    fn new(items: &[u64], mut shorter: u32, page_shift: u32) -> Run {
        let mut run = Run {
            quantum_fixed: u64::MAX,
            ..Run::default()
        };
        let mut page_last = None;
        for (item, head) in Items(items) {
            let (word, offset) = match item {
                Item::Instruction { address, bytes } => {
                    page_last = Some(run.add_instruction(address, bytes, page_shift, page_last));
                    continue;
                }
                Item::End if shorter == 0 => break,
                Item::End => {
                    shorter -= 1;
                    continue;
                }
                Item::Logged { word } => {
                    run.words += 1;
                    (word, 0)
                }
                Item::Derived { word, offset } => (word, offset),
                Item::Constant { address } => (0, address),
            };
            run.steps.push(Step {
                offset,
                instruction: run.instructions,
                word,
                reach: (head >> 45 & 0x1fff).max(1) as u16 - 1,
                kinds: (head >> 58) as u8 & 7 & (Kinds::LOAD.0 | Kinds::STORE.0),
            });
            page_last = None;
        }
        // What a definition can't mean: a word that the run does not log.
        let words = run.words;
        run.steps.retain(|step| usize::from(step.word) <= words);
        let pages = |step: &Step| 2 + (usize::from(step.reach) >> page_shift);
        run.records_max = run.steps.iter().map(pages).sum();
        run.form_groups(page_shift);
        run
    }

    /// The run as far as its instruction at `address`, whose own accesses did not happen: steps
    /// only. `None` if it has no such instruction.
    ///
    /// If it has several, because its superblock has a loop unrolled, the last one is meant: the
    /// run became this long when the exit before that was passed.
    pub fn cut(&self, address: u64) -> Option<Run> {
        let index = self
            .places
            .iter()
            .rposition(|place| place.address == address)?;
        Some(Run {
            steps: self.steps[..self.places[index].steps as usize].to_vec(),
            words: self.words,
            instructions: index as u32 + 1,
            records_max: self.records_max,
            ..Run::default()
        })
    }

    /// Adds an instruction; returns the last page it is on.
    fn add_instruction(
        &mut self,
        address: u64,
        bytes: u64,
        page_shift: u32,
        mut page_last: Option<u64>,
    ) -> u64 {
        self.instructions += 1;
        let end = (address + bytes - 1) >> page_shift;
        for page in address >> page_shift..=end {
            if page_last != Some(page) {
                self.steps.push(Step {
                    offset: (page << page_shift).cast_signed(),
                    instruction: self.instructions,
                    word: 0,
                    reach: 0,
                    kinds: Kinds::FETCH.0,
                });
            }
            page_last = Some(page);
        }
        self.places.push(Place {
            address,
            steps: self.steps.len() as u32,
        });
        end
    }

    fn form_groups(&mut self, page_shift: u32) {
        for step in self.steps.iter().filter(|step| step.word == 0) {
            let first = step.offset.cast_unsigned();
            let last = first.saturating_add(u64::from(step.reach)) >> page_shift;
            for page in first >> page_shift..=last {
                match self.fixed.iter_mut().find(|fixed| fixed.page == page) {
                    Some(fixed) => fixed.kinds |= step.kinds,
                    None => self.fixed.push(Fixed {
                        page,
                        instruction: step.instruction,
                        kinds: step.kinds,
                    }),
                }
            }
        }
        for step in self.steps.iter().filter(|step| step.word != 0) {
            let end = step.offset + i64::from(step.reach);
            let found = self.groups.iter_mut().find(|group| group.word == step.word);
            let Some(group) = found else {
                self.groups.push(Group {
                    offset: step.offset,
                    reach: u32::from(step.reach),
                    instruction: step.instruction,
                    word: step.word,
                    kinds: step.kinds,
                });
                continue;
            };
            let low = group.offset.min(step.offset);
            let high = (group.offset + i64::from(group.reach)).max(end);
            group.offset = low;
            // Far apart they are on different pages in any case.
            group.reach = u32::try_from(high - low).unwrap_or(u32::MAX);
            group.kinds |= step.kinds;
        }
        let spans = self.groups.iter().map(|group| Span {
            word: group.word,
            ..Span::default()
        });
        self.spans = spans.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM_DERIVED: u64 = 1;
    const FORM_CONSTANT: u64 = 2;
    const END: u64 = 1 << 63 | 3 << 61;

    fn instruction(address: u64, bytes: u64) -> u64 {
        bytes << ADDRESS_BITS | address
    }

    fn access(form: u64, slot: u64, bytes: u64, offset: i32, kinds: Kinds) -> u64 {
        let kinds = u64::from(kinds.0) << 58;
        let offset = u64::from(offset.cast_unsigned());
        1 << 63 | form << 61 | kinds | bytes << 45 | slot << 32 | offset
    }

    fn run(items: &[u64]) -> Run {
        Run::new(items, 0, 12)
    }

    fn fetch(page: i64, instruction: u32) -> Step {
        Step {
            offset: page << 12,
            instruction,
            word: 0,
            reach: 0,
            kinds: Kinds::FETCH.0,
        }
    }

    #[test]
    fn a_far_number_costs_no_more_than_a_near_one() {
        let mut runs = Runs::default();
        let items: Rc<[u64]> = [instruction(0x1000, 4), END, END].into();
        runs.define(RUNS_MAX - 2, items.clone());
        assert_eq!((runs.runs.len(), runs.definitions.len()), (2, 2));
        assert!(runs.get(RUNS_MAX - 3).is_none());
        assert!(!runs.prepare(RUNS_MAX - 3, 12));
        assert!(runs.prepare(RUNS_MAX - 1, 12));
        assert_eq!(runs.get(RUNS_MAX - 1).map(|run| run.words), Some(0));
        // Defined anew, they take the same places.
        runs.define(RUNS_MAX - 2, items.clone());
        assert_eq!(runs.runs.len(), 2);
        assert!(runs.prepare(RUNS_MAX - 1, 12));
        runs.define(RUNS_MAX - 1, items);
        assert!(runs.get(RUNS_MAX).is_none());
    }

    #[test]
    fn fetches_are_told_when_the_page_changes_or_data_came_between() {
        let run = run(&[
            instruction(0x1000, 4),
            instruction(0x1004, 4),
            access(0, 0, 8, 0, Kinds::LOAD),
            instruction(0x1008, 4),
            instruction(0x2000, 1),
        ]);
        let load = Step {
            offset: 0,
            instruction: 2,
            word: 1,
            reach: 7,
            kinds: Kinds::LOAD.0,
        };
        assert_eq!(run.steps, [fetch(1, 1), load, fetch(1, 3), fetch(2, 4)]);
        assert_eq!((run.words, run.instructions), (1, 4));
    }

    #[test]
    fn an_instruction_on_two_pages_is_fetched_from_both() {
        let run = run(&[instruction(0x1ffe, 4), instruction(0x2002, 2)]);
        assert_eq!(run.steps, [fetch(1, 1), fetch(2, 1)]);
        let back = [instruction(0x2000, 2), instruction(0x1ffe, 4)];
        let run = Run::new(&back, 0, 12);
        assert_eq!(run.steps, [fetch(2, 1), fetch(1, 2), fetch(2, 2)]);
    }

    #[test]
    fn accesses_that_count_from_one_word_are_a_group() {
        let run = run(&[
            instruction(0x1000, 4),
            access(0, 0, 8, 0, Kinds::LOAD),
            access(FORM_CONSTANT, 0, 4, 0, Kinds::LOAD),
            0x5000,
            access(FORM_DERIVED, 0, 4, -16, Kinds::STORE),
            access(FORM_DERIVED, 0, 16, 24, Kinds::LOAD),
        ]);
        assert_eq!((run.words, run.steps.len(), run.groups.len()), (1, 5, 1));
        assert_eq!((run.steps[2].word, run.steps[2].offset), (0, 0x5000));
        let group = run.groups[0];
        assert_eq!((group.offset, group.reach), (-16, 16 + 24 + 15));
        assert_eq!(group.kinds, Kinds::LOAD.with(Kinds::STORE).0);
    }

    #[test]
    fn a_word_that_is_not_logged_is_not_counted_from() {
        let run = run(&[access(FORM_DERIVED, 3, 4, 0, Kinds::LOAD)]);
        assert_eq!((run.words, run.steps.len()), (0, 0));
    }

    #[test]
    fn each_exit_ends_a_run_that_begins_with_the_superblock() {
        let items = [
            instruction(0x1000, 4),
            access(0, 0, 8, 0, Kinds::LOAD),
            END,
            instruction(0x1004, 4),
            access(FORM_CONSTANT, 0, 4, 0, Kinds::LOAD),
            // A constant that looks like the end of a run.
            END,
            access(FORM_DERIVED, 0, 8, 16, Kinds::STORE),
            END,
        ];
        let mut runs = Runs::default();
        runs.define(5, items.into());
        assert!(!runs.prepare(4, 12) || runs.get(4).unwrap().steps.is_empty());
        assert!(runs.prepare(5, 12) && !runs.prepare(5, 12));
        assert!(runs.prepare(6, 12) && !runs.prepare(7, 12));
        let short = runs.get(5).unwrap().clone();
        let long = runs.get(6).unwrap();
        assert_eq!(
            (short.words, short.instructions, short.steps.len()),
            (1, 1, 2)
        );
        assert_eq!((long.words, long.instructions, long.steps.len()), (1, 2, 5));
        assert_eq!(long.steps[..2], short.steps);
        assert_eq!((long.steps[4].word, long.steps[4].offset), (1, 16));
    }

    #[test]
    fn a_cut_run_ends_where_an_unrolled_loop_was_last() {
        let body = [instruction(0x1000, 4), instruction(0x1004, 4), END];
        let run = Run::new(&[body, body].concat(), 1, 12);
        assert_eq!(run.cut(0x1000).unwrap().instructions, 3);
        assert_eq!(run.cut(0x1004).unwrap().instructions, 4);
    }

    #[test]
    fn a_cut_run_ends_with_the_fetch_of_its_last_instruction() {
        let run = run(&[
            instruction(0x1000, 4),
            access(0, 0, 8, 0, Kinds::STORE),
            instruction(0x1004, 4),
            access(0, 1, 8, 0, Kinds::STORE),
            instruction(0x1008, 4),
        ]);
        let cut = run.cut(0x1004).unwrap();
        assert_eq!(cut.steps, run.steps[..3]);
        assert_eq!((cut.instructions, cut.words), (2, 2));
        assert_eq!(run.cut(0x1002), None);
    }
}
