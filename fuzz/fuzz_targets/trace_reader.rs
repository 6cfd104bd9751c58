//! Any bytes to the readers of traces: no panic, no more memory than a block needs, and what is
//! read keeps the invariants.
//!
//! The input is tried twice: as it is, and as the contents of a block whose checksums are right,
//! so that the fuzzer gets past them.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tidemark_trace::container::{Reader, seal_block};
use tidemark_trace::summary::Summary;
use tidemark_trace::{Block, Writer, import};

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    let mut file = start().to_vec();
    file.extend(seal_block(bytes));
    read(&file);
});

/// The beginning of a file, up to where its first block would be.
fn start() -> &'static [u8] {
    static START: OnceLock<Vec<u8>> = OnceLock::new();
    START.get_or_init(|| {
        let header = import::header("fuzz", 4096);
        let mut file = Writer::new(Vec::new(), &header)
            .and_then(Writer::finish)
            .expect("memory takes every byte");
        let index = file.windows(4).position(|mark| mark == b"INDX");
        file.truncate(index.expect("every file has an index"));
        file
    })
}

fn read(bytes: &[u8]) {
    let Ok(mut reader) = Reader::new(bytes) else {
        return;
    };
    let mut block = Block::default();
    while let Ok(true) = reader.next_block(&mut block) {
        assert_eq!(block.check(), Ok(()));
    }
    if let Ok(mut reader) = Reader::new(bytes) {
        let _ = Summary::read(&mut reader);
    }
}
