//! The screen of a terminal: its size, its colours, and lines of characters in colours.

use crate::colours::Rgb;

/// The screen that is drawn on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Characters in a line.
    pub columns: usize,
    /// Lines a drawing may take, without legend and axes.
    pub lines: usize,
    /// True if colours may be used: a terminal, and `NO_COLOR` not set.
    pub has_colours: bool,
}

/// A character and its colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub letter: char,
    pub ink: Option<Rgb>,
    pub ground: Option<Rgb>,
}

impl Screen {
    /// A screen of `columns` characters, within what a drawing can make use of.
    pub fn new(columns: usize, has_colours: bool) -> Screen {
        Screen {
            columns: columns.clamp(40, 160),
            lines: 18,
            has_colours,
        }
    }

    /// `text` in a colour, where there are colours.
    pub(crate) fn paint(&self, text: &str, colour: Rgb) -> String {
        self.line(text.chars().map(|letter| Cell {
            letter,
            ink: Some(colour),
            ground: None,
        }))
    }

    /// Characters in their colours. A colour is said once for all that follow in it, and blanks at
    /// the end are left out.
    pub(super) fn line(&self, cells: impl IntoIterator<Item = Cell>) -> String {
        let mut text = String::new();
        let mut colours = (None, None);
        let mut blanks = 0;
        for cell in cells {
            if cell.letter == ' ' && cell.ground.is_none() {
                blanks += 1;
                continue;
            }
            let wanted = (cell.ink, cell.ground);
            let is_changed = self.has_colours && wanted != colours;
            // What lies behind a letter would show through blanks too.
            if is_changed && colours.1.is_some() || blanks > 0 && colours.1.is_some() {
                text.push_str("\x1b[0m");
                colours = (None, None);
            }
            text.extend(std::iter::repeat_n(' ', std::mem::take(&mut blanks)));
            if self.has_colours && wanted != colours {
                text.push_str(&escape(38, cell.ink));
                text.push_str(&escape(48, cell.ground));
                colours = wanted;
            }
            text.push(cell.letter);
        }
        if colours != (None, None) {
            text.push_str("\x1b[0m");
        }
        text
    }
}

/// The escape sequence for a colour: kind 38 is of letters, 48 is behind them.
fn escape(kind: u8, colour: Option<Rgb>) -> String {
    colour.map_or_else(String::new, |[r, g, b]| {
        format!("\x1b[{kind};2;{r};{g};{b}m")
    })
}
