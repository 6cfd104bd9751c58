//! `one-page`: a decision has at most as many words as fit on a page. Its measurements are in
//! `bench/results`.

use crate::finding::Finding;
use crate::tree::Tree;

const DECISIONS: &str = "docs/decisions/";
/// The list of decisions, which is as long as there are decisions.
const INDEX: &str = "docs/decisions/README.md";
const DECISION_WORDS_MAX: usize = 700;

/// Finds decisions that are longer than a page.
pub fn check(tree: &Tree) -> Vec<Finding> {
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
    fn other_pages_may_be_longer() {
        let text = "word ".repeat(701);
        assert_eq!(findings("docs/decisions/README.md", &text), 0);
        assert_eq!(findings("docs/guide/a.md", &text), 0);
    }
}
