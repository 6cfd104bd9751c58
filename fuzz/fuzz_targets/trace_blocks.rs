//! Any bytes to the reader of blocks by number: no panic, no more memory than a block needs, and
//! where the reader in order finds a whole trace, the same blocks in any order.
//!
//! The input is tried twice, as in `trace_reader`.

#![no_main]

mod sealed;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tidemark_trace::{Block, Blocks, Ending, Reader, Unpacker};

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&sealed::file(bytes));
});

fn read(bytes: &[u8]) {
    let path = scratch();
    File::create(path)
        .and_then(|mut file| file.write_all(bytes))
        .expect("the folder for temporary files takes them");
    let ordered = in_order(bytes);
    let Ok(blocks) = Blocks::open(path) else {
        // What can be read to its index in order can be opened.
        assert!(ordered.is_none());
        return;
    };
    let mut unpacker = Unpacker::new().expect("there is memory");
    let mut block = Block::default();
    let count = blocks.index().entries.len();
    for number in (0..count).rev() {
        let is_read = blocks.read(number, &mut unpacker, &mut block).is_ok();
        if is_read {
            assert_eq!(block.check(), Ok(()));
        }
        if let Some(ordered) = &ordered {
            assert!(is_read && block == ordered[number]);
        }
    }
    if let Some(ordered) = ordered {
        assert_eq!(count, ordered.len());
    }
}

/// The blocks of a trace, if it can be read to its end and that is complete.
fn in_order(bytes: &[u8]) -> Option<Vec<Block>> {
    let mut reader = Reader::new(bytes).ok()?;
    let mut blocks = Vec::new();
    let mut block = Block::default();
    while reader.next_block(&mut block).ok()? {
        blocks.push(block.clone());
    }
    (reader.ending() == Ending::Complete).then_some(blocks)
}

/// A file of this process's own.
fn scratch() -> &'static PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let name = format!("tidemark-fuzz-{}", std::process::id());
        std::env::temp_dir().join(name)
    })
}
