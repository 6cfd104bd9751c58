//! Regions whose pages are compressed in memory before they leave: contents, limits and the end.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use tidemark_core::random::SplitMix64;
use tidemark_regions::{Builder, Engine};

use crate::child;
use crate::engine::start;
use crate::pagers::Plain;
use crate::regions::{MIB, PAGE};

fn settings() -> Builder {
    let settings = Engine::builder().memory(MIB);
    let settings = settings.swap_folder(&std::env::temp_dir());
    settings.swap_size(8 * MIB)
}

/// Fills a page: of its words one in `shares` is random, for each share at random.
fn fill(page: &mut [u8], random: &mut SplitMix64) {
    let shares = [1, 2, 4, 8, 64, 1 << 20][random.below(6) as usize];
    for word in page.chunks_exact_mut(8) {
        let is_random = random.below(shares) == 0;
        let value = if is_random { random.below(u64::MAX) } else { 7 };
        word.copy_from_slice(&value.to_ne_bytes());
    }
}

/// Fills a region of `bytes`, changes pages at random, and compares all of them with a plain array.
fn check(settings: Builder, bytes: u64, turns: u32) {
    let Some(engine) = start(settings) else {
        return;
    };
    let mut region = engine.zeros(bytes).unwrap();
    let mut plain = vec![0; region.len()];
    let mut random = SplitMix64::new(bytes);
    for (page, copy) in region.chunks_mut(PAGE).zip(plain.chunks_mut(PAGE)) {
        fill(copy, &mut random);
        page.copy_from_slice(copy);
    }
    for turn in 0..turns {
        let at = random.below(bytes / PAGE as u64) as usize * PAGE;
        let range = at..at + PAGE;
        assert!(
            region[range.clone()] == plain[range.clone()],
            "{turn}: {at}"
        );
        match random.below(8) {
            0..3 => {
                fill(&mut plain[range.clone()], &mut random);
                region[range.clone()].copy_from_slice(&plain[range]);
            }
            3 => {
                region.clear_pages(range.clone()).unwrap();
                plain[range].fill(0);
            }
            _ => {}
        }
        if turn % 512 == 0 {
            let counted = engine.statistics().unwrap();
            assert!(counted.resident_bytes <= MIB, "{turn}: {counted:?}");
        }
    }
    assert!(*region == plain);
    let counted = engine.statistics().unwrap();
    assert!(counted.resident_bytes <= MIB, "{counted:?}");
    assert!(
        counted.page_ins > 500 && counted.page_outs > 500,
        "{counted:?}"
    );
}

/// Every page that a region can have leaves, with segments beside it.
const ALL: u64 = 6 * MIB;

#[test]
fn contents_are_those_of_a_plain_array_with_a_file_behind() {
    check(settings().compress(), ALL, 6000);
    check(settings().compress().encrypt(true), ALL, 3000);
}

#[test]
fn contents_are_those_of_a_plain_array_with_a_pager_behind() {
    let store = || Plain::new(8 * MIB as usize);
    check(settings().store(store()).compress(), ALL, 6000);
    check(
        settings().store(store()).compress().encrypt(false),
        ALL,
        3000,
    );
}

#[test]
fn a_quarter_of_the_store_is_no_room_for_regions() {
    let Some(engine) = start(settings().compress()) else {
        return;
    };
    let error = engine.zeros(ALL + PAGE as u64).unwrap_err().to_string();
    assert!(
        error.contains("6291456 are left of memory and swap"),
        "{error}"
    );
}

#[test]
fn what_compresses_needs_no_store() {
    let Some(engine) = start(settings().compress_alone()) else {
        return;
    };
    let mut region = engine.zeros(8 * MIB).unwrap();
    let numbers = region.as_mut_slice_of::<u64>();
    for turn in 0..3 {
        for (n, number) in (0..).zip(numbers.iter_mut()) {
            assert_eq!(*number, if turn == 0 { 0 } else { n / 64 + turn - 1 });
            *number = n / 64 + turn;
        }
    }
    let counted = engine.statistics().unwrap();
    assert!(counted.resident_bytes <= MIB, "{counted:?}");
}

/// The program of [`what_does_not_fit_compressed_is_told_and_ends_the_program`].
#[test]
#[ignore = "a program of another test"]
fn has_more_than_fits() {
    let engine = settings().compress_alone().start().unwrap();
    let mut region = engine.zeros(4 * MIB).unwrap();
    let mut random = SplitMix64::new(1);
    for word in region.as_mut_slice_of::<u64>() {
        *word = random.below(u64::MAX);
    }
}

#[test]
fn what_does_not_fit_compressed_is_told_and_ends_the_program() {
    if start(settings()).is_none() {
        return;
    }
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args([
        "--ignored",
        "--exact",
        "compressed::has_more_than_fits",
        "--nocapture",
    ]);
    let output = child::run(&mut program);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(7), "{text}");
    assert!(text.contains("compressed memory is full"), "{text}");
}
