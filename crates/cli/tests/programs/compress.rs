//! Compressors with large windows: xz with one thread, zstd with its workers.
//!
//! What they read decides how they use memory. Nightly copies are found again at one distance, and
//! their tables are read along with them. In a mixture of unlike files a compressor looks at
//! scattered earlier places for each byte: in less memory than its tables need it then waits for
//! the disk at each of them, under any pager (docs/acceptance.md has the numbers).

use super::scratch::Scratch;
use super::trial::Trial;
use super::{material, needs};

#[test]
fn xz_writes_the_same_bytes_in_less_memory() {
    if !needs::are_met(&["xz"]) {
        return;
    }
    let scratch = Scratch::new("xz");
    let input = scratch.join("backups");
    material::write_backups(&input, needs::size(64 << 10, 200 << 20));
    let input = input.display().to_string();
    // The tables of `-9` are 674 MB whatever it reads.
    let level = if needs::is_full() { "-9" } else { "-6" };
    Trial::new("xz", &scratch, &["xz", level, "--stdout", &input]).compare();
}

#[test]
fn zstd_writes_the_same_bytes_in_less_memory() {
    if !needs::are_met(&["zstd"]) {
        return;
    }
    let scratch = Scratch::new("zstd");
    let input = scratch.join("backups");
    material::write_backups(&input, needs::size(128 << 10, 200 << 20));
    let input = input.display().to_string();
    let arguments = [
        "zstd",
        "--long",
        "-19",
        "--quiet",
        "-o",
        "packed.zst",
        &input,
    ];
    Trial::new("zstd", &scratch, &arguments).compare();
}
