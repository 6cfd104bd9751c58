//! Clocks: how far the programs of each space have come in their own time.
//!
//! A space's clock never goes back: when another gets the number of one that has ended, its time
//! goes on from where the other's stood, so that the stamps on shared pages that stayed keep
//! their meaning.

use alloc::vec::Vec;

use crate::id::SpaceId;

#[derive(Clone, Copy, Default)]
struct Clock {
    /// The time of the space's clock when it was last set.
    told: u64,
    /// The time to be added to it.
    offset: u64,
}

/// A clock a space.
#[derive(Default)]
pub(crate) struct Clocks {
    table: Vec<Clock>,
}

impl Clocks {
    /// Sets the clock of `space`. A smaller time than before is the start of another program, and
    /// continues from it.
    #[inline]
    pub fn set(&mut self, space: SpaceId, ticks: u64) {
        let place = space.0 as usize;
        if place >= self.table.len() {
            self.table.resize(place + 1, Clock::default());
        }
        let clock = &mut self.table[place];
        if ticks < clock.told {
            clock.offset += clock.told;
        }
        clock.told = ticks;
    }

    /// The time of `space`, in ticks.
    #[inline]
    pub fn now(&self, space: SpaceId) -> u64 {
        let clock = self.table.get(space.0 as usize);
        clock.map_or(0, |clock| clock.told + clock.offset)
    }

    /// The time of `space`, and how far it is ahead of what was told.
    #[inline]
    pub fn now_and_offset(&self, space: SpaceId) -> (u64, u64) {
        let clock = self.table.get(space.0 as usize);
        clock.map_or((0, 0), |clock| (clock.told + clock.offset, clock.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_never_goes_back_when_another_program_begins() {
        let mut clocks = Clocks::default();
        let (one, two) = (SpaceId(1), SpaceId(2));
        assert_eq!(clocks.now(two), 0);
        clocks.set(one, 500);
        clocks.set(one, 20);
        assert_eq!(clocks.now(one), 520);
        clocks.set(one, 30);
        assert_eq!((clocks.now(one), clocks.now(two)), (530, 0));
    }
}
