//! Names the commit that the command is built of, for `--version`.
//!
//! In a clone Git tells it, and whether the sources of the command differ from it. In sources that
//! `git archive` made, the file `COMMIT` has it. The command is built again when the commit or a
//! source changes, and nothing else is.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that `git archive` writes the commit and its day into.
const ARCHIVED: &str = "COMMIT";
/// The sources of the command beside the folder `src` of each crate.
const SOURCES: [&str; 4] = [
    "Cargo.toml",
    "Cargo.lock",
    "bench/experiments",
    "bench/workloads",
];
/// The number of digits by which a commit is named.
const DIGITS: usize = 12;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = collect_sources(&root);
    watch(&root.join(ARCHIVED));
    sources.iter().for_each(|source| watch(&root.join(source)));
    let commit = ask_git(&root, &sources).or_else(|| read_archived(&root));
    let commit = commit.unwrap_or_else(|| "of an unknown commit".into());
    let version = env!("CARGO_PKG_VERSION");
    println!("cargo::rustc-env=TIDEMARK_VERSION={version} ({commit})");
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

fn collect_sources(root: &Path) -> Vec<String> {
    let crates = std::fs::read_dir(root.join("crates"));
    let crates = crates.into_iter().flatten().flatten();
    let folders = crates.map(|entry| format!("crates/{}/src", entry.file_name().display()));
    let others = SOURCES.iter().map(|&source| source.to_owned());
    let mut sources: Vec<String> = folders.chain(others).collect();
    sources.sort();
    sources
}

/// The commit that is checked out, and whether `sources` differ from it.
fn ask_git(root: &Path, sources: &[String]) -> Option<String> {
    // Without this, unpacked sources would be named by the repository of a folder around them.
    if !root.join(".git").exists() {
        return None;
    }
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(root, &["rev-parse", "--git-path", name])?;
        let path: PathBuf = root.join(path);
        if path.exists() {
            watch(&path);
        }
    }
    let commit = git(root, &["log", "-1", "--format=%H %cs"])?;
    let words = ["--no-optional-locks", "status", "--porcelain", "--"];
    let words: Vec<&str> = words
        .into_iter()
        .chain(sources.iter().map(String::as_str))
        .collect();
    let changed = match git(root, &words)?.is_empty() {
        true => "",
        false => ", changed",
    };
    Some(format!("{}{changed}", shortened(&commit)?))
}

fn git(root: &Path, words: &[&str]) -> Option<String> {
    let asked = Command::new("git").current_dir(root).args(words).output();
    let asked = asked.ok().filter(|asked| asked.status.success())?;
    Some(String::from_utf8(asked.stdout).ok()?.trim().to_owned())
}

fn read_archived(root: &Path) -> Option<String> {
    shortened(&std::fs::read_to_string(root.join(ARCHIVED)).ok()?)
}

/// A commit and its day, with fewer digits. `None` for anything else.
fn shortened(text: &str) -> Option<String> {
    let (commit, day) = text.trim().split_once(' ')?;
    let is_commit = commit.len() >= DIGITS && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| format!("{} {day}", &commit[..DIGITS]))
}
