//! Drawings for a terminal: curves and working sets in braille, maps in half blocks.
//!
//! Every drawing is a pure function of a record and a [`Screen`]. Without colours, letters on lines
//! distinguish them, and the density of blocks shows heat.

pub(crate) mod canvas;
mod compare;
mod curves;
mod experiment;
mod map;
mod needs;
mod replay;
mod sizes;

pub use compare::compare;
pub use curves::curves;
pub(crate) use curves::wrapped;
pub use experiment::experiments;
pub use map::map;
pub use needs::needs;
pub use replay::replay;
pub use sizes::sizes;

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
    fn line(&self, cells: impl IntoIterator<Item = Cell>) -> String {
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

/// A sentence that leads, with a blank line below it; nothing for none.
pub fn sentence(text: &str, screen: Screen) -> String {
    match text.is_empty() {
        true => String::new(),
        false => wrapped(text, screen.columns) + "\n",
    }
}

/// A character and its colours.
#[derive(Clone, Copy, Debug)]
struct Cell {
    letter: char,
    ink: Option<Rgb>,
    ground: Option<Rgb>,
}

/// The escape sequence for a colour: kind 38 is of letters, 48 is behind them.
fn escape(kind: u8, colour: Option<Rgb>) -> String {
    colour.map_or_else(String::new, |[r, g, b]| {
        format!("\x1b[{kind};2;{r};{g};{b}m")
    })
}

/// A line of an axis: `labels` at their columns, as many as don't touch.
fn labels_line(labels: &[(usize, String)], columns: usize) -> String {
    let mut line: Vec<char> = vec![' '; columns];
    let mut free_from = 0;
    for (at, label) in labels {
        let length = label.chars().count();
        let from = at
            .saturating_sub(length / 2)
            .min(columns.saturating_sub(length));
        if from < free_from || length > columns {
            continue;
        }
        for (place, letter) in line[from..].iter_mut().zip(label.chars()) {
            *place = letter;
        }
        free_from = from + length + 2;
    }
    line.into_iter().collect::<String>().trim_end().to_owned()
}
