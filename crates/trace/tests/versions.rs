//! A file of each version that was ever written must always open, and say the same.

use tidemark_trace::{Block, Blocks, Ending, Granularity, Reader, TimeUnit, Unpacker};

/// Version 1: a block with every event and the largest numbers, and 40,000 records of `python3`.
const V1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/v1.tide");

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
            format!("{:?}", placed.event)
                .bytes()
                .for_each(|byte| add(byte.into()));
        }
    }
    hash
}

#[test]
fn version_1_opens() {
    let mut reader = Reader::open(V1).unwrap();
    assert_eq!(reader.header().page_bytes, 4096);
    assert_eq!(reader.header().granularity, Granularity::Quantum(1000));
    assert_eq!(reader.header().time, TimeUnit::Instructions);
    assert_eq!(reader.header().command, ["python3", "-c", "größe"]);
    let mut blocks = vec![Block::default()];
    while reader.next_block(blocks.last_mut().unwrap()).unwrap() {
        blocks.push(Block::default());
    }
    blocks.pop();
    assert_eq!(reader.ending(), Ending::Complete);
    let records: usize = blocks.iter().map(Block::len).sum();
    let events: usize = blocks.iter().map(|block| block.events.len()).sum();
    assert_eq!((blocks.len(), records, events), (4, 40_043, 17));
    assert_eq!(fingerprint(&blocks), 11_377_697_828_625_531_193);
    let by_number = Blocks::open(V1).unwrap();
    let mut unpacker = Unpacker::new().unwrap();
    let mut block = Block::default();
    for (number, expected) in blocks.iter().enumerate() {
        by_number.read(number, &mut unpacker, &mut block).unwrap();
        assert_eq!(block, *expected);
    }
}
