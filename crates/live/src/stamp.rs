//! The stamp of a build, which the preload library carries, and by which the command knows it.
//!
//! The two speak through variables of the environment and shared memory. A library of another
//! build may know neither the options nor the layout; so the command looks for its own stamp in
//! the library's file before it starts anything.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The stamp begins at a multiple of this in the library's file.
pub const STAMP_BYTES: usize = 64;
/// The number of bytes of the file that are looked at in one go.
const BLOCK_BYTES: usize = 256 << 10;

const TEXT: &str = concat!(
    "tidemark build ",
    env!("CARGO_PKG_VERSION"),
    " ",
    env!("TIDEMARK_BUILD")
);

/// A stamp as it lies in a library.
#[repr(C, align(64))]
pub struct Stamp(pub [u8; STAMP_BYTES]);

/// The stamp of this build: of the sources of all that the library consists of.
pub const STAMP: Stamp = Stamp(padded(TEXT.as_bytes()));

/// Returns true if the library at `path` is of this build.
///
/// # Errors
/// It can't be read.
pub fn is_of_this_build(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        let mut filled = 0;
        while filled < block.len() {
            match file.read(&mut block[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        let mut places = block[..filled].chunks_exact(STAMP_BYTES);
        if places.any(|place| place == STAMP.0) {
            return Ok(true);
        }
        if filled < block.len() {
            return Ok(false);
        }
    }
}

const fn padded(text: &[u8]) -> [u8; STAMP_BYTES] {
    let mut bytes = [0; STAMP_BYTES];
    assert!(text.len() < STAMP_BYTES);
    let mut at = 0;
    while at < text.len() {
        bytes[at] = text[at];
        at += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_the_stamp_is_of_another_build() {
        let path = std::env::temp_dir().join(format!("tidemark-stamp-{}", std::process::id()));
        let mut bytes = vec![b'x'; BLOCK_BYTES];
        std::fs::write(&path, &bytes).unwrap();
        assert!(!is_of_this_build(&path).unwrap());
        bytes.extend(STAMP.0);
        std::fs::write(&path, &bytes).unwrap();
        assert!(is_of_this_build(&path).unwrap());
        *bytes.last_mut().unwrap() = 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(!is_of_this_build(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(is_of_this_build(&path).is_err());
    }
}
