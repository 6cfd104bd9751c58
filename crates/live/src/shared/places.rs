//! The places of counters in the record of a process.

use tidemark_core::counters::{Counter, Scope};

/// The number of words that counters take: one for each that a live process counts, and one for
/// all others together, which stays zero.
pub(super) const COUNTERS: usize = 1 + count_live(Counter::ALL.len());

/// The word of each counter.
const PLACES: [u8; Counter::ALL.len()] = places();

/// The word of a counter, behind the first of all.
pub(super) fn place_of(counter: Counter) -> usize {
    PLACES[counter as usize].into()
}

const fn places() -> [u8; Counter::ALL.len()] {
    let mut places = [0; Counter::ALL.len()];
    let mut at = 0;
    while at < places.len() {
        places[at] = match Counter::ALL[at].scope() {
            Scope::World => COUNTERS - 1,
            Scope::Core | Scope::Engine => count_live(at),
        } as u8;
        at += 1;
    }
    places
}

/// The number of counters, among the first `counters`, that a live process counts.
const fn count_live(counters: usize) -> usize {
    let (mut found, mut at) = (0, 0);
    while at < counters {
        found += !matches!(Counter::ALL[at].scope(), Scope::World) as usize;
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_live_counters_share_a_place() {
        let mut places: Vec<usize> = Counter::ALL
            .into_iter()
            .filter(|counter| counter.scope() != Scope::World)
            .map(place_of)
            .collect();
        places.dedup();
        assert!(places.into_iter().eq(0..COUNTERS - 1));
        assert_eq!(place_of(Counter::SwapIns), COUNTERS - 1);
    }
}
