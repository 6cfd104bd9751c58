//! `tidemark kernel`: the core on bare metal, under an emulator. What programs print there is what
//! they print on Linux; what the lab predicts is what the kernel decides; and whatever programs and
//! disks do, the kernel goes on, and nothing is left behind (it checks that itself at its end).

#[path = "../programs/needs.rs"]
#[allow(dead_code)]
mod needs;
#[path = "../recorder/recording.rs"]
#[allow(dead_code)]
mod recording;
#[path = "../support/mod.rs"]
mod support;
#[path = "../recorder/tool.rs"]
#[allow(dead_code)]
mod tool;

mod decisions;
mod faults;
mod hostile;
mod predictions;
mod programs;
mod volumes;

use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use support::{Folder, TIDEMARK, stderr};

/// A machine that does not end by itself is ended after so many seconds: a failure.
const LIMIT_S: &str = "120";

/// Returns true if the emulator and the kernel are there; says what is missing.
fn is_ready() -> bool {
    if needs::find("qemu-system-x86_64").is_none() {
        return needs::lacks("`qemu-system-x86_64` is not installed (`scripts/deps kernel`)");
    }
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    match BUILT.get_or_init(build) {
        Ok(()) => true,
        Err(why) => needs::lacks(why),
    }
}

/// Builds the kernel and its programs where the command looks for them: as they are now, not as
/// they were when somebody last built them.
fn build() -> Result<(), String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/kernel-build");
    let made = Command::new(script).output();
    let made = made.map_err(|error| format!("`scripts/kernel-build`: {error}"))?;
    let boot = Path::new(TIDEMARK).with_file_name("../kernel/boot/kernel");
    match made.status.success() && boot.is_file() {
        true => Ok(()),
        false => Err(format!("the kernel does not build: {}", stderr(&made))),
    }
}

/// Runs the kernel with these words, in the folder.
fn kernel(folder: &Folder, words: &str) -> Output {
    Command::new(TIDEMARK)
        .args(["kernel", "run", "--limit", LIMIT_S])
        .args(words.split_ascii_whitespace())
        .current_dir(&folder.0)
        .output()
        .unwrap()
}

/// The same, which is to succeed. Answers what stands on the console.
fn console(folder: &Folder, words: &str) -> String {
    console_at_end(folder, words, 0)
}

/// The same, which is to end with that status.
fn console_at_end(folder: &Folder, words: &str, status: i32) -> String {
    let output = kernel(folder, words);
    let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert_eq!(
        output.status.code(),
        Some(status),
        "{words}: {}{text}",
        stderr(&output)
    );
    text
}

/// Page numbers with a locality that moves, in which some pages come again soon.
fn page_list(pages: u64, touches: u64) -> String {
    let mut random: u64 = 1;
    let mut next = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut list = String::new();
    for number in 0..touches {
        let home = number * pages / touches / 2;
        let page = match next(4) {
            0 => next(pages),
            _ => home + next(pages / 6),
        };
        list.push_str(&format!("{page}\n"));
    }
    list
}
