//! Looking ahead: a reference string says which entries of a table come next.
//!
//! A table with an entry for each of a million pages does not fit into the nearest caches, and a
//! walk along a string waits for nearly every entry. In a loop that does much else between them,
//! few of these waits overlap. In a loop that does nothing else, dozens do, and then the walk finds
//! its entries near.

use std::hint::black_box;

/// The number of references ahead looked at together.
pub(super) const AHEAD: usize = 64;

/// Tables of fewer bytes than this are near anyway.
const FAR_BYTES_MIN: usize = 1 << 18;

/// Returns true if `table` is too large to be in the nearest cache.
pub(super) fn is_far<T>(table: &[T]) -> bool {
    size_of_val(table) >= FAR_BYTES_MIN
}

/// Brings the entries of `pages` into the nearest cache, if `table`, with an entry for each page,
/// is too large to be there. Pages beyond its end have none.
#[inline(always)]
pub(super) fn bring_pages_near<T: Copy + PartialEq>(table: &[T], pages: &[u32]) {
    if !is_far(table) {
        return;
    }
    let first = table.first();
    let is_first = |page: &&u32| table.get(**page as usize) == first;
    black_box(pages.iter().filter(is_first).count());
}

#[cfg(test)]
mod tests {
    use tidemark_model::traces;

    use super::super::intervals::Intervals;
    use super::super::reference_string::ReferenceString;
    use super::super::vmin::run_vmin;
    use super::super::working_set::{run_working_set, working_set_point};
    use super::*;

    #[test]
    fn pages_beyond_a_large_table_have_no_entry() {
        let table = vec![0_u64; FAR_BYTES_MIN];
        bring_pages_near(&table, &[0, table.len() as u32, u32::MAX]);
        bring_pages_near(&table[..0], &[0, u32::MAX]);
    }

    #[test]
    fn measures_do_not_depend_on_how_large_their_tables_are() {
        let near: Vec<u32> = traces::zipf(5, 300, 20_001)
            .iter()
            .map(|&page| page as u32)
            .collect();
        let far: Vec<u32> = near.iter().map(|page| page * 1000).collect();
        let (near, far) = (
            ReferenceString::new(&near, 300),
            ReferenceString::new(&far, 300_000),
        );
        for window in [1, 10, 1000, 30_000] {
            let expected = run_working_set(near, window);
            assert_eq!(run_working_set(far, window), expected);
            assert_eq!(run_vmin(far, window), run_vmin(near, window));
            let point = working_set_point(&Intervals::measure(far), window);
            assert_eq!(point.page_time, expected.page_time);
        }
    }
}
