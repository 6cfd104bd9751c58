//! Names this build by the sources of all that the preload library consists of: the command has
//! the same name in it, and takes no library of another.

use std::path::{Path, PathBuf};

/// The crates of the preload library.
const CRATES: [&str; 6] = ["core", "live", "log", "partition", "plugin", "shim"];

fn main() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = vec![];
    for name in CRATES {
        let folder = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        collect(&folder, &mut files);
    }
    files.sort();
    let mut sum = Sum::new();
    for file in files {
        let name = file.strip_prefix(&crates).unwrap_or(&file);
        sum.add(name.to_string_lossy().as_bytes());
        sum.add(&std::fs::read(&file).unwrap_or_default());
    }
    println!("cargo::rustc-env=TIDEMARK_BUILD={:016x}", sum.0);
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// The sum of Fowler, Noll and Vo (FNV-1a), of 64 bits.
struct Sum(u64);

impl Sum {
    fn new() -> Sum {
        Sum(0xcbf2_9ce4_8422_2325)
    }

    /// Takes in bytes, and where they end.
    fn add(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes();
        for &byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
