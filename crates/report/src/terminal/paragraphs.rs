//! Text above and below drawings, broken into lines that fit the screen.

use tidemark_results::analysis::TraceFacts;

use super::screen::Screen;
use crate::words;

/// The title of the trace, in two lines that fit.
pub fn headline(trace: &TraceFacts, screen: Screen) -> String {
    let title = words::shortened(&words::title(trace), screen.columns);
    format!("{title}\n{}", wrapped(&words::facts(trace), screen.columns))
}

/// A sentence that leads, with a blank line below it; nothing for none.
pub fn sentence(text: &str, screen: Screen) -> String {
    match text.is_empty() {
        true => String::new(),
        false => wrapped(text, screen.columns) + "\n",
    }
}

/// `line` broken between words, so that no part is wider than `columns`.
pub fn wrapped(line: &str, columns: usize) -> String {
    let mut text = String::new();
    let mut length = 0;
    for word in line.split(' ') {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > columns {
            text.push_str("\n  ");
            length = 2;
        } else if length > 0 {
            text.push(' ');
            length += 1;
        }
        text.push_str(word);
        length += word_length;
    }
    text.push('\n');
    text
}
