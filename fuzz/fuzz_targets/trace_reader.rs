//! Any bytes to the readers of traces: no panic, no more memory than a block needs, and what is
//! read keeps the invariants.
//!
//! The input is tried twice: as it is, and as the contents of a block whose checksums are right,
//! so that the fuzzer gets past them.

#![no_main]

mod sealed;

use libfuzzer_sys::fuzz_target;
use tidemark_trace::summary::Summary;
use tidemark_trace::{Block, Reader};

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&sealed::file(bytes));
});

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
