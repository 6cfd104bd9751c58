//! `two-places`: a policy is known to its own file and to the registry. And what nobody runs or
//! imports is removed: every module is declared, every script is called.

use crate::finding::Finding;
use crate::source::{blank, line_of, words};
use crate::tree::Tree;

const POLICIES: &str = "crates/core/src/policies/";
const REGISTRY: &str = "crates/core/src/policies.rs";

/// Finds policies that a third file names, modules without a declaration, scripts without a caller.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = check_policies(tree);
    findings.extend(check_modules(tree));
    findings.extend(check_scripts(tree));
    findings
}

/// The files in `policies/` that the registry lists are policies; nothing else may reach in.
fn check_policies(tree: &Tree) -> Vec<Finding> {
    let Some(registry) = tree.text(REGISTRY).map(blank) else {
        return Vec::new();
    };
    let policies: Vec<String> = tree
        .rust_files()
        .filter_map(|(path, _)| {
            let name = path.strip_prefix(POLICIES)?.strip_suffix(".rs")?;
            Some(name.replace('/', "::"))
        })
        .filter(|name| registry.contains(&format!("{name}::build")))
        .collect();
    let mut findings = Vec::new();
    for (path, text) in tree.rust_files() {
        // Below `policies/` one policy may build on another, and the registry names them all.
        if path.starts_with(POLICIES) || path == REGISTRY || !path.contains("/src/") {
            continue;
        }
        let code = blank(text);
        for name in &policies {
            let found = ["policies", "registry"]
                .iter()
                .find_map(|folder| code.find(&format!("{folder}::{name}::")));
            let Some(at) = found else {
                continue;
            };
            let message = format!("`{name}` is named outside its file and the registry");
            findings.push(Finding::new(path, line_of(&code, at), message));
        }
    }
    findings
}

/// Every file below a crate's `src`, or in a folder of its `tests`, is the root, a binary, or
/// declared by `mod`.
fn check_modules(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, _) in tree.rust_files() {
        let is_source = path.contains("/src/");
        let folder = if is_source { "/src/" } else { "/tests/" };
        let Some((owner, inside)) = path.split_once(folder) else {
            continue;
        };
        let is_root = if is_source {
            matches!(inside, "lib.rs" | "main.rs") || inside.starts_with("bin/")
        } else {
            !inside.contains('/') || inside.ends_with("/main.rs")
        };
        let stem = inside.trim_end_matches(".rs").trim_end_matches("/mod");
        let name = stem.rsplit('/').next().unwrap_or(stem);
        if !is_root && !is_declared(tree, &format!("{owner}{folder}"), name) {
            findings.push(Finding::new(path, 0, "no `mod` declares this file"));
        }
    }
    findings
}

fn is_declared(tree: &Tree, folder: &str, name: &str) -> bool {
    let mut sources = tree
        .rust_files()
        .filter(|(path, _)| path.starts_with(folder));
    sources.any(|(_, text)| {
        let code = blank(text);
        let after = words(&code).skip(1);
        let mut pairs = words(&code).zip(after);
        pairs.any(|((_, word), (_, next))| word == "mod" && next == name)
    })
}

fn check_scripts(tree: &Tree) -> Vec<Finding> {
    let scripts = tree
        .files()
        .filter(|(path, _)| path.starts_with("scripts/"));
    let is_called = |script: &str| {
        let callers = tree
            .files()
            .filter(|(path, _)| *path != script && !path.ends_with(".md"));
        callers.into_iter().any(|(_, text)| text.contains(script))
    };
    scripts
        .filter(|(path, _)| !is_called(path))
        .map(|(path, _)| Finding::new(path, 0, "nothing calls this script"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            tree.add(path, text);
        }
        tree
    }

    #[test]
    fn a_policy_named_in_a_third_place_is_found() {
        let mut tree = tree(&[
            ("crates/core/src/lib.rs", "pub mod policies;"),
            (REGISTRY, "mod classic { mod clock; } classic::clock::build"),
            ("crates/core/src/policies/classic/clock.rs", ""),
            (
                "crates/cli/src/main.rs",
                "// policies::classic::clock::build",
            ),
        ]);
        assert_eq!(check(&tree), []);
        tree.add(
            "crates/cli/src/main.rs",
            "let policy = core::policies::classic::clock::build();",
        );
        assert_eq!(check(&tree).len(), 1);
    }

    #[test]
    fn a_file_that_nothing_declares_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "mod used;"),
            ("crates/a/src/used.rs", ""),
        ];
        assert_eq!(check(&tree(&files)), []);
        assert_eq!(
            check(&tree(&[
                ("crates/a/src/lib.rs", ""),
                ("crates/a/src/lost.rs", "")
            ]))
            .len(),
            1
        );
    }

    #[test]
    fn a_test_that_nothing_declares_is_found() {
        let mut tree = tree(&[
            ("crates/a/tests/alone.rs", ""),
            ("crates/a/tests/all/main.rs", "mod used;"),
            ("crates/a/tests/all/used.rs", "mod parts;"),
            ("crates/a/tests/all/used/parts.rs", ""),
        ]);
        assert_eq!(check(&tree), []);
        tree.add("crates/a/tests/all/lost.rs", "");
        assert_eq!(check(&tree).len(), 1);
    }

    #[test]
    fn a_script_that_nothing_calls_is_found() {
        let script = ("scripts/sweep", "");
        assert_eq!(
            check(&tree(&[script, ("Makefile", "x:\n\tscripts/sweep")])),
            []
        );
        assert_eq!(
            check(&tree(&[script, ("README.md", "scripts/sweep")])).len(),
            1
        );
    }
}
