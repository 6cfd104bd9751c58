//! `used`: every dependency of a `Cargo.toml` is named in the sources beside it, and every one that
//! the workspace lists by some crate. What nobody names is compiled for nothing, and trusted.

use crate::finding::Finding;
use crate::source::{blank, line_of, words};
use crate::tree::Tree;

/// Dependencies that no source names, by the manifest that has them, and why.
const SILENT: [(&str, &str); 2] = [
    // There for its features alone: what is built for some packages then serves for all.
    ("crates/plugin/Cargo.toml", "bitflags"),
    ("crates/plugin/Cargo.toml", "libm"),
];

/// Finds dependencies that nothing uses.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let manifests = tree.files().filter(|(path, _)| is_manifest(path));
    for (path, text) in manifests {
        for (at, name) in dependencies(text) {
            let is_listed = table_of(text, at).starts_with("[workspace.");
            let is_used = match is_listed {
                true => is_asked_for(tree, path, name),
                false => is_named(tree, path, name) || SILENT.contains(&(path, name)),
            };
            if !is_used {
                let message = format!("nothing uses `{name}`; take it out");
                findings.push(Finding::new(path, line_of(text, at), message));
            }
        }
    }
    findings
}

fn is_manifest(path: &str) -> bool {
    path == "Cargo.toml" || path.ends_with("/Cargo.toml")
}

/// The names in a manifest's tables of dependencies, each with its offset.
fn dependencies(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut at, mut is_inside) = (0, false);
    for line in text.split_inclusive('\n') {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end().trim_end_matches(']');
            is_inside = table.ends_with("dependencies");
        } else if is_inside && line.starts_with(|letter: char| letter.is_ascii_alphanumeric()) {
            let end = line.find(|letter: char| "=. ".contains(letter));
            found.push((at, &line[..end.unwrap_or(line.len())]));
        }
        at += line.len();
    }
    found
}

/// The heading of the table that offset `at` is in.
fn table_of(text: &str, at: usize) -> &str {
    let mut headings = text[..at].lines().filter(|line| line.starts_with('['));
    headings.next_back().unwrap_or_default()
}

/// Looks for `name` in the Rust sources of the manifest's folder, as code names it.
fn is_named(tree: &Tree, manifest: &str, name: &str) -> bool {
    let folder = &manifest[..manifest.len() - "Cargo.toml".len()];
    let name = name.replace('-', "_");
    tree.rust_files()
        .filter(|(path, _)| path.starts_with(folder))
        .any(|(_, text)| words(&blank(text)).any(|(_, word)| word == name))
}

/// Looks for `name` among the dependencies of the other manifests.
fn is_asked_for(tree: &Tree, workspace: &str, name: &str) -> bool {
    tree.files()
        .filter(|(path, _)| is_manifest(path) && *path != workspace)
        .any(|(_, text)| dependencies(text).iter().any(|(_, other)| *other == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = "[workspace.dependencies]\nserde = \"1\"\nspare-one = \"1\"\n";

    fn findings(manifest: &str, source: &str) -> Vec<String> {
        let mut tree = Tree::default();
        tree.add("Cargo.toml", WORKSPACE);
        tree.add("crates/a/Cargo.toml", manifest);
        tree.add("crates/a/src/lib.rs", source);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_nothing_names_is_found() {
        let manifest = "[package]\nname = \"a\"\n\n[dependencies]\nserde.workspace = true\n\
                        spare-one = { workspace = true }\n\n[lints]\nworkspace = true\n";
        let used = "use serde::Serialize;\nuse spare_one as one;\n";
        assert!(findings(manifest, used).is_empty());
        let found = findings(manifest, "use serde::Serialize;\n// spare_one\n");
        assert_eq!(
            found,
            ["crates/a/Cargo.toml:6: nothing uses `spare-one`; take it out"]
        );
    }

    #[test]
    fn what_no_crate_asks_for_is_found_in_the_workspace() {
        let manifest = "[dev-dependencies]\nserde.workspace = true\n";
        let found = findings(manifest, "use serde::Serialize;");
        assert_eq!(
            found,
            ["Cargo.toml:3: nothing uses `spare-one`; take it out"]
        );
    }
}
