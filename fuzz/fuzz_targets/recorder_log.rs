//! Any words as the log of a recorded process: no panic, and the blocks that come of it keep the
//! invariants of traces. The first byte tells how the recording was asked for.

#![no_main]

use std::sync::mpsc::sync_channel;

use libfuzzer_sys::fuzz_target;
use tidemark_recording::{Process, Settings, Sink};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let settings = Settings {
        page_shift: 12,
        quantum: (choice & 1 != 0).then_some(1000),
        is_live: choice & 2 != 0,
    };
    let (finished, blocks) = sync_channel(64);
    let mut process = Process::new(0, settings, Sink::new(finished));
    for part in bytes.as_chunks().0.chunks(512) {
        process.play(part, choice & 4 != 0);
        process.finish_block();
        for block in blocks.try_iter() {
            assert_eq!(block.check(), Ok(()));
        }
    }
    process.end(|| None);
    for block in blocks.try_iter() {
        assert_eq!(block.check(), Ok(()));
    }
});
