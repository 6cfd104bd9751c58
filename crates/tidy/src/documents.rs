//! `one-page`: a decision has at most as many words as fit on a page. Its measurements are in
//! `bench/results`.
//!
//! `field-words`: documents use the field's words, and name their subjects. They do not use the
//! phrases of a list, in whose place a noun or a plainer verb is clearer. Code and outputs may.

use crate::finding::Finding;
use crate::tree::Tree;

const DECISIONS: &str = "docs/decisions/";
/// The list of decisions, which is as long as there are decisions.
const INDEX: &str = "docs/decisions/README.md";
const DECISION_WORDS_MAX: usize = 700;
/// The records of measurements, which stay as they were written.
const RESULTS: &str = "bench/results/";
/// Phrases, and what to write in their place.
const REFUSED: [(&str, &str); 14] = [
    ("anybody", "name the program, the thread or the reader"),
    ("are told", "a verb for what happens: learns, gets, reports"),
    ("goes by", "uses, follows"),
    ("is told", "a verb for what happens: learns, gets, reports"),
    ("let be", "is not changed, is left out"),
    ("nobody", "`no` and a noun"),
    ("so many", "a number, or `as many … as`"),
    ("somebody", "name the program, the thread or the reader"),
    ("stands in", "is in"),
    ("tell of", "show, report"),
    ("tells of", "shows, reports"),
    ("to be had", "there is, has"),
    ("what is to", "a noun"),
    ("whoever", "a noun: the driver, the caller, the user"),
];

/// Finds decisions that are longer than a page, and refused phrases in documents.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = check_lengths(tree);
    for (path, text) in tree.files() {
        if path.ends_with(".md") && !path.starts_with(RESULTS) {
            findings.extend(check_words(path, text));
        }
    }
    findings
}

fn check_lengths(tree: &Tree) -> Vec<Finding> {
    let pages = tree.files().filter(|(path, _)| is_decision(path));
    pages
        .filter_map(|(path, text)| {
            let words = text.split_whitespace().count();
            let remedy = "move measurements to bench/results, or leave out what no longer holds";
            let message = format!("{words} words; the limit is {DECISION_WORDS_MAX}: {remedy}");
            (words > DECISION_WORDS_MAX).then(|| Finding::new(path, 0, message))
        })
        .collect()
}

fn check_words(path: &str, text: &str) -> Vec<Finding> {
    let words = prose_words(text);
    let is_at = |at: usize, phrase: &str| {
        let mut rest = words[at..].iter().map(|(_, word)| word.as_str());
        phrase.split(' ').all(|word| rest.next() == Some(word))
    };
    let mut findings = Vec::new();
    for (at, (line, _)) in words.iter().enumerate() {
        for (phrase, remedy) in REFUSED {
            if is_at(at, phrase) {
                let message = format!("`{phrase}`; write instead: {remedy}");
                findings.push(Finding::new(path, *line, message));
            }
        }
    }
    findings
}

/// The words of a page in lower case, each with its line. Blocks and spans of code hold none.
fn prose_words(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let mut is_code = false;
    for (number, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence {
            continue;
        }
        let prose = line.split('`').step_by(2);
        let found = prose.flat_map(|piece| {
            let pieces = piece.split(|letter: char| !letter.is_alphanumeric() && letter != '-');
            pieces.filter(|word| !word.is_empty())
        });
        words.extend(found.map(|word| (number + 1, word.to_lowercase())));
    }
    words
}

fn is_decision(path: &str) -> bool {
    path.starts_with(DECISIONS) && path.ends_with(".md") && path != INDEX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Tree::of(path, text)).len()
    }

    #[test]
    fn a_decision_has_one_page() {
        assert_eq!(
            findings("docs/decisions/0001-a.md", &"word\n".repeat(700)),
            0
        );
        assert_eq!(
            findings("docs/decisions/0001-a.md", &"word ".repeat(701)),
            1
        );
    }

    #[test]
    fn documents_use_plain_words() {
        assert_eq!(
            findings("docs/a.md", "Nobody waits.\nA page stands\nin memory."),
            2
        );
        assert_eq!(findings("docs/a.md", "It stands inside, so few."), 0);
        assert_eq!(findings("crates/a/src/b.rs", "// nobody"), 0);
        assert_eq!(findings("bench/results/a.md", "nobody"), 0);
    }

    #[test]
    fn code_and_outputs_have_their_words() {
        let text = "The name `nobody`.\n```console\n$ su nobody\n```\n";
        assert_eq!(findings("docs/a.md", text), 0);
    }

    #[test]
    fn other_pages_may_be_longer() {
        let text = "word ".repeat(701);
        assert_eq!(findings("docs/decisions/README.md", &text), 0);
        assert_eq!(findings("docs/guide/a.md", &text), 0);
    }
}
