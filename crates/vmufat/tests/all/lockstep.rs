//! Lockstep: 10,000 random operations on a volume, and on a plain map of names to contents.
//!
//! After each the two have the same files. A failure prints the shortest list of operations found
//! that still fails.

use std::panic::{self, AssertUnwindSafe};

use crate::support::{Law, Laws, WHEN, contents, data, laws, made};
use tidemark_model::random::{Choices, SplitMix64};
use tidemark_model::shrink::shrink_steps;
use tidemark_vmufat::{Copying, Error, Image, Kind, Layout, Name, NewFile, Timestamp, Volume};

/// An operation.
#[derive(Clone, Debug)]
enum Operation {
    /// Writes a file, perhaps in the place of another.
    Write {
        name: u64,
        kind: Kind,
        copying: Copying,
        bytes: usize,
        seed: u64,
    },
    /// Deletes a file, if it is there.
    Delete { name: u64 },
    /// Gives the volume up and opens it again.
    Mount,
}

/// Draws an operation. Files of many sizes are many, so that the volume is full at times, and the
/// directory of several blocks, too.
fn draw(random: &mut SplitMix64, names: u64, blocks_max: u64) -> Operation {
    let name = random.below(names);
    if random.chance(1, 80) {
        return Operation::Mount;
    }
    match random.below(20) {
        0..=7 => Operation::Delete { name },
        choice => {
            let blocks = random.below(blocks_max) + 1;
            let blocks = random.below(blocks) + 1;
            Operation::Write {
                name,
                kind: match choice {
                    8 | 9 => Kind::Game,
                    _ => Kind::Data,
                },
                copying: match random.chance(1, 4) {
                    true => Copying::Forbidden,
                    false => Copying::Allowed,
                },
                bytes: (blocks * 512 - random.below(1025).min(blocks * 512)) as usize,
                seed: random.draw(),
            }
        }
    }
}

fn name_of(number: u64) -> Name {
    let text = format!("FILE_{number:0width$}", width = 1 + number as usize % 7);
    Name::new(text.as_bytes()).unwrap()
}

/// The volume and the map.
struct Pair {
    volume: Volume<Image>,
    laws: Laws,
}

impl Pair {
    fn act(&mut self, operation: &Operation) {
        match *operation {
            Operation::Write {
                name,
                kind,
                copying,
                bytes,
                seed,
            } => {
                let file = NewFile {
                    name: name_of(name),
                    kind,
                    copying,
                    created: Timestamp::from_unix(seed % 4_000_000_000),
                };
                self.write(file, &contents(seed, bytes));
            }
            Operation::Delete { name } => {
                let name = name_of(name);
                let due = match self.laws.remove(&name) {
                    Some(_) => Ok(()),
                    None => Err(Error::NoFile(name)),
                };
                assert_eq!(self.volume.delete(&name), due);
                assert_eq!(self.volume.find(&name), None);
            }
            Operation::Mount => {
                let image = self.volume.device_mut().clone();
                self.volume = Volume::mount(image).unwrap();
                assert_eq!(laws(&mut self.volume), self.laws);
            }
        }
        assert_eq!(self.volume.findings(), []);
        assert_eq!(self.volume.files().count(), self.laws.len());
        assert_eq!(self.volume.free_blocks(), self.free());
    }

    fn write(&mut self, file: NewFile, contents: &[u8]) {
        let law = Law::new(file, contents);
        let needed = law.blocks() as u64;
        let is_there = self.laws.contains_key(&file.name);
        let is_full = self.laws.len() == self.volume.layout().records() && !is_there;
        let due = match file.kind {
            Kind::Data if needed > u64::from(self.free()) => Err(Error::Full {
                needed,
                free: self.free(),
            }),
            Kind::Game if needed > u64::from(self.free_at_start()) => Err(Error::NoPlaceForGame {
                needed,
                free: self.free_at_start(),
            }),
            Kind::Data | Kind::Game if is_full => Err(Error::DirectoryFull {
                records: self.laws.len(),
            }),
            Kind::Data | Kind::Game => Ok(()),
        };
        assert_eq!(self.volume.write(&file, contents), due);
        if due.is_ok() {
            self.laws.insert(file.name, law);
        }
        if let Some(law) = self.laws.get(&file.name) {
            assert_eq!(self.volume.read(&file.name).unwrap(), law.contents);
        }
    }

    fn free(&self) -> u32 {
        let used: usize = self.laws.values().map(Law::blocks).sum();
        u32::from(self.volume.layout().user_blocks()) - used as u32
    }

    /// The blocks in front of the lowest that a file has.
    fn free_at_start(&self) -> u32 {
        let files = self.laws.keys();
        let blocks = files.flat_map(|name| self.volume.blocks_of(name).unwrap());
        let limit = self.volume.layout().user_blocks();
        u32::from(blocks.min().unwrap_or(limit).min(limit))
    }
}

/// Runs operations, and says what a failing check said.
fn run(layout: Layout, operations: &[Operation]) -> Result<(), String> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut pair = Pair {
            volume: made(layout),
            laws: Laws::new(),
        };
        for operation in operations {
            pair.act(operation);
        }
        pair.act(&Operation::Mount);
        pair.laws.len()
    }));
    outcome.map(drop).map_err(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied());
        text.unwrap_or("a panic without words").to_owned()
    })
}

fn check(layout: Layout, seed: u64, count: usize, names: u64, blocks_max: u64) {
    let mut random = SplitMix64::new(seed);
    let drawn = (0..count).map(|_| draw(&mut random, names, blocks_max));
    let operations: Vec<Operation> = drawn.collect();
    if let Err(message) = run(layout, &operations) {
        let few = shrink_steps(operations, |few| run(layout, few).is_err());
        panic!("{message}\n{few:#?}");
    }
}

#[test]
fn a_card_does_what_a_plain_map_does_for_4000_operations() {
    let card = Layout::new(256).unwrap();
    check(card, 1, 2000, 30, 40);
    check(card.without_hidden(), 2, 2000, 220, 3);
}

#[test]
fn a_volume_of_several_table_blocks_does_what_a_plain_map_does_for_4000_operations() {
    check(Layout::new(600).unwrap(), 3, 2000, 100, 60);
    check(Layout::new(1024).unwrap(), 4, 2000, 600, 4);
}

#[test]
fn the_largest_volume_does_what_a_plain_map_does_for_2000_operations() {
    check(Layout::new(65_536).unwrap(), 5, 2000, 700, 400);
}

#[test]
fn the_directory_is_full_before_the_blocks_are() {
    let mut volume = made(Layout::new(512).unwrap());
    let records = volume.layout().records();
    for number in 0..records {
        volume.write(&data(&format!("F{number}")), b"x").unwrap();
    }
    assert!(volume.free_blocks() > 0);
    let full = Err(Error::DirectoryFull { records });
    assert_eq!(volume.write(&data("MORE"), b"x"), full);
    // One in the place of another needs no record.
    volume.write(&data("F7"), b"y").unwrap();
    volume.delete(&data("F0").name).unwrap();
    volume.write(&data("MORE"), b"x").unwrap();
    assert_eq!(volume.files().count(), records);
    assert_eq!(volume.findings(), []);
}

#[test]
fn an_empty_file_takes_a_block() {
    let mut volume = made(Layout::new(256).unwrap());
    volume.write(&data("EMPTY"), b"").unwrap();
    let file = volume.find(&data("EMPTY").name).unwrap();
    assert_eq!((file.blocks, file.created), (1, WHEN));
    assert_eq!(volume.read(&file.name).unwrap(), [0; 512]);
}

#[test]
fn a_failing_run_is_shortened_to_what_fails() {
    let layout = Layout::new(256).unwrap();
    let mut random = SplitMix64::new(6);
    let operations: Vec<Operation> = (0..200).map(|_| draw(&mut random, 9, 9)).collect();
    let deletions = |few: &[Operation]| {
        let deletions = few
            .iter()
            .filter(|one| matches!(one, Operation::Delete { .. }));
        deletions.count()
    };
    let few = shrink_steps(operations, |few| {
        deletions(few) >= 2 && run(layout, few).is_ok()
    });
    assert_eq!((few.len(), deletions(&few)), (2, 2));
}
