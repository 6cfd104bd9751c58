//! Text above and below drawings, broken into lines that fit the screen.

use tidemark_results::analysis::TraceFacts;
use tidemark_results::text;

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
    text::broken("", line, 2, columns)
}
