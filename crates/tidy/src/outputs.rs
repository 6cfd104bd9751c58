//! `outputs-have-one-door`: what a command leaves for its user is opened in the crate `outputs`,
//! which knows the inputs and what is there already. Everything else that the command writes is its
//! own, and stands in the files listed here.

use crate::finding::Finding;
use crate::source::{line_of, product};
use crate::tree::Tree;

/// The folders in which the rule holds: the command, and what was taken out of it.
const PLACES: [&str; 4] = [
    "crates/cli/src/",
    "crates/supervisor/src/",
    "crates/experiment/src/",
    "crates/comparison/src/",
];
/// The files that write what no user named.
const WRITERS: [&str; 5] = [
    // The folder of traces that are made once.
    "crates/experiment/src/workload.rs",
    // The spool of a recording, which rings there.
    "crates/cli/src/mark.rs",
    // A run's private folder and its swap file.
    "crates/supervisor/src/folder.rs",
    "crates/supervisor/src/loading.rs",
    "crates/supervisor/src/swap.rs",
];
/// The calls with which files are opened for writing, or put where others may be.
const WAYS: [&str; 6] = [
    "File::create",
    "File::options",
    "OpenOptions::new",
    "fs::write",
    "fs::rename",
    "fs::copy",
];

/// Finds files that are opened for writing anywhere else.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.rust_files();
    let files = files.filter(|(path, _)| is_in(&PLACES, path) && !is_in(&WRITERS, path));
    files
        .flat_map(|(path, text)| check_file(path, text))
        .collect()
}

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let code = product(text);
    let found = WAYS.iter().flat_map(|way| code.match_indices(way));
    found
        .map(|(at, way)| {
            let message = format!("`{way}`: files for users are opened by `crate::files`");
            Finding::new(path, line_of(&code, at), message)
        })
        .collect()
}

fn is_in(places: &[&str], path: &str) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Tree::of(path, text)).len()
    }

    #[test]
    fn found_h2_a_file_opened_for_writing_elsewhere_is_found() {
        let text = "fn f() { std::fs::write(path, text); File::create(path); }";
        assert_eq!(findings("crates/cli/src/curve.rs", text), 2);
        assert_eq!(findings("crates/outputs/src/lib.rs", text), 0);
        assert_eq!(findings("crates/lab/src/study.rs", text), 0);
    }

    #[test]
    fn tests_and_words_about_it_are_left_alone() {
        let text = "// fs::write\n#[cfg(test)]\nmod tests { fn f() { fs::write(a, b); } }";
        assert_eq!(findings("crates/cli/src/curve.rs", text), 0);
    }
}
