//! `field-words`: documents, help texts, messages and comments use the field's words, and name
//! their subjects. They do not use the phrases of a list, in whose place a noun or a plainer verb
//! is clearer.

use crate::finding::Finding;
use crate::source::blank;
use crate::tree::Tree;

/// The records of measurements, which stay as they were written.
const RESULTS: &str = "bench/results/";
/// Sources that have the phrases as data.
const LEFT_OUT: &str = "crates/tidy/src/";
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

/// Finds refused phrases in documents, and in comments and strings of product sources.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        if path.ends_with(".md") && !path.starts_with(RESULTS) {
            findings.extend(check_words(path, &document_words(text)));
        } else if is_source(path) {
            findings.extend(check_words(path, &source_words(text)));
        }
    }
    findings
}

/// A word in lower case, with the line that it is in.
type Word = (usize, String);

fn check_words(path: &str, words: &[Word]) -> Vec<Finding> {
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

/// The words of a page. Blocks and spans of code hold none.
fn document_words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut is_code = false;
    for (number, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if !is_code && !is_fence {
            add_words(number + 1, line, &mut words);
        }
    }
    words
}

/// The words of the comments and strings of a source. Code between two of them is a word that no
/// phrase has.
fn source_words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let code = blank(text);
    for (number, (line, code)) in text.lines().zip(code.lines()).enumerate() {
        let mut prose = String::new();
        // A literal is blank in `code`, byte for byte.
        for (at, letter) in line.char_indices() {
            let is_code = code.as_bytes()[at] != b' ';
            prose.push(if is_code { '_' } else { letter });
        }
        add_words(number + 1, &prose, &mut words);
    }
    words
}

fn add_words(line: usize, prose: &str, words: &mut Vec<Word>) {
    let pieces = prose.split('`').step_by(2);
    let is_inside = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '_';
    let found = pieces.flat_map(|piece| piece.split(|letter| !is_inside(letter)));
    let found = found.filter(|word| !word.is_empty());
    words.extend(found.map(|word| (line, word.to_lowercase())));
}

/// Returns true for the sources of what users run and contributors read: no tests.
fn is_source(path: &str) -> bool {
    let is_left_out = path.starts_with(LEFT_OUT);
    let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
    let is_inside = path.starts_with("crates/") || path.starts_with("kernel/");
    is_inside && path.contains("/src/") && path.ends_with(".rs") && !is_test && !is_left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let findings = check(&Tree::of(path, text));
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn documents_use_plain_words() {
        let text = "Nobody waits.\nA page stands\nin memory.";
        assert_eq!(lines("docs/a.md", text), [1, 2]);
        assert_eq!(lines("docs/a.md", "It stands inside, so few."), [0; 0]);
        assert_eq!(lines("bench/results/a.md", "nobody"), [0; 0]);
    }

    #[test]
    fn code_and_outputs_have_their_words() {
        let text = "The name `nobody`.\n```console\n$ su nobody\n```\n";
        assert_eq!(lines("docs/a.md", text), [0; 0]);
    }

    #[test]
    fn comments_and_messages_use_plain_words() {
        let text =
            "/// Waits for so\n/// many pages.\nfn a() {\n    refuse!(\"nobody waits\");\n}\n";
        assert_eq!(lines("crates/a/src/b.rs", text), [1, 4]);
        assert_eq!(lines("kernel/src/b.rs", "// é: whoever\n"), [1]);
        assert_eq!(lines("crates/a/tests/b.rs", text), [0; 0]);
        assert_eq!(lines("crates/a/src/tests.rs", text), [0; 0]);
    }

    #[test]
    fn names_and_code_between_comments_are_no_phrases() {
        let text = "// So\nlet a = 1; // many\nfn nobody() {} // The user `nobody`.\n";
        assert_eq!(lines("crates/a/src/b.rs", text), [0; 0]);
    }
}
