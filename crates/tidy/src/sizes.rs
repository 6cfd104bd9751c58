//! `sizes`: a file, a function and a line have limits. What exceeds one is listed in `tidy.toml`
//! with its length, and that may only fall.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::source::{blank, functions};
use crate::tree::Tree;

const FILE_LINES_MAX: usize = 800;
const TEST_LINES_MAX: usize = 200;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_COLUMNS_MAX: usize = 100;
pub(crate) const EXCEPTIONS: &str = "tidy.toml";

/// Finds what is too long, and exceptions that are longer than they need to be.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut exceptions = exceptions(tree.text(EXCEPTIONS).unwrap_or_default());
    // Those are circles of imports, not lengths.
    exceptions.retain(|key, _| !key.ends_with("#cycle"));
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        if is_wrapped_by_hand(path) {
            findings.extend(check_columns(path, text));
        }
        if path.ends_with(".rs") {
            for (key, lines, limit) in measure(path, text) {
                let allowed = exceptions.remove(&key);
                findings.extend(judge(path, &key, lines, limit, allowed));
            }
        }
    }
    for key in exceptions.into_keys() {
        let message = format!("`{key}` is within its limit, or gone: remove the line");
        findings.push(Finding::new(EXCEPTIONS, 0, message));
    }
    findings
}

/// Compares one length with its limit, or with the exception made for it.
fn judge(
    path: &str,
    key: &str,
    lines: usize,
    limit: usize,
    allowed: Option<usize>,
) -> Option<Finding> {
    match allowed {
        None if lines > limit => Some(Finding::new(
            path,
            0,
            format!("`{key}` has {lines} lines; the limit is {limit}"),
        )),
        Some(_) if lines <= limit => Some(Finding::new(
            EXCEPTIONS,
            0,
            format!("`{key}` is within its limit: remove the line"),
        )),
        Some(allowed) if lines > allowed => {
            let message = format!("`{key}` grew from {allowed} to {lines} lines; it may only fall");
            Some(Finding::new(path, 0, message))
        }
        Some(allowed) if lines < allowed => {
            let message = format!("`{key}` fell from {allowed} to {lines} lines: write {lines}");
            Some(Finding::new(EXCEPTIONS, 0, message))
        }
        _ => None,
    }
}

/// Every length in a file that has a limit: key in `tidy.toml`, lines, limit.
fn measure(path: &str, text: &str) -> Vec<(String, usize, usize)> {
    let lines = text.lines().count();
    let tests_at = text
        .lines()
        .position(|line| line == "mod tests {")
        .map(|at| at.saturating_sub(1));
    let body = tests_at.unwrap_or(lines);
    let mut lengths = vec![(path.to_owned(), body, FILE_LINES_MAX)];
    if tests_at.is_some() {
        lengths.push((format!("{path}#tests"), lines - body, TEST_LINES_MAX));
    }
    // Of functions with one name in a file the longest stands for all.
    let mut longest: BTreeMap<String, usize> = BTreeMap::new();
    for function in functions(&blank(text)) {
        let most = longest
            .entry(format!("{path}::{}", function.name))
            .or_default();
        *most = function.lines.max(*most);
    }
    lengths.extend(
        longest
            .into_iter()
            .map(|(key, lines)| (key, lines, FUNCTION_LINES_MAX)),
    );
    lengths
}

fn check_columns(path: &str, text: &str) -> Vec<Finding> {
    let too_wide = |line: &str| line.chars().count() > LINE_COLUMNS_MAX;
    let lines = text.lines().enumerate().filter(|(_, line)| too_wide(line));
    lines
        .map(|(index, _)| {
            Finding::new(
                path,
                index + 1,
                format!("more than {LINE_COLUMNS_MAX} columns"),
            )
        })
        .collect()
}

/// Returns true if people break this file's lines. Tables, generated text and recorded runs have
/// the width they have.
fn is_wrapped_by_hand(path: &str) -> bool {
    path.ends_with(".rs") || path.starts_with("scripts/") || path == "Makefile"
}

/// Reads `"key" = length` lines.
pub(crate) fn exceptions(text: &str) -> BTreeMap<String, usize> {
    let entries = text.lines().filter_map(|line| {
        let (key, length) = line.split_once(" = ")?;
        Some((
            key.trim_matches('"').to_owned(),
            length.trim().parse().ok()?,
        ))
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(lines: usize, exceptions: &str) -> Vec<Finding> {
        let mut tree = Tree::default();
        tree.add(
            "crates/a/src/b.rs",
            &format!("fn long() {{\n{}}}\n", "x;\n".repeat(lines - 2)),
        );
        tree.add("tidy.toml", exceptions);
        check(&tree)
    }

    #[test]
    fn a_long_function_is_found_unless_it_is_listed() {
        assert_eq!(findings(70, ""), []);
        assert_eq!(findings(71, "").len(), 1);
        assert_eq!(findings(71, "\"crates/a/src/b.rs::long\" = 71\n"), []);
    }

    #[test]
    fn a_listed_length_may_only_fall() {
        assert_eq!(findings(72, "\"crates/a/src/b.rs::long\" = 71\n").len(), 1);
        assert_eq!(findings(71, "\"crates/a/src/b.rs::long\" = 80\n").len(), 1);
        assert_eq!(findings(50, "\"crates/a/src/b.rs::long\" = 71\n").len(), 1);
        assert_eq!(
            findings(50, "\"crates/a/src/gone.rs::long\" = 71\n").len(),
            1
        );
    }

    #[test]
    fn tests_count_for_themselves() {
        let mut tree = Tree::default();
        let body = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            "x;\n".repeat(700),
            "y;\n".repeat(190)
        );
        tree.add("crates/a/src/b.rs", &body);
        assert_eq!(check(&tree), []);
        tree.add(
            "crates/a/src/c.rs",
            &format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "y;\n".repeat(200)),
        );
        assert_eq!(check(&tree).len(), 1);
    }

    #[test]
    fn a_wide_line_is_found() {
        let mut tree = Tree::default();
        tree.add("crates/a/src/b.rs", &"é".repeat(100));
        assert_eq!(check(&tree), []);
        tree.add("crates/a/src/b.rs", &"é".repeat(101));
        assert_eq!(check(&tree).len(), 1);
    }
}
