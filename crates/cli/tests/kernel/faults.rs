//! The failures: programs that do what they may not, disks that fail, swap that is full. A line
//! says what; the kernel goes on.

use super::support::Folder;
use super::{console, console_at_end, is_ready, kernel};

/// Runs sheep, two of which do not fit, under these words; some are lost, and the kernel says why.
/// In step, each read is of the page that a sheep waits for: of those read ahead none is lost.
fn lose_sheep(name: &str, words: &str, why: &str) {
    let folder = Folder::new(name);
    let words = format!("--memory 512K {words} -- sheep 2 640");
    let text = console_at_end(&folder, &words, 1);
    assert!(text.contains(why), "{text}");
    assert!(
        text.contains("2 sheep, ") && !text.contains(", 0 lost"),
        "{text}"
    );
}

#[test]
fn programs_that_misbehave_are_ended_and_harm_nobody() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-misbehave");
    let text = console(&folder, "--memory 512K -- misbehave");
    for told in [
        "it may not write to 0x123456789000",
        "it may not read 0xffffffff80000000",
        "it may not execute 0x",
        "it did what programs may not do",
        "it has no such instruction",
        "it divided by zero",
        "it may not read 0x0\n",
        "it may not execute 0xffffffff80000000",
    ] {
        assert!(text.contains(told), "{told} is not in: {text}");
    }
    assert!(text.ends_with("\n0 misdeeds went unseen\n"), "{text}");
}

#[test]
fn a_bit_that_flips_in_swap_ends_the_program_whose_page_it_is() {
    if !is_ready() {
        return;
    }
    let told = "is not what was written\n";
    lose_sheep("kernel-flip", "--in-step --inject flip:100", told);
    lose_sheep(
        "kernel-flip-said",
        "--in-step --inject flip:100",
        "a page of it can't be read back",
    );
}

#[test]
fn a_read_that_fails_ends_the_programs_that_wait_for_it() {
    if !is_ready() {
        return;
    }
    lose_sheep(
        "kernel-read",
        "--in-step --inject read:40",
        "a page of it can't be read back",
    );
}

#[test]
fn a_program_that_can_not_be_read_is_named() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-unbegun");
    let told = "kernel: ls (1) is ended before it begins: a page of it can't be read back\n";
    assert_eq!(console_at_end(&folder, "--inject read:1 -- ls", 1), told);
}

#[test]
fn a_file_that_can_not_be_read_is_not_taken_for_zeros() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-unread");
    std::fs::write(folder.path("list"), "1\n2\n").unwrap();
    // The program comes first, then its list.
    for (fault, status, told) in [
        ("read:1", 2, "kernel: `touch` can't be read\n"),
        ("read:2", 1, "touch: needs a list of pages\n"),
    ] {
        let words = format!("--pinned --memory 64K --inject {fault} --with list -- touch list");
        assert_eq!(console_at_end(&folder, &words, status), told);
    }
}

#[test]
fn a_write_that_fails_loses_nothing() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-write");
    let text = console(&folder, "--memory 512K --inject write:3 -- sheep 2 640");
    assert!(
        text.contains("kernel: swap fails to take pages\n"),
        "{text}"
    );
    assert!(text.ends_with("2 sheep, 0 lost\n"), "{text}");
}

#[test]
fn full_swap_ends_programs_that_need_more() {
    if !is_ready() {
        return;
    }
    lose_sheep(
        "kernel-full",
        "--swap-size 256K",
        "memory and swap are full",
    );
}

#[test]
fn a_fault_of_the_kernel_s_own_ends_it_with_registers_and_callers() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-panic");
    for (fault, told) in [
        (
            "panic:3",
            &[
                "asked for by `inject`",
                "called from:",
                " tidemark_kernel::kernel::Kernel::run+0x",
                " kernel_start+0x",
            ][..],
        ),
        (
            "overflow:3",
            &[
                "exception 8 in the kernel",
                "its stack is full",
                "  rip ffffffff80",
                " tidemark_kernel::kernel::fill_stack+0x",
            ],
        ),
    ] {
        let output = kernel(
            &folder,
            &format!("--memory 512K --inject {fault} -- sheep 2 640"),
        );
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(2), "{fault}: {text}");
        for part in told {
            assert!(text.contains(part), "{fault}: {part} is not in: {text}");
        }
        let said = super::stderr(&output);
        assert!(
            said.contains("the kernel found a fault in itself"),
            "{said}"
        );
    }
}
