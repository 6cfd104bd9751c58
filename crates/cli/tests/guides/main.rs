//! The commands of README and of the guides, typed in order in the folder that the page names, and
//! what they print beside what the page prints.
//!
//! A page is Markdown. In its `console` blocks `$ ` begins a command; what follows, up to the next
//! one, is what it prints. Marks that a reader understands, too:
//!
//! - `~61,177` is a number that varies, `…` any text, and on a line of its own any lines.
//! - A comment that speaks of minutes or hours (`# minutes`, `# half an hour`) marks a command that
//!   runs under `TIDEMARK_ACCEPTANCE=full` alone; so does one that speaks of `acceptance`.
//! - `# needs PROGRAM` marks one that runs where there is such a program.
//! - `# status 1` says that the command ends so; else it is to end with 0.
//! - A comment in the first line of a block is for all of its commands.
//!
//! `TIDEMARK_GOLDEN=write` rewrites what pages print; the change shows in review.

#[path = "../programs/needs.rs"]
#[allow(dead_code)]
mod needs;
mod page;
mod pattern;
#[path = "../recorder/recording.rs"]
#[allow(dead_code)]
mod recording;
mod session;
#[path = "../support/mod.rs"]
mod support;
#[path = "../recorder/tool.rs"]
#[allow(dead_code)]
mod tool;

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use page::Page;

/// The root of the repository.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("this crate lies in it")
}

/// Held alone by a page that asks the only run there is, and together by the others, where pages
/// have no `/tmp` of their own.
static RUNS: RwLock<()> = RwLock::new(());

/// Runs a page, and compares what its commands print.
fn check(name: &str) {
    let mut page = Page::read(&root().join(name));
    let asks = |line: &String| {
        ["tidemark ctl", "tidemark top"]
            .iter()
            .any(|it| line.contains(it))
    };
    let (_alone, _together);
    if !session::has_own_tmp() && page.lines.iter().any(asks) {
        _alone = RUNS.write().unwrap_or_else(PoisonError::into_inner);
    } else {
        _together = RUNS.read().unwrap_or_else(PoisonError::into_inner);
    }
    let prologue = session::prologue(&page);
    let Some(outcomes) = session::run(&page, &prologue) else {
        return;
    };
    let is_written = std::env::var("TIDEMARK_GOLDEN").is_ok_and(|value| value == "write");
    let mut differences = Vec::new();
    for (command, outcome) in page.commands.iter().zip(&outcomes).rev() {
        let Some(outcome) = outcome else { continue };
        let printed = &page.lines[command.printed.clone()];
        if is_written && outcome.status == Some(command.status) {
            if let Some(lines) = pattern::rewritten(printed, &outcome.printed) {
                page.lines.splice(command.printed.clone(), lines);
            }
        } else if let Some(difference) = outcome.difference(command, printed) {
            differences.push(format!("{name}:{}: {difference}", command.line));
        }
    }
    if is_written {
        page.write();
    }
    differences.reverse();
    assert!(
        differences.is_empty(),
        "\n{}\nTIDEMARK_GOLDEN=write rewrites what pages print\n",
        differences.join("\n")
    );
}

/// A test for each page, and the list of them.
macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        $(#[test]
        fn $test() {
            check($page);
        })*

        const PAGES: &[&str] = &[$($page),*];
    };
}

pages! {
    the_readme_does_what_it_says: "README.md",
    arrays_do_what_their_guide_says: "docs/guide/arrays.md",
    c_does_what_its_guide_says: "docs/guide/c.md",
    compare_does_what_its_guide_says: "docs/guide/compare.md",
    containers_do_what_their_guide_says: "docs/guide/containers.md",
    diff_does_what_its_guide_says: "docs/guide/diff.md",
    faster_does_what_its_guide_says: "docs/guide/faster.md",
    files_do_what_their_guide_says: "docs/guide/files.md",
    install_does_what_its_guide_says: "docs/guide/install.md",
    kernel_does_what_its_guide_says: "docs/guide/kernel.md",
    live_recording_does_what_its_guide_says: "docs/guide/live-recording.md",
    many_programs_do_what_their_guide_says: "docs/guide/many-programs.md",
    memory_needed_does_what_its_guide_says: "docs/guide/memory-needed.md",
    new_policy_does_what_its_guide_says: "docs/guide/new-policy.md",
    python_does_what_its_guide_says: "docs/guide/python.md",
    replay_does_what_its_guide_says: "docs/guide/replay.md",
    servers_do_what_their_guide_says: "docs/guide/servers.md",
    sweep_does_what_its_guide_says: "docs/guide/sweep.md",
    volumes_do_what_their_guide_says: "docs/guide/volumes.md",
    working_sets_do_what_their_guide_says: "docs/guide/working-sets.md",
}

#[test]
fn every_guide_has_a_test() {
    let guides = root().join("docs/guide");
    for entry in std::fs::read_dir(&guides).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let page = format!("docs/guide/{name}");
        assert!(
            !name.ends_with(".md") || PAGES.contains(&page.as_str()),
            "`{page}` has no test here"
        );
    }
}
