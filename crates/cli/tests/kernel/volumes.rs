//! The kernel's volumes: VMUFAT, which `tidemark volume`, a reader in Python and the kernel read
//! alike.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::programs::{host_programs, text};
use super::support::{Folder, tidemark};
use super::{console, is_ready, kernel};

/// Runs a command that is to succeed. Answers what it prints.
fn made(words: &[&str]) -> Vec<u8> {
    let output = tidemark(words);
    let told = super::stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {told}");
    output.stdout
}

/// A volume with the kernel's programs and a file called `text`.
fn make_volume(folder: &Folder, text: &str) -> String {
    std::fs::write(folder.path("text"), text).unwrap();
    let volume = folder.path("volume");
    made(&["kernel", "image", "-o", &volume, &folder.path("text")]);
    volume
}

/// The names of a volume's files, and the first block of each.
fn list(volume: &str) -> Vec<(String, usize)> {
    let listed: Value = serde_json::from_slice(&made(&["volume", "ls", "--json", volume])).unwrap();
    let files = listed["files"].as_array().unwrap().iter();
    let named = files.map(|file| {
        let first = file["first_block"].as_u64().unwrap();
        (file["name"].as_str().unwrap().into(), first as usize)
    });
    named.collect()
}

/// A file of a volume, without the zeros that fill its last block.
fn get(volume: &str, name: &str) -> Vec<u8> {
    let mut bytes = made(&["volume", "get", volume, name]);
    bytes.truncate(bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1);
    bytes
}

#[test]
fn a_volume_is_vmufat_that_others_read_and_write() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-volume");
    let volume = make_volume(&folder, "some text\n");
    made(&["volume", "check", &volume]);
    let files = list(&volume);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"sheep") && names.contains(&"text"));
    assert_eq!(console(&folder, "volume -- ls"), names.join("\n") + "\n");
    assert_eq!(console(&folder, "volume -- cat text"), "some text\n");
    // A reader written from the table of bytes.
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vmufat/tests/reader.py");
    let out = folder.path("out");
    std::fs::create_dir(&out).unwrap();
    let mut read = Command::new("python3");
    let read = read.arg(reader).args([&volume, &out]).output().unwrap();
    assert!(read.status.success(), "{}", super::stderr(&read));
    let hexadecimal = |name: &str| name.bytes().map(|b| format!("{b:02x}")).collect::<String>();
    let of_reader = std::fs::read(Path::new(&out).join(hexadecimal("text"))).unwrap();
    assert_eq!(of_reader.strip_prefix(b"some text\n").unwrap(), [0; 502]);
    // One of another size, filled by the other command: 5 KiB have a page and a part of one.
    std::fs::write(folder.path("more"), "more text\n".repeat(512)).unwrap();
    let other = folder.path("other");
    made(&["volume", "make", "--blocks", "1234", &other]);
    let programs = Path::new(super::support::TIDEMARK).with_file_name("../kernel/boot/programs");
    let cat = programs.join("cat").to_string_lossy().into_owned();
    made(&["volume", "put", &other, &cat, &folder.path("more")]);
    let seen = console(&folder, "--memory 64K other -- cat more");
    assert!(seen == "more text\n".repeat(512), "{seen}");
}

#[test]
fn what_is_written_to_a_mapped_file_is_in_the_file_afterwards() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-upper");
    let host = host_programs(&folder);
    let text = text(8000);
    let volume = make_volume(&folder, &text);
    let before = list(&volume);
    let bytes = text.len().to_string();
    // The file is larger than memory, so that pages are written when they leave, too.
    assert!(text.len() > 140 << 10);
    let kept = std::fs::read(&volume).unwrap();
    let words = format!("--memory 128K volume -- upper text {bytes}");
    let seen = console(&folder, &words);
    let is_kept = std::fs::read(&volume).unwrap() == kept;
    assert!(is_kept, "without `--write` nothing stays");
    assert_eq!(console(&folder, &format!("--write {words}")), seen);
    let mut native = Command::new(host.join("upper"));
    let native = native.args(["text", &bytes]).current_dir(&folder.0);
    assert_eq!(
        seen,
        String::from_utf8_lossy(&native.output().unwrap().stdout)
    );
    let written = get(&volume, "text");
    assert!(
        written == std::fs::read(folder.path("text")).unwrap(),
        "the file differs"
    );
    assert!(
        written == text.to_uppercase().as_bytes(),
        "the file is not what was written"
    );
    // All else is as it was.
    made(&["volume", "check", &volume]);
    assert_eq!(list(&volume), before);
}

#[test]
fn a_disk_that_does_not_take_pages_of_files_is_told_of_and_nothing_is_lost() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-untaken");
    let volume = make_volume(&folder, &text(8000));
    let kept = std::fs::read(&volume).unwrap();
    let bytes = text(8000).len();
    let raise = |words: &str| {
        std::fs::write(&volume, &kept).unwrap();
        let output = kernel(
            &folder,
            &format!("--write {words} volume -- upper text {bytes}"),
        );
        // All of it is written in the end.
        let written = get(&volume, "text");
        assert!(written == text(8000).to_uppercase().as_bytes(), "{words}");
        let seen = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        (output.status.code(), seen)
    };
    // In little memory pages leave by themselves, those of files and others.
    let told = (1..=6).any(|number| {
        let (status, seen) = raise(&format!("--in-step --memory 128K --inject write:{number}"));
        assert_eq!(status, Some(0), "{seen}");
        let [files, swap] = ["the volume fails to take pages of files\n", "swap fails"]
            .map(|line| seen.contains(line));
        assert!(files != swap, "{seen}");
        files
    });
    assert!(told, "no page of a file was to leave");
    // With more they are written when the program asks for it, and it is told.
    let (status, seen) = raise("--memory 1M --inject write:1");
    assert!(
        status == Some(1) && seen.ends_with(" raised, 0 left\n"),
        "{seen}"
    );
}

#[test]
fn of_a_damaged_volume_the_kernel_runs_what_is_sound() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-damaged");
    let volume = make_volume(&folder, &text(100));
    let (_, first) = *list(&volume)
        .iter()
        .find(|(name, _)| name == "text")
        .unwrap();
    let mut bytes = std::fs::read(&volume).unwrap();
    // The table is in front of the root block, which is the last: a word for each block.
    let blocks = bytes.len() / 512;
    let word = (blocks - 1 - blocks.div_ceil(256)) * 512 + 2 * first;
    bytes[word..word + 2].copy_from_slice(&0xfffc_u16.to_le_bytes());
    std::fs::write(&volume, bytes).unwrap();
    let seen = console(&folder, "volume -- ls");
    assert!(
        seen.contains("kernel: volume: `text` is left out\n"),
        "{seen}"
    );
    assert!(seen.contains("\nsheep\n"), "{seen}");
    let output = kernel(&folder, "volume -- cat text");
    assert_eq!(output.status.code(), Some(1));
}
