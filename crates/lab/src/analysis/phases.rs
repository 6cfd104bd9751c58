//! Phases: what a program lives through, at several levels of size.
//!
//! A level takes the localities of one size class, from just above a power of two pages to the next
//! ([`localities`](super::localities)), and of those only the outermost: they are apart in time. In
//! real programs a stray use of a foreign page, a signal handler or a rare path, ends a locality
//! that goes on right after. So neighbours are joined to one phase if the time between them is
//! short and nearly the same pages return. What is then long enough is a *phase*; between phases
//! lie *transitions*.
//!
//! # Exactly
//! - A locality counts from `piece_ticks_min` on, a phase from `phase_ticks_min` on.
//! - The *core* of a phase is what all its pieces have in common.
//! - A piece joins the phase before if the gap is at most `gap_thousandths` of the longer of the
//!   two, and the core with the piece still has at least `core_thousandths` of the pages of the
//!   larger.
//!
//! Sources: Madison and Batson 1976 for localities; the picture of phases and transitions is that
//! of P. J. Denning and K. C. Kahn, *A Study of Program Locality and Lifetime Functions*, SOSP
//! 1975. Joining is our own: without it phases of real programs fall to pieces.

use super::localities::{Locality, visit_localities};
use super::reference_string::ReferenceString;

/// The rule by which a phase counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseOptions {
    /// The largest locality looked for, in pages.
    pub pages_max: u32,
    /// The shortest locality that counts, in ticks.
    pub piece_ticks_min: u64,
    /// The shortest phase, in ticks.
    pub phase_ticks_min: u64,
    /// The longest gap within a phase, in thousandths of the longer neighbour.
    pub gap_thousandths: u32,
    /// The smallest core of a phase, in thousandths of its largest piece.
    pub core_thousandths: u32,
}

impl PhaseOptions {
    /// Phases of at least a thousandth of `string`, from pieces of a tenth of that, of at most
    /// 4,096 pages; gaps of up to a tenth, cores of at least four fifths.
    pub fn for_string(string: &ReferenceString<'_>) -> PhaseOptions {
        let phase_ticks_min = (string.duration() / 1000).max(1);
        PhaseOptions {
            pages_max: 4096,
            piece_ticks_min: (phase_ticks_min / 10).max(1),
            phase_ticks_min,
            gap_thousandths: 100,
            core_thousandths: 800,
        }
    }
}

/// Phases of one size class, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The smallest locality of the class, in pages.
    pub pages_from: u32,
    /// The largest locality of the class, in pages.
    pub pages_to: u32,
    /// The phases, apart in time.
    pub phases: Vec<Phase>,
}

/// A time in which a program keeps to one set of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The beginning, in ticks.
    pub start: u64,
    /// The end, in ticks.
    pub end: u64,
    /// The size of its locality: of its largest piece, in pages.
    pub pages: u32,
    /// The number of pages that all of its pieces have in common.
    pub core_pages: u32,
    /// The number of pages of its first piece that the phase before did not have in its last; all
    /// of them, in the first phase.
    pub entered_pages: u32,
    /// From how many localities it was joined.
    pub pieces: u32,
}

impl Phase {
    /// The time it holds, in ticks.
    pub fn holding_ticks(&self) -> u64 {
        self.end - self.start
    }
}

impl Level {
    /// The time spent in phases, in ticks; the rest is transitions.
    pub fn covered_ticks(&self) -> u64 {
        self.phases.iter().map(Phase::holding_ticks).sum()
    }

    /// Pages of the locality, averaged over the time spent in phases.
    pub fn pages_mean(&self) -> f64 {
        let weighted = |phase: &Phase| u128::from(phase.pages) * u128::from(phase.holding_ticks());
        let page_time = self.phases.iter().map(weighted).sum();
        super::residence::mean(page_time, self.covered_ticks())
    }
}

/// The phases of `string` at each level that has some, smallest localities first.
pub fn find_phases(string: ReferenceString<'_>, options: &PhaseOptions) -> Vec<Level> {
    let mut classes: Vec<Vec<Piece>> = Vec::new();
    visit_localities(
        string,
        options.pages_max,
        options.piece_ticks_min,
        |locality| {
            let class = class_of(locality.pages.len());
            if classes.len() <= class {
                classes.resize_with(class + 1, Vec::new);
            }
            take_piece(&mut classes[class], locality);
        },
    );
    let levels = (0u32..).zip(&classes).map(|(class, pieces)| Level {
        pages_from: (1 << class) / 2 + 1,
        pages_to: 1 << class,
        phases: join(pieces, options),
    });
    levels.filter(|level| !level.phases.is_empty()).collect()
}

/// A locality with its pages in rising order.
struct Piece {
    start: u64,
    end: u64,
    pages: Vec<u32>,
}

/// The size class of a locality by its pages: 1, 2, 3 to 4, 5 to 8 …
fn class_of(pages: usize) -> usize {
    pages.next_power_of_two().trailing_zeros() as usize
}

/// Adds a locality in place of those inside it, which have come before.
fn take_piece(pieces: &mut Vec<Piece>, locality: Locality<'_>) {
    while pieces
        .pop_if(|piece| piece.start >= locality.start)
        .is_some()
    {}
    let mut pages = locality.pages.to_vec();
    pages.sort_unstable();
    pieces.push(Piece {
        start: locality.start,
        end: locality.end,
        pages,
    });
}

/// A phase that may still grow.
struct Growing<'a> {
    phase: Phase,
    core: Vec<u32>,
    last: &'a Piece,
}

impl<'a> Growing<'a> {
    fn new(piece: &'a Piece) -> Growing<'a> {
        let pages = piece.pages.len() as u32;
        Growing {
            phase: Phase {
                start: piece.start,
                end: piece.end,
                pages,
                core_pages: pages,
                entered_pages: 0,
                pieces: 1,
            },
            core: piece.pages.clone(),
            last: piece,
        }
    }

    /// Takes `piece` in if it belongs here.
    fn joins(&mut self, piece: &'a Piece, options: &PhaseOptions) -> bool {
        let gap = u128::from(piece.start - self.phase.end);
        let longer = self.phase.holding_ticks().max(piece.end - piece.start);
        if gap * 1000 > u128::from(longer) * u128::from(options.gap_thousandths) {
            return false;
        }
        let pages = self.phase.pages.max(piece.pages.len() as u32);
        let core = common(&self.core, &piece.pages);
        if (core.len() as u64) * 1000 < u64::from(pages) * u64::from(options.core_thousandths) {
            return false;
        }
        self.phase = Phase {
            end: piece.end,
            pages,
            core_pages: core.len() as u32,
            pieces: self.phase.pieces + 1,
            ..self.phase
        };
        self.core = core;
        self.last = piece;
        true
    }
}

/// Joins neighbours and keeps what is long enough.
fn join(pieces: &[Piece], options: &PhaseOptions) -> Vec<Phase> {
    let mut grown: Vec<(Growing<'_>, &Piece)> = Vec::new();
    for piece in pieces {
        let before = grown.last_mut();
        if !before.is_some_and(|(growing, _)| growing.joins(piece, options)) {
            grown.push((Growing::new(piece), piece));
        }
    }
    grown.retain(|(growing, _)| growing.phase.holding_ticks() >= options.phase_ticks_min);
    let mut before: &[u32] = &[];
    let mut phases = Vec::with_capacity(grown.len());
    for (growing, first) in &grown {
        let stayed = common(before, &first.pages).len();
        phases.push(Phase {
            entered_pages: (first.pages.len() - stayed) as u32,
            ..growing.phase
        });
        before = &growing.last.pages;
    }
    phases
}

/// The pages in both of two rising lists.
fn common(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut rest = right.iter().peekable();
    let mut both = Vec::new();
    for &page in left {
        while rest.next_if(|&&other| other < page).is_some() {}
        if rest.next_if(|&&other| other == page).is_some() {
            both.push(page);
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases_of(pages: &[u32]) -> Vec<Level> {
        let count = pages.iter().max().map_or(0, |page| page + 1);
        let string = ReferenceString::new(pages, count);
        find_phases(string, &PhaseOptions::for_string(&string))
    }

    #[test]
    fn nothing_has_no_phases() {
        assert_eq!(phases_of(&[]), []);
    }

    #[test]
    fn two_loops_are_two_phases() {
        let pages: Vec<u32> = (0..20_000).map(|i| i % 10 + i / 10_000 * 10).collect();
        let levels = phases_of(&pages);
        assert_eq!(levels.len(), 1);
        assert_eq!((levels[0].pages_from, levels[0].pages_to), (9, 16));
        let phases = &levels[0].phases;
        assert_eq!(phases.len(), 2);
        for (phase, begun) in phases.iter().zip([0, 10_000]) {
            assert_eq!(
                (phase.pages, phase.entered_pages, phase.pieces),
                (10, 10, 1)
            );
            assert!(phase.start - begun < 10);
            assert!(phase.holding_ticks() > 9_980);
        }
        assert_eq!((phases[0].end, phases[1].start), (10_000, 10_009));
    }

    #[test]
    fn a_stray_use_does_not_end_a_phase() {
        // A loop over ten pages; each thousandth use goes to a page of its own.
        let pages: Vec<u32> = (0..20_000)
            .map(|i| {
                if i % 1000 == 999 {
                    10 + i / 1000
                } else {
                    i % 10
                }
            })
            .collect();
        let levels = phases_of(&pages);
        let level = levels.iter().find(|level| level.pages_to == 16).unwrap();
        assert_eq!(level.phases.len(), 1, "{level:?}");
        assert_eq!(level.phases[0].core_pages, 10);
        assert!(level.covered_ticks() > 19_000);
    }

    #[test]
    fn a_changed_half_ends_a_phase() {
        let pages: Vec<u32> = (0..20_000)
            .map(|i| {
                if i % 2 == 0 {
                    i / 2 % 5
                } else {
                    5 + i / 10_000 * 5 + i / 2 % 5
                }
            })
            .collect();
        let levels = phases_of(&pages);
        let level = levels.iter().find(|level| level.pages_to == 16).unwrap();
        assert_eq!(level.phases.len(), 2, "{level:?}");
        assert_eq!(level.phases[1].entered_pages, 5);
    }

    #[test]
    fn phases_are_apart_and_long_enough() {
        let mut state = 1u64;
        let pages: Vec<u32> = (0..50_000u64)
            .map(|place| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                ((state >> 33) % 7 + place / 3_000 * 5) as u32
            })
            .collect();
        let string = ReferenceString::new(&pages, 100);
        let options = PhaseOptions::for_string(&string);
        let levels = find_phases(string, &options);
        assert!(!levels.is_empty());
        for level in &levels {
            assert!(level.covered_ticks() <= string.duration());
            assert!(level.phases.is_sorted_by(|one, next| one.end <= next.start));
            for phase in &level.phases {
                assert!(phase.holding_ticks() >= options.phase_ticks_min);
                assert!((level.pages_from..=level.pages_to).contains(&phase.pages));
                assert!(phase.core_pages * 5 >= phase.pages * 4);
            }
        }
    }
}
