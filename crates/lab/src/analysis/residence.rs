//! The number of resident pages, when: what the variable-space policies tell, and who listens.
//!
//! A policy walks the reference string and tells a [`Watcher`] of each stretch of ticks with one
//! number of resident pages, in order and without gaps, and of each fault. [`Totals`] adds up,
//! [`Timeline`] keeps a picture of bounded size.

use super::reference_string::ReferenceString;

/// A watcher of the resident set.
pub trait Watcher {
    /// From tick `from` to before tick `to`, `size` pages were resident.
    fn stayed(&mut self, from: u64, to: u64, size: u64);

    /// Learns that a page has been faulted in, with which `size` pages are resident.
    fn faulted(&mut self, size: u64, cause: Arrival);
}

/// The reason for which a page came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The page was never used before.
    First,
    /// The page was resident before, and had left.
    Return,
}

/// The sums of a run of a variable-space policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Virtual time, in ticks.
    pub duration: u64,
    /// Pages that came for the first time.
    pub first: u64,
    /// Pages that came back.
    pub returns: u64,
    /// Resident pages times ticks.
    pub page_time: u128,
    /// The square of resident pages times ticks.
    pub square_time: u128,
    /// The most pages resident at once.
    pub pages_max: u64,
    /// Resident pages summed over first arrivals, each counting itself.
    pub pages_at_first: u128,
    /// Resident pages summed over returns, each counting itself.
    pub pages_at_returns: u128,
}

impl Totals {
    /// Faults, first uses included.
    pub fn faults(&self) -> u64 {
        self.first + self.returns
    }

    /// Resident pages, averaged over virtual time.
    pub fn pages_mean(&self) -> f64 {
        mean(self.page_time, self.duration)
    }

    /// The variance of the number of resident pages over virtual time, in pages squared.
    pub fn pages_variance(&self) -> f64 {
        // `n * sum of squares - square of the sum` needs no subtraction of rounded numbers.
        let duration = u128::from(self.duration);
        let squares = duration.checked_mul(self.square_time);
        match (squares, self.page_time.checked_mul(self.page_time)) {
            (Some(squares), Some(square)) if duration > 0 => {
                (squares - square) as f64 / (duration as f64 * duration as f64)
            }
            _ => (mean(self.square_time, self.duration) - self.pages_mean().powi(2)).max(0.0),
        }
    }
}

impl Watcher for Totals {
    #[inline]
    fn stayed(&mut self, from: u64, to: u64, size: u64) {
        let ticks = u128::from(to - from);
        self.duration += to - from;
        self.page_time += u128::from(size) * ticks;
        self.square_time += u128::from(size * size) * ticks;
        if ticks > 0 {
            self.pages_max = self.pages_max.max(size);
        }
    }

    #[inline]
    fn faulted(&mut self, size: u64, cause: Arrival) {
        match cause {
            Arrival::First => {
                self.first += 1;
                self.pages_at_first += u128::from(size);
            }
            Arrival::Return => {
                self.returns += 1;
                self.pages_at_returns += u128::from(size);
            }
        }
    }
}

/// The number of resident pages over time, in pieces of equal length.
///
/// A piece keeps its least, mean and most pages, so that a peak shorter than a piece still shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// The beginning of the first piece, in ticks.
    pub start: u64,
    /// The length of a piece, in ticks; the last may be cut short by the end.
    pub piece_ticks: u64,
    /// The pieces, in order.
    pub pieces: Vec<Piece>,
    /// The sums over the whole.
    pub totals: Totals,
}

/// A piece of a [`Timeline`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Its length, in ticks.
    pub ticks: u64,
    /// The fewest pages resident in it.
    pub pages_min: u64,
    /// The most pages resident in it.
    pub pages_max: u64,
    /// Resident pages times ticks.
    pub page_time: u128,
    /// The square of resident pages times ticks.
    pub square_time: u128,
    /// Pages that came in it, first uses included.
    pub faults: u64,
}

impl Piece {
    /// Resident pages, averaged over the piece.
    pub fn pages_mean(&self) -> f64 {
        mean(self.page_time, self.ticks)
    }
}

impl Timeline {
    /// An empty timeline for `string`, in at most `pieces` pieces, at least one.
    pub fn new(string: &ReferenceString<'_>, pieces: usize) -> Timeline {
        Timeline::spanning(string.start(), string.end(), pieces)
    }

    /// An empty timeline from tick `start` to before tick `end`, as [`new`](Self::new).
    pub fn spanning(start: u64, end: u64, pieces: usize) -> Timeline {
        let duration = end - start;
        let piece_ticks = duration.div_ceil(pieces.max(1) as u64).max(1);
        let count = duration.div_ceil(piece_ticks) as usize;
        Timeline {
            start,
            piece_ticks,
            pieces: vec![Piece::default(); count],
            totals: Totals::default(),
        }
    }
}

impl Watcher for Timeline {
    #[inline]
    fn stayed(&mut self, mut from: u64, to: u64, size: u64) {
        self.totals.stayed(from, to, size);
        while from < to {
            let place = (from - self.start) / self.piece_ticks;
            let until = to.min(self.start + (place + 1) * self.piece_ticks);
            let piece = &mut self.pieces[place as usize];
            piece.pages_min = match piece.ticks {
                0 => size,
                _ => piece.pages_min.min(size),
            };
            piece.pages_max = piece.pages_max.max(size);
            let ticks = u128::from(until - from);
            piece.page_time += u128::from(size) * ticks;
            piece.square_time += u128::from(size * size) * ticks;
            piece.ticks += until - from;
            from = until;
        }
    }

    #[inline]
    fn faulted(&mut self, size: u64, cause: Arrival) {
        self.totals.faulted(size, cause);
        let ticks = self.totals.duration;
        // The tick of the fault is the one that the next stretch begins with.
        let place = (ticks / self.piece_ticks) as usize;
        if let Some(piece) = self.pieces.get_mut(place) {
            piece.faults += 1;
        }
    }
}

/// `sum` divided by `count`; 0 for nothing.
pub(super) fn mean(sum: u128, count: u64) -> f64 {
    match count {
        0 => 0.0,
        _ => sum as f64 / count as f64,
    }
}
