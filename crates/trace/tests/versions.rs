//! A file of each version that was ever written must always open, and say the same.

use tidemark_trace::{
    Block, Blocks, Ending, Event, FileEvent, Granularity, Header, MappingEvent, Reader, TimeUnit,
    Unpacker,
};

/// Version 1: a block with every event and the largest numbers, and 40,000 records of `python3`.
const V1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/v1.tide");

/// Version 2: two processes, every event, the largest numbers.
const V2: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/v2.tide");

/// Version 4: visits, and the sizes of objects.
const V4: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/v4.tide");

/// FNV-1a over whole numbers, of all that blocks hold.
fn fingerprint(blocks: &[Block]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |number: u64| hash = (hash ^ number).wrapping_mul(0x0100_0000_01b3);
    for block in blocks {
        add(block.process.into());
        add(block.time_start);
        for ((&page, &kinds), &gap) in block.pages.iter().zip(&block.kinds).zip(&block.gaps) {
            add(page);
            add(kinds.into());
            add(gap.into());
        }
        for placed in &block.events {
            add(placed.after.into());
            add(placed.time);
            written(&placed.event)
                .bytes()
                .for_each(|byte| add(byte.into()));
        }
    }
    hash
}

/// An event in the words in which the first fingerprints were taken: no part of it was in another.
fn written(event: &Event) -> String {
    if let Event::Mapping(MappingEvent::Map {
        start,
        pages,
        rights,
        is_shared,
        memory,
        offset,
    }) = event
    {
        let file = memory.name();
        return format!(
            "Map {{ start: {start}, pages: {pages}, rights: {rights:?}, is_shared: {is_shared}, \
             file: {file:?}, offset: {offset} }}"
        );
    }
    let text = format!("{event:?}");
    for (part, name) in [("Mapping(", ""), ("Life(", ""), ("File(", "File")] {
        let inner = text.strip_prefix(part).and_then(|it| it.strip_suffix(')'));
        if let Some(inner) = inner {
            return format!("{name}{inner}");
        }
    }
    text
}

/// All blocks of the file at `path`, which reading by number must give too.
fn read_both_ways(path: &str) -> (Header, Vec<Block>) {
    let mut reader = Reader::open(path).unwrap();
    let mut blocks = vec![Block::default()];
    while reader.next_block(blocks.last_mut().unwrap()).unwrap() {
        blocks.push(Block::default());
    }
    blocks.pop();
    assert_eq!(reader.ending(), Ending::Complete);
    let by_number = Blocks::open(path).unwrap();
    let mut unpacker = Unpacker::new().unwrap();
    let mut block = Block::default();
    for (number, expected) in blocks.iter().enumerate() {
        by_number.read(number, &mut unpacker, &mut block).unwrap();
        assert_eq!(block, *expected);
    }
    (reader.header().clone(), blocks)
}

/// The number of blocks, records and events.
fn counts(blocks: &[Block]) -> (usize, usize, usize) {
    let records = blocks.iter().map(Block::len).sum();
    let events = blocks.iter().map(|block| block.events.len()).sum();
    (blocks.len(), records, events)
}

#[test]
fn version_1_opens() {
    let (header, blocks) = read_both_ways(V1);
    assert_eq!(header.page_bytes, 4096);
    assert_eq!(header.granularity, Granularity::Quantum(1000));
    assert_eq!(header.time, TimeUnit::Instructions);
    assert_eq!(header.command, ["python3", "-c", "größe"]);
    assert_eq!(counts(&blocks), (4, 40_043, 17));
    assert_eq!(fingerprint(&blocks), 11_377_697_828_625_531_193);
}

#[test]
fn version_2_opens() {
    let (header, blocks) = read_both_ways(V2);
    assert_eq!(header.page_bytes, 4096);
    assert_eq!(counts(&blocks), (3, 43, 20));
    assert_eq!(fingerprint(&blocks), 11_728_778_771_393_685_868);
    let cut = |event: &Event| matches!(event, Event::File(FileEvent::Cut { bytes: 4097, .. }));
    assert!(blocks[0].events.iter().any(|placed| cut(&placed.event)));
}

#[test]
fn version_4_opens() {
    let (_, blocks) = read_both_ways(V4);
    assert_eq!(counts(&blocks), (1, 5, 6));
    assert_eq!(fingerprint(&blocks), 11_052_274_335_002_901_025);
    let is_sized = |event: &Event| matches!(event, Event::Size { page: u64::MAX, .. });
    assert!(
        blocks[0]
            .events
            .iter()
            .any(|placed| is_sized(&placed.event))
    );
}
