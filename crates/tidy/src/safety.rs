//! `unsafe-has-an-address`: unsafe code lives in six places, and every other crate forbids it. An
//! example of the documentation that is a program of its own may have it, too, and so may what the
//! kernel's programs link with.

use crate::finding::Finding;
use crate::source::{blank, line_of, words};
use crate::tree::Tree;

/// The folders in which unsafe code may stand.
const ADDRESSES: [&str; 8] = [
    "crates/live/src/sys/",
    "crates/shim/",
    "crates/pool/",
    "crates/capi/src/",
    "crates/python/src/allocator.rs",
    "kernel/src/arch/",
    "kernel/user/library.rs",
    "docs/guide/policies/",
];
/// `live/src/sys.rs` is the folder's own module file.
const MODULE_FILE: &str = "crates/live/src/sys.rs";
/// Crates that hold an address, and so can't forbid unsafe code in the whole.
const HOLDERS: [&str; 5] = ["live", "shim", "pool", "capi", "python"];

/// Finds unsafe code out of place, and crates that do not forbid it.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust_files() {
        if has_address(path) {
            continue;
        }
        let code = blank(text);
        for (at, _) in words(&code).filter(|(_, word)| *word == "unsafe") {
            let message = "`unsafe` stands only in live/src/sys, shim, pool, capi, \
                           python/src/allocator.rs and kernel/src/arch";
            findings.push(Finding::new(path, line_of(&code, at), message));
        }
    }
    for name in tree.crates().filter(|name| !HOLDERS.contains(name)) {
        for root in ["lib.rs", "main.rs"] {
            let path = format!("crates/{name}/src/{root}");
            let Some(text) = tree.text(&path) else {
                continue;
            };
            if !blank(text).contains("#![forbid(unsafe_code)]") {
                findings.push(Finding::new(
                    &path,
                    0,
                    "`#![forbid(unsafe_code)]` is missing",
                ));
            }
        }
    }
    findings
}

fn has_address(path: &str) -> bool {
    path == MODULE_FILE || ADDRESSES.iter().any(|address| path.starts_with(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        let mut tree = Tree::default();
        tree.add("crates/cli/Cargo.toml", "");
        tree.add(path, text);
        check(&tree).len()
    }

    #[test]
    fn unsafe_code_is_found_where_it_may_not_be() {
        assert_eq!(
            findings("crates/live/src/engine.rs", "fn f() { unsafe { g() } }"),
            1
        );
        assert_eq!(
            findings("crates/live/src/sys/uffd.rs", "fn f() { unsafe { g() } }"),
            0
        );
        assert_eq!(
            findings(
                "crates/live/src/engine.rs",
                "// unsafe\nlet s = \"unsafe\";"
            ),
            0
        );
    }

    #[test]
    fn a_crate_that_does_not_forbid_unsafe_code_is_found() {
        assert_eq!(findings("crates/cli/src/main.rs", "fn main() {}"), 1);
        assert_eq!(
            findings(
                "crates/cli/src/main.rs",
                "#![forbid(unsafe_code)]\nfn main() {}"
            ),
            0
        );
    }
}
