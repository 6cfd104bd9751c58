//! A canvas of braille dots: two across and four down in each character.

use super::ruler::ruler;
use super::screen::{Cell, Screen};
use crate::axis::Axis;
use crate::colours::Rgb;

/// Dots in the characters of a rectangle; each character has the colour of its last dot.
pub struct Canvas {
    columns: usize,
    lines: usize,
    dots: Vec<u8>,
    colours: Vec<Rgb>,
    letters: Vec<Option<char>>,
}

/// The bit of each dot in a braille character, by row and column.
const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
/// Room for numbers beside the canvas.
pub const MARGIN: usize = 10;

impl Canvas {
    /// An empty canvas.
    pub fn new(columns: usize, lines: usize) -> Canvas {
        Canvas {
            columns,
            lines,
            dots: vec![0; columns * lines],
            colours: vec![[0; 3]; columns * lines],
            letters: vec![None; columns * lines],
        }
    }

    /// Draws through `spots`, each from 0 to 1 to the right and upwards. What lies outside is
    /// left out.
    pub fn line(&mut self, spots: &[(f64, f64)], colour: Rgb) {
        let (width, height) = ((self.columns * 2 - 1) as f64, (self.lines * 4 - 1) as f64);
        let place = |spot: &(f64, f64)| (spot.0 * width, (1.0 - spot.1) * height);
        for pair in spots.windows(2) {
            let (from, to) = (place(&pair[0]), place(&pair[1]));
            let length = (to.0 - from.0).abs().max((to.1 - from.1).abs());
            let steps = length.ceil().clamp(1.0, 4096.0);
            for step in 0..=steps as usize {
                let part = step as f64 / steps;
                let x = from.0 + (to.0 - from.0) * part;
                let y = from.1 + (to.1 - from.1) * part;
                self.dot(x, y, colour);
            }
        }
        if let [spot] = spots {
            let (x, y) = place(spot);
            self.dot(x, y, colour);
        }
    }

    /// Puts a letter at a spot, over whatever is there.
    pub fn letter(&mut self, spot: (f64, f64), letter: char, colour: Rgb) {
        let x = (spot.0 * (self.columns - 1) as f64).round();
        let y = ((1.0 - spot.1) * (self.lines - 1) as f64).round();
        if let Some(at) = self.index(x, y, self.columns, self.lines) {
            self.letters[at] = Some(letter);
            self.colours[at] = colour;
        }
    }

    /// The canvas between its axes, line by line.
    pub fn framed(&self, across: &Axis, up: &Axis, screen: Screen) -> String {
        let mut numbers = vec![String::new(); self.lines];
        for tick in up.ticks(self.lines / 3) {
            let y = (1.0 - up.place(tick)) * (self.lines * 4 - 1) as f64 / 4.0;
            if (0.0..self.lines as f64).contains(&y) {
                numbers[y as usize] = up.label(tick);
            }
        }
        let mut text = String::new();
        for (line, number) in numbers.iter().enumerate() {
            let edge = if number.is_empty() { '│' } else { '┤' };
            text.push_str(&format!("{number:>width$} {edge}", width = MARGIN - 2));
            text.push_str(&self.render_line(line, screen));
            text.push('\n');
        }
        text.push_str(&ruler(across, self.columns, MARGIN));
        text
    }

    fn render_line(&self, line: usize, screen: Screen) -> String {
        let from = line * self.columns;
        screen.line((from..from + self.columns).map(|at| {
            let letter = match (self.letters[at], self.dots[at]) {
                (Some(letter), _) => letter,
                (None, 0) => ' ',
                (None, dots) => braille(dots),
            };
            Cell {
                letter,
                ink: Some(self.colours[at]),
                ground: None,
            }
        }))
    }

    fn dot(&mut self, x: f64, y: f64, colour: Rgb) {
        let (x, y) = (x.round(), y.round());
        let Some(dot) = self.index(x, y, self.columns * 2, self.lines * 4) else {
            return;
        };
        let (x, y) = (dot % (self.columns * 2), dot / (self.columns * 2));
        let at = y / 4 * self.columns + x / 2;
        self.dots[at] |= BITS[y % 4][x % 2];
        self.colours[at] = colour;
    }

    fn index(&self, x: f64, y: f64, width: usize, height: usize) -> Option<usize> {
        let is_inside = (0.0..width as f64).contains(&x) && (0.0..height as f64).contains(&y);
        is_inside.then_some(y as usize * width + x as usize)
    }
}

fn braille(dots: u8) -> char {
    char::from_u32(0x2800 + u32::from(dots)).expect("the block of braille has 256 characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_stands_in_its_corner() {
        let mut canvas = Canvas::new(2, 1);
        canvas.line(&[(0.0, 1.0)], [0; 3]);
        canvas.line(&[(1.0, 0.0)], [0; 3]);
        assert_eq!(canvas.render_line(0, Screen::new(80, false)), "⠁⢀");
    }

    #[test]
    fn what_lies_outside_is_left_out() {
        let mut canvas = Canvas::new(3, 2);
        canvas.line(&[(-1.0, 0.5), (-0.5, 2.0)], [0; 3]);
        canvas.letter((5.0, 5.0), 'X', [0; 3]);
        let screen = Screen::new(80, false);
        assert_eq!(canvas.render_line(0, screen), "");
    }
}
