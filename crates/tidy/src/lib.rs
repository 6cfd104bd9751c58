//! The layout rules that the compiler and clippy can't check.
//!
//! Each rule is a function from the [`Tree`] to findings, in a file of its own: [`layers`] (which
//! crate may see which), [`safety`] (where `unsafe` may stand), [`sizes`] (files, functions,
//! lines), [`names`] (words that say nothing), [`core`](mod@core) (what may not enter it),
//! [`places`] (unused names, and names used too often), [`outputs`] (where the command opens files
//! for its user), [`cycles`] (files that import each other in circles), [`comments`] (how
//! documentation begins), [`links`] (where links of pages lead), [`documents`] (how long decisions
//! are), [`examples`] (those that are not run), [`words`] (phrases in documents, messages and
//! comments), [`dependencies`] (what nothing uses) and [`versions`] (the oldest compiler). `make
//! check` runs them all, and so does a test.
//!
//! # Invariants
//! 1. A rule reads; it changes nothing.
//! 2. Findings come in the order of the paths, so two runs on one tree print the same.
#![forbid(unsafe_code)]

pub mod comments;
pub mod core;
pub mod cycles;
pub mod dependencies;
pub mod documents;
pub mod examples;
pub mod finding;
pub mod layers;
pub mod links;
pub mod names;
pub mod outputs;
pub mod places;
pub mod safety;
pub mod sizes;
pub mod source;
pub mod tree;
pub mod versions;
pub mod words;

pub use finding::Finding;
pub use tree::Tree;

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
        cycles::check,
        comments::check,
        links::check,
        documents::check,
        examples::check,
        dependencies::check,
        versions::check,
        words::check,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    findings
}
