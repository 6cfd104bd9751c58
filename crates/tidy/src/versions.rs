//! `oldest-compiler`: everything that names the oldest compiler names the same one.

use crate::finding::Finding;
use crate::source::line_of;
use crate::tree::Tree;

/// The manifest that decides.
const MANIFEST: &str = "Cargo.toml";
/// The text before the version there.
const IN_MANIFEST: &str = "rust-version = \"";
/// The other places: a file, and what stands before the version in it.
const PLACES: [(&str, &str); 4] = [
    ("kernel/Cargo.toml", IN_MANIFEST),
    ("CONTRIBUTING.md", "Rust "),
    ("README.md", "Rust "),
    ("scripts/deps", "RUST_LEAST="),
];

/// Finds places that name another compiler than the workspace, or none.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let text = tree.text(MANIFEST).unwrap_or_default();
    let Some((_, oldest)) = version_after(text, IN_MANIFEST) else {
        return Vec::new();
    };
    let others = PLACES.iter().filter_map(|(path, before)| {
        let text = tree.text(path)?;
        match version_after(text, before) {
            Some((_, version)) if version == oldest => None,
            Some((at, version)) => {
                let message = format!("names Rust {version}; `{MANIFEST}` has {oldest}");
                Some(Finding::new(path, line_of(text, at), message))
            }
            None => {
                let message = format!("names no compiler; `{MANIFEST}` has Rust {oldest}");
                Some(Finding::new(path, 0, message))
            }
        }
    });
    others.collect()
}

/// The first version that follows `before`, with its offset.
fn version_after<'a>(text: &'a str, before: &str) -> Option<(usize, &'a str)> {
    text.match_indices(before).find_map(|(at, _)| {
        let start = at + before.len();
        let rest = &text[start..];
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let version = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        (!version.is_empty()).then_some((start, version))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_found() {
        let mut tree = Tree::default();
        tree.add(
            "Cargo.toml",
            "[workspace.package]\nrust-version = \"1.95\"\n",
        );
        tree.add("CONTRIBUTING.md", "A machine with Rust 1.95 or newer.");
        tree.add("README.md", "It is\nRust all through, and\nRust 1.94. Old.");
        tree.add("scripts/deps", "readonly RUST_LEAST=least");
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "README.md:3: names Rust 1.94; `Cargo.toml` has 1.95",
                "scripts/deps: names no compiler; `Cargo.toml` has Rust 1.95",
            ]
        );
    }
}
