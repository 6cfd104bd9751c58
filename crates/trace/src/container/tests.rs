//! The file as a whole: what is written can be read, and nothing else can.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::error::{Error, ErrorKind, Foreign};
use crate::event::{Event, FileEvent, LifeEvent, MappingEvent, Memory};
use crate::model::{Block, Granularity, Header, Kinds, Placed, Rights, TimeUnit};

/// A file that is gone at the end of its test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Scratch {
        let file = format!("tidemark-trace-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(file);
        fs::write(&path, bytes).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn header() -> Header {
    Header {
        page_bytes: 4096,
        granularity: Granularity::Quantum(1000),
        time: TimeUnit::Instructions,
        source: "a test".into(),
        command: vec!["gzip".into(), "-1".into()],
        speed: None,
    }
}

fn write(blocks: &[Block]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    blocks.iter().for_each(|block| writer.write(block).unwrap());
    writer.finish().unwrap()
}

/// Reads from beginning to end: the blocks, and how it ended.
fn read(bytes: &[u8]) -> Result<(Vec<Block>, Ending), Error> {
    let mut reader = Reader::new(bytes)?;
    let mut blocks = Vec::new();
    let mut block = Block::default();
    while reader.next_block(&mut block)? {
        blocks.push(block.clone());
    }
    Ok((blocks, reader.ending()))
}

/// Reads by number, last block first.
fn read_by_number(path: &PathBuf) -> Result<(Vec<Block>, Ending), Error> {
    let file = Blocks::open(path)?;
    let mut unpacker = Unpacker::new()?;
    let mut blocks = vec![Block::default(); file.index().entries.len()];
    for number in (0..blocks.len()).rev() {
        file.read(number, &mut unpacker, &mut blocks[number])?;
    }
    Ok((blocks, file.ending()))
}

/// Two processes, events of every kind, a gap that needs every bit.
fn sample() -> Vec<Block> {
    let mut first = Block::default();
    for at in 0..40_u64 {
        let kinds = Kinds((at % 16) as u8);
        first.push(0x7fff_0000_0000 >> (at % 5), kinds, (at * at) as u32);
    }
    first.push(u64::MAX, Kinds::STORE, u32::MAX);
    let time = first.time_end();
    first.events = events()
        .into_iter()
        .chain(events_of_caches())
        .map(|event| Placed {
            after: 41,
            time,
            event,
        })
        .collect();
    let mut second = Block {
        process: 1,
        time_start: 77,
        ..Block::default()
    };
    second.push(0, Kinds::FETCH, 0);
    let mut third = Block {
        time_start: u64::MAX - 5,
        ..Block::default()
    };
    third.push(3, Kinds::LOAD, 5);
    vec![first, second, third]
}

fn events() -> Vec<Event> {
    let (start, pages, thread) = (0x400, 17, 3);
    let rights = Rights(Rights::READ.0 | Rights::EXECUTE.0);
    let text = || String::from("/usr/bin/größe");
    vec![
        Event::Life(LifeEvent::Start {
            pid: 4711,
            parent: 1,
            program: text(),
        }),
        Event::Mapping(MappingEvent::Map {
            start,
            pages,
            rights,
            is_shared: true,
            memory: text().into(),
            offset: 1 << 40,
        }),
        Event::Mapping(MappingEvent::Map {
            start,
            pages,
            rights: Rights::ALL,
            is_shared: false,
            memory: Memory::Anonymous,
            offset: 0,
        }),
        Event::Mapping(MappingEvent::Unmap { start, pages }),
        Event::Mapping(MappingEvent::Remap {
            from: start,
            from_pages: pages,
            to: u64::MAX - 20,
            to_pages: 20,
        }),
        Event::Mapping(MappingEvent::Protect {
            start,
            pages,
            rights,
        }),
        Event::Mapping(MappingEvent::Break { end: u64::MAX }),
        Event::Mapping(MappingEvent::StackGrowth { start, pages }),
        Event::Life(LifeEvent::ThreadStart { thread }),
        Event::Life(LifeEvent::ThreadSwitch { thread }),
        Event::Life(LifeEvent::ThreadExit { thread }),
        Event::Life(LifeEvent::Fork { child: 4712 }),
        Event::Life(LifeEvent::Exec { program: text() }),
        Event::Life(LifeEvent::Wait {
            call: 232,
            ns: u64::MAX,
        }),
        Event::Mark { name: text() },
        Event::Life(LifeEvent::Exit { status: 3 }),
        Event::Life(LifeEvent::Killed { signal: 9 }),
        Event::File(FileEvent::Read {
            file: text(),
            offset: 1 << 40,
            bytes: 8192,
        }),
        Event::File(FileEvent::Write {
            file: text(),
            offset: u64::MAX,
            bytes: 0,
        }),
        Event::File(FileEvent::Cut {
            file: text(),
            bytes: 4097,
        }),
        Event::Windows { ns: 200_000_000 },
    ]
}

fn events_of_caches() -> Vec<Event> {
    let size = Event::Size {
        page: u64::MAX,
        bytes: 1 << 40,
    };
    vec![Event::Visit, size]
}

/// A block with as many pages as `distinct`, so many records, and a few events.
fn any_block() -> impl Strategy<Value = Block> {
    let distinct = prop_oneof![1..4_u64, 200..300_u64, 1000..5000_u64, Just(u64::MAX)];
    let records = prop_oneof![0..20_usize, 300..2000_usize];
    let gap = prop_oneof![0..15_u32, 10..300_u32, any::<u32>()];
    (distinct, records, gap, any::<u32>()).prop_flat_map(|(distinct, records, gap, start)| {
        let pages = proptest::collection::vec(any::<u64>(), records);
        let kinds = proptest::collection::vec(0..16_u8, records);
        let gaps = proptest::collection::vec(0..=gap, records);
        let places = proptest::collection::vec((0..=records as u32, 0..20_usize), 0..9);
        (pages, kinds, gaps, places).prop_map(move |(mut pages, kinds, gaps, mut places)| {
            pages
                .iter_mut()
                .for_each(|page| *page = (*page % distinct).wrapping_mul(977));
            places.sort_unstable();
            let mut block = Block {
                time_start: start.into(),
                pages,
                kinds,
                gaps,
                ..Block::default()
            };
            for (after, which) in places {
                let before = &block.gaps[..after as usize];
                let gaps: u64 = before.iter().map(|&gap| u64::from(gap)).sum();
                let time = block.time_start + gaps;
                let event = events().swap_remove(which);
                block.events.push(Placed { after, time, event });
            }
            block
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(mut blocks in proptest::collection::vec(any_block(), 0..5)) {
        blocks.retain(|block| !block.is_empty());
        let mut time = 0;
        for block in &mut blocks {
            let shift = time;
            block.time_start += shift;
            block.events.iter_mut().for_each(|placed| placed.time += shift);
            time = block.time_end();
        }
        let bytes = write(&blocks);
        let (found, ending) = read(&bytes).unwrap();
        prop_assert_eq!(&found, &blocks);
        prop_assert_eq!(ending, Ending::Complete);
        let file = Scratch::new("property", &bytes);
        prop_assert_eq!(read_by_number(&file.0).unwrap(), (blocks, Ending::Complete));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        at in 0..2000_usize,
    ) {
        let mut whole = write(&sample());
        let at = at % whole.len();
        let end = (at + bytes.len()).min(whole.len());
        whole[at..end].copy_from_slice(&bytes[..end - at]);
        let _ = read(&whole);
    }
}

#[test]
fn every_event_and_the_largest_numbers_survive() {
    let bytes = write(&sample());
    assert_eq!(read(&bytes).unwrap(), (sample(), Ending::Complete));
    let header_read = Reader::new(&bytes[..]).unwrap().header().clone();
    assert_eq!(header_read, header());
}

#[test]
fn the_largest_block_fits() {
    let records = Block::RECORDS_MAX as u64;
    let mut block = Block::default();
    for at in 0..records {
        let page = at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        block.push(page, Kinds::ALL, u32::MAX - at as u32);
    }
    let time = block.time_end();
    let name = "x".repeat(Block::TEXT_BYTES_MAX);
    block.events = vec![
        Placed {
            after: records as u32,
            time,
            event: Event::Mark { name }
        };
        Block::EVENTS_MAX
    ];
    assert_eq!(read(&write(&[block.clone()])).unwrap().0, [block]);
}

#[test]
fn a_flipped_bit_anywhere_is_found() {
    let bytes = write(&sample());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1 << bit;
            let found = read(&wrong);
            assert!(found.is_err(), "byte {at}, bit {bit}: {found:?}");
        }
        let mut wrong = bytes.clone();
        wrong[at] = !wrong[at];
        let file = Scratch::new("flipped", &wrong);
        assert!(read_by_number(&file.0).is_err(), "byte {at}");
    }
}

#[test]
fn a_file_cut_anywhere_opens_up_to_its_last_whole_block() {
    let blocks = sample();
    let bytes = write(&blocks);
    let index = {
        let mut reader = Reader::new(&bytes[..]).unwrap();
        while reader.next_block(&mut Block::default()).unwrap() {}
        reader.index().clone()
    };
    for length in 0..bytes.len() {
        let file = Scratch::new("cut", &bytes[..length]);
        let whole = index
            .entries
            .iter()
            .filter(|entry| entry.at + u64::from(entry.bytes) <= length as u64)
            .count();
        for found in [read(&bytes[..length]), read_by_number(&file.0)] {
            match found {
                Ok((found, Ending::Cut { at, rest })) => {
                    assert_eq!(found, blocks[..whole], "{length}");
                    assert_eq!(at + rest, length as u64);
                }
                Ok((_, ending)) => panic!("{length}: {ending:?}"),
                Err(error) => {
                    assert!(length < index.entries[0].at as usize, "{length}: {error}");
                    let is_told = matches!(error.kind, ErrorKind::Empty | ErrorKind::CutInHeader);
                    assert!(is_told, "{length}: {error}");
                }
            }
        }
    }
}

#[test]
fn what_follows_the_end_is_found() {
    let mut bytes = write(&sample());
    bytes.push(0);
    let error = read(&bytes).unwrap_err().to_string();
    assert!(error.contains("something follows the end"), "{error}");
    let file = Scratch::new("behind", &bytes);
    assert!(read_by_number(&file.0).is_err());
}

#[test]
fn parts_in_another_order_are_found() {
    let blocks = sample();
    let bytes = write(&blocks);
    let index = Blocks::open(&Scratch::new("order", &bytes).0).unwrap();
    let entries = &index.index().entries;
    let range =
        |at: usize| entries[at].at as usize..entries[at].at as usize + entries[at].bytes as usize;
    // The third block before the first: its process's time then goes back.
    let swapped = [
        &bytes[..range(0).start],
        &bytes[range(2)],
        &bytes[range(1)],
        &bytes[range(0)],
        &bytes[range(2).end..],
    ]
    .concat();
    let error = read(&swapped).unwrap_err().to_string();
    assert!(error.contains("out of its process's order"), "{error}");
    // The last left out: what was read is good, and the index says that there was more.
    let shortened = [&bytes[..range(2).start], &bytes[range(2).end..]].concat();
    let error = read(&shortened).unwrap_err().to_string();
    assert!(
        error.contains("the index contradicts the blocks"),
        "{error}"
    );
    let file = Scratch::new("shortened", &shortened);
    assert!(read_by_number(&file.0).is_err());
}

#[test]
fn other_files_are_told_apart() {
    let kind = |bytes: &[u8]| match read(bytes).unwrap_err().kind {
        ErrorKind::Foreign(foreign) => foreign,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(b"1\n2\n3\n"), Foreign::Text);
    assert_eq!(kind(b"\x28\xb5\x2f\xfd\0\0"), Foreign::Zstd);
    assert_eq!(kind(b"\x1f\x8b\x08\0"), Foreign::Gzip);
    assert_eq!(kind(b"\xfd7zXZ\0\0"), Foreign::Xz);
    assert_eq!(kind(b"PAR1\x15\x04"), Foreign::Parquet);
    assert_eq!(kind(b"\x7fELF\x02\x01\x01\0"), Foreign::Program);
    assert_eq!(kind(b"\x89TIDE\n\x1a\x01"), Foreign::Mangled);
    assert_eq!(kind(&[0; 40]), Foreign::Unknown);
}

#[test]
fn a_newer_version_says_so() {
    let mut bytes = write(&sample());
    bytes[8] = 5;
    let error = read(&bytes).unwrap_err().to_string();
    assert!(
        error.contains("a trace of version 5; this program reads up to 4"),
        "{error}"
    );
}

#[test]
fn a_writer_takes_no_flawed_block() {
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    let mut block = sample().swap_remove(0);
    writer.write(&block).unwrap();
    assert!(writer.write(&block).is_err(), "its time goes back");
    block.begin_next();
    block.process = 2;
    block.push(1, Kinds::LOAD, 1);
    assert!(writer.write(&block).is_err(), "process 1 is skipped");
    block.process = 0;
    block.kinds.push(1);
    assert!(writer.write(&block).is_err(), "its columns differ");
    block.kinds.pop();
    writer.write(&block).unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!(read(&bytes).unwrap().0.len(), 2);
}

#[test]
fn a_header_is_held_to_what_a_reader_takes() {
    let mut wrong = header();
    wrong.page_bytes = 4095;
    assert!(Writer::new(Vec::new(), &wrong).is_err());
    let mut wrong = header();
    wrong.granularity = Granularity::Quantum(0);
    assert!(Writer::new(Vec::new(), &wrong).is_err());
    let mut wrong = header();
    wrong.command = vec!["x".repeat(HEADER_BYTES_MAX)];
    assert!(Writer::new(Vec::new(), &wrong).is_err());
}

#[test]
fn blocks_can_be_unpacked_by_several_threads() {
    let blocks = sample();
    let file = Scratch::new("threads", &write(&blocks));
    let shared = Blocks::open(&file.0).unwrap();
    std::thread::scope(|scope| {
        for (number, expected) in blocks.iter().enumerate() {
            let shared = &shared;
            scope.spawn(move || {
                let mut block = Block::default();
                let mut unpacker = Unpacker::new().unwrap();
                shared.read(number, &mut unpacker, &mut block).unwrap();
                assert_eq!(block, *expected);
            });
        }
    });
}
