//! Programs and volumes made to harm the kernel: executables and volumes that contradict
//! themselves, and programs that have it keep all it will.

use std::fmt::Write;
use std::path::Path;

use super::support::{Folder, TIDEMARK, tidemark};
use super::{console, console_at_end, is_ready, kernel};

/// Numbers that are near limits, and so far from what an executable has there.
const WILD: [u64; 9] = [
    1,
    0xfff,
    0x1001,
    1 << 36,
    1 << 47,
    (1 << 47) - 4096,
    1 << 63,
    u64::MAX - 4095,
    u64::MAX,
];
/// Of an executable: its entry, where its segments are described, and of each description what it
/// is for, where it is in the file and in memory, and its lengths there.
const ENTRY: usize = 24;
const TABLE: usize = 32;
const DESCRIPTIONS: [usize; 3] = [64, 64 + 56, 64 + 112];
const FIELDS: [usize; 5] = [0, 8, 16, 32, 40];

#[test]
fn executables_that_lie_about_themselves_harm_nobody() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-executables");
    let boot = Path::new(TIDEMARK).with_file_name("../kernel/boot");
    let sound = std::fs::read(boot.join("programs/cat")).unwrap();
    let described = DESCRIPTIONS
        .iter()
        .flat_map(|at| FIELDS.map(|field| at + field));
    let places = [ENTRY, TABLE].into_iter().chain(described);
    let (mut script, mut words) = (String::new(), String::new());
    for (number, (place, value)) in places
        .flat_map(|place| WILD.map(|value| (place, value)))
        .enumerate()
    {
        let mut lying = sound.clone();
        lying[place..place + 8].copy_from_slice(&value.to_le_bytes());
        std::fs::write(folder.path(&format!("lie{number}")), lying).unwrap();
        write!(words, "--with lie{number} ").unwrap();
        writeln!(script, "lie{number}").unwrap();
    }
    std::fs::write(folder.path("script"), script + "echo done\n").unwrap();
    // The status of the script is that of a program that failed.
    let words = format!("--memory 512K {words} --script script");
    let text = console_at_end(&folder, &words, 1);
    assert!(text.ends_with("\ndone\n"), "{text}");
    // Where it would begin is no place for a program, ...
    assert!(
        text.contains("is ended at 0x8000000000000000: it may not execute"),
        "{text}"
    );
    // ... nor is there room for all it wants.
    let refused = text.matches("is no program that this kernel runs").count();
    assert!(refused > 80, "{refused} of them are refused: {text}");
}

#[test]
fn volumes_that_contradict_themselves_are_mounted_or_refused() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-contradictions");
    let sound = folder.path("sound");
    assert!(
        tidemark(&["kernel", "image", "-o", &sound])
            .status
            .success()
    );
    let sound = std::fs::read(sound).unwrap();
    let blocks = sound.len() / 512;
    let root = (blocks - 1) * 512;
    let table = root - blocks.div_ceil(256) * 512;
    let mut random: u64 = 3;
    let mut below = |limit: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % limit
    };
    for number in 0..12 {
        let mut wrong = sound.clone();
        for _ in 0..1 << below(5) {
            let at = match below(3) {
                0 => root + 0x40 + below(0x14),
                1 => table + below(2 * blocks),
                _ => table - 512 + below(512),
            };
            wrong[at] = [0, 0xff, below(256) as u8][below(3)];
        }
        std::fs::write(folder.path("wrong"), wrong).unwrap();
        let output = kernel(&folder, "--memory 256K wrong -- sheep 1 64");
        let told = super::stderr(&output);
        let is_refused = told.contains("the kernel can't run so");
        // A program that was damaged, or left out, fails.
        let is_run = matches!(output.status.code(), Some(0 | 1));
        assert!(is_refused || is_run, "volume {number}: {told}");
    }
}

#[test]
fn programs_that_hoard_are_stopped_and_leave_room() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-hoard");
    let text = console(&folder, "--memory 1M -- hoard");
    assert!(text.ends_with("0 hoards went wrong\n"), "{text}");
}

/// Pages that don't fit once swap is full would come and go without end: the text of a program has
/// to leave for what it is to touch, and the other way round.
#[test]
fn a_program_whose_pages_leave_before_it_uses_them_is_ended() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-stuck");
    for words in ["", "--in-step", "--layout demand"] {
        let words = format!("--swap-size 0 --memory 64K {words} -- sheep 1 256");
        let text = console_at_end(&folder, &words, 1);
        assert!(text.contains("memory and swap are full"), "{words}: {text}");
    }
}
