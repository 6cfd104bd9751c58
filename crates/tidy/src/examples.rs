//! `examples`: a crate whose examples are not run has none.
//!
//! To look for examples takes seconds a crate; most have none, and say `doctest = false`.

use crate::finding::Finding;
use crate::tree::Tree;

/// The words behind a fence that mark a block which is no Rust.
const OTHERS: [&str; 5] = ["text", "console", "toml", "json", "sh"];

/// Finds examples in the documentation of crates that have them not run.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        let Some(folder) = path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        if !text.lines().any(|line| line == "doctest = false") {
            continue;
        }
        let sources = format!("{folder}/src/");
        let files = tree.files().filter(|(file, _)| file.starts_with(&sources));
        for (file, text) in files {
            let lines = examples(text);
            findings.extend(lines.into_iter().map(|line| {
                let remedy = format!("is not run: remove `doctest = false` from `{path}`");
                Finding::new(file, line, format!("this example {remedy}"))
            }));
        }
    }
    findings
}

/// The lines at which blocks of Rust begin in documentation comments.
fn examples(text: &str) -> Vec<usize> {
    let mut is_within = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let comment = ["///", "//!"].iter().find_map(|it| line.strip_prefix(it));
        let Some(kind) = comment.and_then(|it| it.trim_start().strip_prefix("```")) else {
            continue;
        };
        is_within = !is_within;
        if is_within && !OTHERS.contains(&kind.trim()) {
            found.push(number + 1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(toml: &str, text: &str) -> Vec<usize> {
        let mut tree = Tree::default();
        tree.add("crates/a/Cargo.toml", toml);
        tree.add("crates/a/src/lib.rs", text);
        check(&tree).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn an_example_that_is_not_run_is_found() {
        let text = "//! It adds.\n//! ```\n//! assert_eq!(1 + 1, 2);\n//! ```\n";
        assert_eq!(lines("[lib]\ndoctest = false\n", text), [2]);
        assert_eq!(lines("[lib]\n", text), [0; 0]);
    }

    #[test]
    fn a_picture_is_none() {
        let text = "/// ```text\n/// a b\n/// ```\n/// ```no_run\n/// a();\n/// ```\n";
        assert_eq!(lines("[lib]\ndoctest = false\n", text), [4]);
    }
}
