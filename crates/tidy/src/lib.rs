//! The layout rules that the compiler and clippy can't check.
//!
//! Each rule is a function from the [`Tree`] to findings, in a file of its own: [`layers`] (which
//! crate may see which), [`safety`] (where `unsafe` may stand), [`sizes`] (files, functions,
//! lines), [`names`] (words that say nothing), [`core`](mod@core) (what may not enter it),
//! [`places`] (what nobody names, and what too many do) and [`outputs`] (where the command opens
//! files for its user). `make check` runs them all, and so does a test.
//!
//! # Invariants
//! 1. A rule reads; it changes nothing.
//! 2. Findings come in the order of the paths, so two runs on one tree print the same.
#![forbid(unsafe_code)]

pub mod core;
pub mod layers;
pub mod names;
pub mod outputs;
pub mod places;
pub mod safety;
pub mod sizes;
pub mod source;
pub mod tree;

pub use tree::Tree;

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the workspace's root.
    pub path: String,
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl Finding {
    /// Makes a finding about one line, or about the whole file if `line` is 0.
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.message),
            line => write!(out, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Runs every rule on `tree` and gives what they find, in order.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let rules = [
        layers::check,
        safety::check,
        sizes::check,
        names::check,
        core::check,
        places::check,
        outputs::check,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    findings
}
