//! An independent reader finds on volumes of every size what was written to them: a program in
//! another language, made from the description of the bytes alone.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Laws, contents, data, laws, made, name};
use tidemark_vmufat::{Copying, Image, Kind, Layout, NewFile, Timestamp, Volume};

/// A folder that is gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(blocks: u32) -> Folder {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = place.join(format!("reader-{blocks}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("files")).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Fills a volume with files of many sizes, with gaps where some were deleted, until it is full.
fn fill(volume: &mut Volume<Image>) {
    let game = NewFile {
        kind: Kind::Game,
        copying: Copying::Forbidden,
        ..data("GAME")
    };
    volume.write(&game, &contents(7, 20 * 512 - 100)).unwrap();
    let most = volume.free_blocks() as usize / 20;
    for round in 0..3 {
        for number in 0..60 {
            let text = format!("F{round}-{number}");
            let file = NewFile {
                created: Timestamp::from_unix(1_000_000_007 * (number + 1)),
                ..data(&text)
            };
            let bytes = (number as usize * 7919 + round * 104_729) % (most * 512);
            if volume.write(&file, &contents(number, bytes)).is_err() {
                break;
            }
        }
        for number in (0..60).step_by(3 + round) {
            let _ = volume.delete(&name(&format!("F{round}-{number}")));
        }
    }
    // The last file takes every block that is left, in pieces.
    let rest = volume.free_blocks() as usize;
    volume
        .write(&data("REST"), &contents(9, rest * 512))
        .unwrap();
    assert_eq!(volume.free_blocks(), 0);
    let second = volume.files().nth(1).unwrap();
    volume.delete(&second.name).unwrap();
}

/// The findings of the independent reader, and its output.
fn read(folder: &Folder, image: &Image) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let path = folder.0.join("image");
    std::fs::write(&path, image.bytes()).unwrap();
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reader.py");
    let files = folder.0.join("files");
    let run = Command::new("python3")
        .arg(reader)
        .arg(path)
        .arg(&files)
        .output();
    let output = run.expect("python3 runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let found = std::fs::read_dir(&files).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        (entry.file_name().into_string().unwrap(), bytes)
    });
    let lines = String::from_utf8(output.stdout).unwrap();
    (found.collect(), lines.lines().map(String::from).collect())
}

fn check(layout: Layout) {
    let has_python = Command::new("python3").arg("--version").output().is_ok();
    if !tidemark_testing::require(has_python, "needs python3") {
        return;
    }
    let mut volume = made(layout);
    fill(&mut volume);
    let due: Laws = laws(&mut volume);
    let lines: Vec<String> = volume
        .files()
        .map(|file| {
            let kind = match file.kind {
                Kind::Data => "data 0",
                Kind::Game => "game 255",
            };
            let [name, stamp] = [file.name.as_bytes(), &file.created.0].map(hex);
            let (first, blocks, header) = (file.first, file.blocks, file.header);
            format!("{kind} {first} {name} {stamp} {blocks} {header}")
        })
        .collect();
    let folder = Folder::new(layout.blocks());
    let (found, printed) = read(&folder, &volume.into_device());
    assert_eq!(printed, lines);
    assert_eq!(found.len(), due.len());
    for (name, law) in due {
        assert!(found[&hex(name.as_bytes())] == law.contents, "{name}");
    }
}

#[test]
fn an_independent_reader_reads_a_card() {
    check(Layout::new(256).unwrap());
    check(Layout::new(256).unwrap().without_hidden());
}

#[test]
fn an_independent_reader_reads_512_blocks() {
    check(Layout::new(512).unwrap());
}

#[test]
fn an_independent_reader_reads_4096_blocks() {
    check(Layout::new(4096).unwrap());
}

#[test]
fn an_independent_reader_reads_65536_blocks() {
    check(Layout::new(65_536).unwrap());
}

#[test]
fn an_independent_reader_reads_sizes_between() {
    for blocks in [257, 300, 1000, 65_533] {
        check(Layout::new(blocks).unwrap());
    }
}
