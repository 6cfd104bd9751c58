//! `domain-nouns`: no file or module is named by a word that fits anything. And no file names the
//! host of a package registry: what the build fetches, it fetches as the machine is set up to.

use crate::finding::Finding;
use crate::source::{blank, line_of, words};
use crate::tree::Tree;

/// Words that say nothing of what a file is about.
const BANNED: [&str; 9] = [
    "util", "utils", "helper", "helpers", "common", "manager", "managers", "misc", "data",
];
/// Parts of the registries' host names, in halves, so that this file does not name them either.
const HOSTS: [(&str, &str); 8] = [
    ("crates", ".io"),
    ("static.rust-lang", ".org"),
    ("pypi", ".org"),
    ("pythonhosted", ".org"),
    ("npmjs", ".org"),
    ("deb.debian", ".org"),
    ("proxy.golang", ".org"),
    ("repo1.maven", ".org"),
];
/// Written by Cargo, which records where each crate came from.
const LOCK_FILE: &str = "Cargo.lock";

/// Finds files and modules with names that say nothing, and names of registries.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.split('.').next().unwrap_or(name);
        let folders = path.rsplit('/').skip(1);
        if std::iter::once(stem)
            .chain(folders)
            .any(|word| BANNED.contains(&word))
        {
            findings.push(Finding::new(
                path,
                0,
                "the name fits anything; say what the file is about",
            ));
        }
        if path.ends_with(".rs") {
            findings.extend(check_modules(path, text));
        }
        if !path.ends_with(LOCK_FILE) {
            findings.extend(check_hosts(path, text));
        }
    }
    findings
}

fn check_modules(path: &str, text: &str) -> Vec<Finding> {
    let code = blank(text);
    let after = words(&code).skip(1);
    let pairs = words(&code)
        .zip(after)
        .filter(|((_, word), _)| *word == "mod");
    pairs
        .filter(|(_, (_, name))| BANNED.contains(name))
        .map(|(_, (at, name))| {
            Finding::new(
                path,
                line_of(&code, at),
                format!("`{name}` fits anything; name the noun"),
            )
        })
        .collect()
}

fn check_hosts(path: &str, text: &str) -> Vec<Finding> {
    let hosts = HOSTS.iter().map(|(front, back)| format!("{front}{back}"));
    hosts
        .filter_map(|host| text.find(&host))
        .map(|at| Finding::new(path, line_of(text, at), "names a package registry's host"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Tree::of(path, text)).len()
    }

    #[test]
    fn names_that_fit_anything_are_found() {
        assert_eq!(findings("crates/a/src/util.rs", ""), 1);
        assert_eq!(findings("crates/a/tests/common/mod.rs", ""), 1);
        assert_eq!(findings("crates/a/src/frame.rs", "mod helper { }"), 1);
        assert_eq!(
            findings("crates/a/src/frame.rs", "// mod helper\nlet common = 1;"),
            0
        );
    }

    #[test]
    fn a_registry_is_found_except_in_the_lock_file() {
        let text = format!("see https://{}{}/x", HOSTS[2].0, HOSTS[2].1);
        assert_eq!(findings("README.md", &text), 1);
        assert_eq!(findings("Cargo.lock", &text), 0);
    }
}
