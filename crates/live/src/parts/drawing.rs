//! The map of the program's memory, drawn when the supervisor asks for one.
//!
//! All managed ranges, one behind the other, are cut into cells of equally many pages. Of large
//! cells not all pages are looked at, but a fixed number spread over them: a map takes the same
//! time at most, however much memory there is.

use super::units::now;
use crate::ranges::Ranges;
use crate::shared::{CELLS_MAX, Cell, DrawnMap, Wanted};
use crate::sys::PAGE;

/// The most pages that are looked at for one map. Each takes some 100 ns.
const LOOKS_MAX: u64 = 8192;

/// Draws maps, each once.
#[derive(Default)]
pub struct Drawing {
    /// The number of the map that was drawn last.
    drawn: u32,
}

impl Drawing {
    /// Draws the map of what is `managed` that is wanted, if it is not drawn yet. `look_at` counts
    /// the page at an address in a cell.
    pub fn draw(
        &mut self,
        wanted: Wanted,
        managed: &Ranges,
        look_at: impl Fn(usize, &mut Cell),
    ) -> Option<DrawnMap> {
        if wanted.number == self.drawn {
            return None;
        }
        self.drawn = wanted.number;
        let pages = (managed.bytes() / PAGE) as u64;
        let cells = (wanted.cells as usize).clamp(1, CELLS_MAX) as u64;
        let cells = cells.min(pages);
        let mut map = DrawnMap {
            number: wanted.number,
            drawn_ns: now().0,
            pages,
            cells: Vec::with_capacity(CELLS_MAX),
        };
        let mut way = along(managed);
        for number in 0..cells {
            let (first, end) = (share(pages, number, cells), share(pages, number + 1, cells));
            let mut cell = Cell::default();
            for (look, place) in spread(first, end, LOOKS_MAX / cells).enumerate() {
                let address = way.address_of(place);
                if look == 0 {
                    cell.address = address as u64;
                }
                look_at(address, &mut cell);
            }
            map.cells.push(cell);
        }
        Some(map)
    }
}

/// Places from `first` to before `end`, in order: all, or `most` of them, one in each of as many
/// equal parts. The first is always there; where the others lie in their parts changes from part to
/// part, so that no pattern of the program's is met again and again.
fn spread(first: u64, end: u64, most: u64) -> impl Iterator<Item = u64> {
    let pages = end - first;
    let looks = pages.min(most);
    (0..looks).map(move |look| {
        let from = first + share(pages, look, looks);
        let to = first + share(pages, look + 1, looks);
        let draw = look.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        from + draw % (to - from)
    })
}

/// The number of `all` that come before the part with this number, of `parts`.
fn share(all: u64, number: u64, parts: u64) -> u64 {
    (u128::from(all) * u128::from(number) / u128::from(parts)) as u64
}

/// The managed pages by number, in the order of addresses, looked for from the lowest on.
struct Way<I> {
    ranges: I,
    /// The range met last, and the number of its first page.
    range: (usize, usize),
    first: u64,
}

fn along(ranges: &Ranges) -> Way<impl Iterator<Item = (usize, usize)>> {
    Way {
        ranges: ranges.iter(),
        range: (0, 0),
        first: 0,
    }
}

impl<I: Iterator<Item = (usize, usize)>> Way<I> {
    /// The address of a page. None may have a smaller number than the one asked for before.
    fn address_of(&mut self, page: u64) -> usize {
        loop {
            let (start, end) = self.range;
            let pages = ((end - start) / PAGE) as u64;
            if page < self.first + pages {
                return start + (page - self.first) as usize * PAGE;
            }
            self.first += pages;
            self.range = self.ranges.next().expect("the page is managed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_places_are_all_looked_at_and_many_here_and_there() {
        assert!(spread(5, 9, 4).eq(5..9));
        assert!(spread(5, 9, 100).eq(5..9));
        let places: Vec<u64> = spread(1 << 40, (1 << 40) + 3000, 32).collect();
        assert_eq!((places.len(), places[0]), (32, 1 << 40));
        assert!(places.is_sorted());
        assert!(*places.last().unwrap() < (1 << 40) + 3000);
        // Not the same of each part: a program that uses every other page is seen as it is.
        let odd = places.iter().filter(|place| *place % 2 == 1).count();
        assert!((8..=24).contains(&odd), "{odd}");
    }

    #[test]
    fn pages_are_found_in_their_ranges() {
        let mut ranges = Ranges::new();
        ranges.insert(0x10000, 0x12000);
        ranges.insert(0x40000, 0x41000);
        let mut way = along(&ranges);
        let addresses = [0, 1, 2].map(|page| way.address_of(page));
        assert_eq!(addresses, [0x10000, 0x11000, 0x40000]);
    }
}
