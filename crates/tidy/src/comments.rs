//! `field-words`: a documentation comment begins with a noun or a verb in the third person, so that
//! its subject comes first. It does not begin with a question word, nor with dots: it is read
//! without the comment before it.

use crate::finding::Finding;
use crate::tree::Tree;

/// Words that begin a clause in place of a noun.
const QUESTIONS: [&str; 13] = [
    "What", "How", "Whether", "Where", "Who", "Whose", "Whom", "Why", "When", "Which", "Whatever",
    "Whoever", "Wherever",
];

/// Finds documentation comments of Rust, and docstrings of Python, that begin with such a word.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        let openings = match path.rsplit('.').next() {
            Some("rs") => rust_openings(text),
            Some("py" | "pyi") => python_openings(text),
            _ => continue,
        };
        findings.extend(openings.into_iter().filter_map(|(line, opening)| {
            let word = match opening.trim_start() {
                dots if dots.starts_with("...") || dots.starts_with('…') => "...",
                text => first_word(text),
            };
            let is_refused = word == "..." || QUESTIONS.contains(&word);
            is_refused.then(|| {
                let remedy = "begin with a noun or a verb: `The …`, `Returns …`, `True if …`";
                Finding::new(path, line, format!("begins with `{word}`; {remedy}"))
            })
        }));
    }
    findings
}

/// The first line of each documentation comment, with its number.
fn rust_openings(text: &str) -> Vec<(usize, &str)> {
    let mut openings = Vec::new();
    let mut before = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let marker = ["///", "//!", "/**", "/*!"]
            .into_iter()
            .find(|marker| line.starts_with(marker) && !line.starts_with("////"));
        if let Some(marker) = marker.filter(|_| marker != before) {
            openings.push((number + 1, &line[marker.len()..]));
        }
        before = marker;
    }
    openings
}

/// The first line of each string that stands by itself, with its number.
fn python_openings(text: &str) -> Vec<(usize, &str)> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(number, line)| Some((number + 1, line.trim_start().strip_prefix("\"\"\"")?)))
        .collect()
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|letter: char| !letter.is_alphanumeric());
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut tree = Tree::default();
        tree.add(path, text);
        check(&tree).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_comment_begins_with_a_noun_or_a_verb() {
        let text =
            "//! What a file is for.\n\n    /// Whether it is.\n    /// How it is.\nfn a() {}\n";
        assert_eq!(lines("crates/a/src/b.rs", text), [1, 3]);
        assert_eq!(lines("crates/a/src/b.rs", "/// ... and more.\n"), [1]);
        let text = "/// Returns true if it is.\n/// Where not, false.\n\n//// How\n// What\n";
        assert_eq!(lines("crates/a/src/b.rs", text), [0; 0]);
        assert_eq!(
            lines("crates/a/src/b.rs", "/// Whereabouts\n/// Howard's\n"),
            [0; 0]
        );
    }

    #[test]
    fn comments_of_two_kinds_are_two() {
        let text = "//! The file.\n/// Who calls.\n//! Why.\n";
        assert_eq!(lines("crates/a/src/b.rs", text), [2, 3]);
        assert_eq!(lines("crates/a/src/b.rs", "/** Why */"), [1]);
    }

    #[test]
    fn a_docstring_begins_with_one_too() {
        let text = "def a():\n    \"\"\"How many.\"\"\"\n    x = 1  # What\n";
        assert_eq!(lines("python/tidemark/a.py", text), [2]);
        assert_eq!(lines("docs/a.md", text), [0; 0]);
    }
}
