//! `deterministic`: what would make the core's decisions differ between two equal runs.
//!
//! The compiler keeps most of it out: `no_std` without dependencies has no clock, thread, file or
//! randomly seeded table. What remains is checked here; and that what simulated kernels turn on
//! stays apart from the sequences of live processes.

use crate::finding::Finding;
use crate::source::{line_of, product, words};
use crate::tree::Tree;

/// A word that may not stand in the core, and why.
const BANNED: [(&str, &str); 7] = [
    ("HashMap", "its order is random; use `BTreeMap`"),
    ("HashSet", "its order is random; use `BTreeSet`"),
    ("RandomState", "it is random"),
    ("f32", "choices are made with integers"),
    ("f64", "choices are made with integers"),
    ("std", "the core has no operating system under it"),
    ("async", "the core is polled"),
];

/// Finds sources of randomness, floats and printed pointers in the core.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree
        .rust_files()
        .filter(|(path, _)| path.starts_with("crates/core/src/"))
    {
        // Test modules may measure and use the standard library.
        if path.ends_with("/tests.rs") {
            continue;
        }
        let code = product(text);
        for (at, word) in words(&code) {
            if let Some((_, why)) = BANNED.iter().find(|(banned, _)| *banned == word) {
                findings.push(Finding::new(
                    path,
                    line_of(&code, at),
                    format!("`{word}`: {why}"),
                ));
            }
        }
        if let Some(at) = code
            .find("crate::kernels")
            .filter(|_| is_plain_sequence(path))
        {
            findings.push(Finding::new(
                path,
                line_of(&code, at),
                "a sequence of a live process asks for no kernel; `vm/kernels` has the steps",
            ));
        }
        if let Some(at) = text.find(":p}") {
            findings.push(Finding::new(
                path,
                line_of(text, at),
                "a pointer is never printed",
            ));
        }
    }
    if let Some(text) = tree.text("crates/core/src/lib.rs")
        && !text.contains("#![no_std]")
    {
        findings.push(Finding::new(
            "crates/core/src/lib.rs",
            0,
            "`#![no_std]` is missing",
        ));
    }
    findings
}

/// Returns true if a file has sequences that live processes run, too.
fn is_plain_sequence(path: &str) -> bool {
    let rest = path.strip_prefix("crates/core/src/vm");
    rest.is_some_and(|rest| !rest.starts_with("/kernels"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        findings_in("queue.rs", text)
    }

    fn findings_in(path: &str, text: &str) -> usize {
        check(&Tree::of(&format!("crates/core/src/{path}"), text)).len()
    }

    #[test]
    fn sequences_ask_for_no_kernel_but_those_of_kernels() {
        let text = "use crate::kernels::Placement;";
        assert_eq!(findings_in("vm.rs", text), 1);
        assert_eq!(findings_in("vm/reclaim.rs", text), 1);
        assert_eq!(findings_in("vm/kernels.rs", text), 0);
        assert_eq!(findings_in("vm/kernels/pacing.rs", text), 0);
        assert_eq!(
            findings_in("vm/reclaim.rs", "use crate::vm::kernels::Mechanisms;"),
            0
        );
    }

    #[test]
    fn what_differs_between_equal_runs_is_found() {
        assert_eq!(findings("use hash::HashMap;"), 1);
        assert_eq!(findings("let share: f64 = 0.5;"), 1);
        assert_eq!(findings("write!(out, \"{:p}\", self)"), 1);
        assert_eq!(findings("let map: BTreeMap<u32, u32>; // not a HashMap"), 0);
    }

    #[test]
    fn tests_of_the_core_may_use_the_standard_library() {
        assert_eq!(
            findings("#[cfg(test)]\nmod tests {\n    use std::vec;\n}"),
            0
        );
    }
}
