//! Traces whose checksums are right, so that the fuzzer gets past them.

use std::sync::OnceLock;

use tidemark_trace::container::seal_block;
use tidemark_trace::{Writer, import};

/// A file whose only block has `contents`. It ends there, without an index.
pub fn file(contents: &[u8]) -> Vec<u8> {
    let mut file = start().to_vec();
    file.extend(seal_block(contents));
    file
}

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
