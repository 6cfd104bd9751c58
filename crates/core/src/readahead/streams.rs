//! Clusters: how many pages move with the one that is wanted, and which.
//!
//! A few *streams* are followed at a time: a stream is a stretch of an object that one reader has
//! been walking through, upwards or downwards. A fault at its edge makes its window grow, up to
//! the largest cluster; a fault that belongs to no stream starts one of its own.
//!
//! # Invariants
//! 1. A stream's window is at least 1.
//! 2. `low <= reader < high`: the stretch covered so far has the page where the reader was seen.

use alloc::vec::Vec;

use crate::id::ObjectId;
use crate::memory::address_space::Advice;

/// The number of readers that can be followed at the same time.
const STREAMS: usize = 16;
/// The window from which on a stream is believed: faults belong to it that lie as far past its edge
/// as its window is wide. Before that they must lie at the edge, or any two touches of a small
/// region would look like a walk through it; but resident pages cause no faults, and this many of
/// them in a row are taken as walked over.
const BELIEVED: u32 = 8;
const WALKED_OVER: u64 = 8;
/// A stream that is believed is followed until readers have been seen this many times since its own
/// was: between two clusters of a walk there may be that many lone faults.
const FOLLOWED: u64 = 256;
/// The number of streams that are followed and that lone faults leave alone.
const FOLLOWED_MOST: usize = STREAMS * 3 / 4;
/// A reader was seen lately if readers have been seen no more times than this since.
const LATELY: u64 = STREAMS as u64;
/// The factor by which the window grows with each fault at the edge.
const GROWTH: u32 = 2;

/// The direction of a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Heading {
    Forward,
    Backward,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) object: ObjectId,
    pub(crate) heading: Heading,
    /// The stretch covered so far: pages with `low <= index < high`.
    pub(crate) low: u64,
    pub(crate) high: u64,
    /// The number of pages the next read may take.
    pub(crate) window: u32,
    /// The page at which the reader was last seen.
    pub(crate) reader: u64,
    /// The page at which it was seen before.
    before: u64,
    /// The number of pages the reader has walked through.
    pub(crate) walked: u64,
    used: u64,
}

impl Stream {
    /// Widens the covered stretch to include `first..end`.
    pub(crate) fn cover(&mut self, first: u64, end: u64) {
        self.low = self.low.min(first);
        self.high = self.high.max(end);
    }

    fn continues_at(
        &self,
        object: ObjectId,
        index: u64,
        is_resident: &impl Fn(u64) -> bool,
    ) -> Option<Heading> {
        if self.object != object {
            return None;
        }
        let (heading, mut between) = if index >= self.high {
            (Heading::Forward, self.high..index)
        } else if index < self.low {
            (Heading::Backward, index + 1..self.low)
        } else {
            return None;
        };
        let is_young = self.window == 1;
        if !is_young && heading != self.heading {
            return None;
        }
        let length = between.end - between.start;
        let is_near = self.window >= BELIEVED && length < u64::from(self.window);
        let is_walked_over = length <= WALKED_OVER && between.all(is_resident);
        (is_near || is_walked_over).then_some(heading)
    }

    /// Notes that the reader has come to `index`.
    fn meet_reader(&mut self, index: u64) {
        self.walked += self.reader.abs_diff(index);
        self.before = self.reader;
        self.reader = index;
    }

    /// The pages from the first to before the second, that the stretch has from the reader on.
    fn in_front(&self) -> (u64, u64) {
        match self.heading {
            Heading::Forward => (self.reader, self.high),
            Heading::Backward => (self.low, self.reader + 1),
        }
    }

    /// The pages from the first to before the second, that the reader has just gone past.
    pub(crate) fn passed(&self) -> (u64, u64) {
        match self.heading {
            Heading::Forward => (self.before.min(self.reader), self.reader),
            Heading::Backward => (self.reader + 1, self.before.max(self.reader + 1)),
        }
    }
}

/// The readers being followed.
pub(crate) struct Streams {
    table: Vec<Stream>,
    clock: u64,
}

impl Streams {
    pub(crate) fn new() -> Streams {
        Streams {
            table: Vec::with_capacity(STREAMS),
            clock: 0,
        }
    }

    /// Learns of a fault that nothing in memory could serve, and names the stream it belongs to,
    /// whose window may grow up to `window_max`. With [`Advice::Random`] there is none.
    /// `is_resident` tells which pages of the object are in memory.
    pub(crate) fn follow(
        &mut self,
        object: ObjectId,
        index: u64,
        advice: Advice,
        window_max: u32,
        is_resident: impl Fn(u64) -> bool,
    ) -> Option<usize> {
        if advice == Advice::Random {
            return None;
        }
        self.clock += 1;
        let continued = self.table.iter().enumerate().find_map(|(number, stream)| {
            stream
                .continues_at(object, index, &is_resident)
                .map(|heading| (number, heading))
        });
        let number = match continued {
            Some((number, heading)) => {
                let stream = &mut self.table[number];
                stream.heading = heading;
                stream.window = stream.window.saturating_mul(GROWTH).min(window_max);
                // What lay between was resident. A stretch is kept short, so that it tells where
                // the reader is rather than where it began.
                (stream.low, stream.high) = (index, index + 1);
                number
            }
            None => self.begin(object, index),
        };
        let stream = &mut self.table[number];
        match advice {
            Advice::Sequential => (stream.heading, stream.window) = (Heading::Forward, window_max),
            Advice::Reverse => (stream.heading, stream.window) = (Heading::Backward, window_max),
            Advice::Normal | Advice::Random => {}
        }
        stream.meet_reader(index);
        stream.used = self.clock;
        Some(number)
    }

    /// The stream that covers a page, if one does.
    pub(crate) fn find(&self, object: ObjectId, index: u64) -> Option<usize> {
        let covers = |s: &Stream| s.object == object && (s.low..s.high).contains(&index);
        self.table.iter().position(covers)
    }

    /// Returns true if a page was read for a reader that was seen lately and is in front of it.
    pub(crate) fn is_awaited(&self, object: ObjectId, index: u64) -> bool {
        self.lately().any(|stream| {
            let (first, end) = stream.in_front();
            stream.object == object && (first..end).contains(&index)
        })
    }

    /// The number of pages in front of the readers seen lately, in the stretches read for them.
    pub(crate) fn awaited(&self) -> u64 {
        let in_front = self.lately().map(Stream::in_front);
        in_front.map(|(first, end)| end - first).sum()
    }

    /// The number of readers seen lately whose windows have as many pages as `window`.
    pub(crate) fn readers(&self, window: u32) -> u32 {
        let wide = self.lately().filter(|stream| stream.window >= window);
        wide.count() as u32
    }

    /// The streams whose readers were seen lately.
    fn lately(&self) -> impl Iterator<Item = &Stream> {
        let is_lately = |stream: &&Stream| self.clock - stream.used <= LATELY;
        self.table.iter().filter(is_lately)
    }

    /// Forgets the readers of an object that is gone.
    pub(crate) fn forget(&mut self, object: ObjectId) {
        self.table.retain(|stream| stream.object != object);
    }

    /// Notes that the reader of a stream has come to `index`, which the stream covers. What is
    /// behind it is covered no longer: a second reader there has a stream of its own.
    pub(crate) fn advance(&mut self, number: usize, index: u64) {
        self.clock += 1;
        let stream = &mut self.table[number];
        stream.meet_reader(index);
        (stream.low, stream.high) = stream.in_front();
        stream.used = self.clock;
    }

    pub(crate) fn get(&self, number: usize) -> &Stream {
        &self.table[number]
    }

    pub(crate) fn get_mut(&mut self, number: usize) -> &mut Stream {
        &mut self.table[number]
    }

    /// The stream of a full table that is given up for a new one: the one whose reader was seen
    /// longest ago, and no walk that is followed unless those have most of the table. Lone faults,
    /// which begin streams that nothing belongs to, leave such walks alone.
    fn find_replaceable(&self) -> usize {
        let is_followed = |number: usize| {
            let stream = &self.table[number];
            stream.window >= BELIEVED && self.clock - stream.used <= FOLLOWED
        };
        let followed = (0..STREAMS).filter(|&number| is_followed(number)).count();
        let candidates = (0..STREAMS).filter(|&n| is_followed(n) == (followed > FOLLOWED_MOST));
        let oldest = candidates.min_by_key(|&number| self.table[number].used);
        oldest.expect("there are streams of the kind")
    }

    fn begin(&mut self, object: ObjectId, index: u64) -> usize {
        let stream = Stream {
            object,
            heading: Heading::Forward,
            low: index,
            high: index + 1,
            window: 1,
            reader: index,
            before: index,
            walked: 0,
            used: self.clock,
        };
        if self.table.len() < STREAMS {
            self.table.push(stream);
            return self.table.len() - 1;
        }
        let replaced = self.find_replaceable();
        self.table[replaced] = stream;
        replaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: ObjectId = ObjectId(0);

    fn follow(streams: &mut Streams, index: u64, advice: Advice, most: u32) -> Option<usize> {
        streams.follow(OBJECT, index, advice, most, |_| false)
    }

    #[test]
    fn a_window_grows_while_faults_come_at_the_edge_and_not_otherwise() {
        let mut streams = Streams::new();
        let number = follow(&mut streams, 10, Advice::Normal, 64).unwrap();
        assert_eq!(streams.get(number).window, 1);
        for (index, window) in [
            (11, 2),
            (13, 4),
            (17, 8),
            (25, 16),
            (41, 32),
            (73, 64),
            (137, 64),
        ] {
            assert_eq!(
                follow(&mut streams, index, Advice::Normal, 64),
                Some(number)
            );
            assert_eq!(streams.get(number).window, window);
            streams
                .get_mut(number)
                .cover(index, index + u64::from(window));
        }
        assert_eq!(streams.get(number).walked, 127);
        let other = follow(&mut streams, 10_000, Advice::Normal, 64).unwrap();
        assert_ne!(other, number);
        assert_eq!(streams.get(other).window, 1);
    }

    #[test]
    fn a_reader_that_walks_down_is_followed_down() {
        let mut streams = Streams::new();
        let number = follow(&mut streams, 100, Advice::Normal, 64).unwrap();
        assert_eq!(follow(&mut streams, 99, Advice::Normal, 64), Some(number));
        assert_eq!(streams.get(number).heading, Heading::Backward);
        assert_eq!(streams.get(number).window, 2);
    }

    #[test]
    fn touches_near_each_other_are_no_walk_until_one_is_believed() {
        let mut streams = Streams::new();
        let number = follow(&mut streams, 100, Advice::Normal, 64).unwrap();
        assert_ne!(follow(&mut streams, 103, Advice::Normal, 64), Some(number));
        for index in [101, 102, 103, 104, 105] {
            follow(&mut streams, index, Advice::Normal, 8);
        }
        let believed = follow(&mut streams, 110, Advice::Normal, 64).unwrap();
        assert!(streams.get(believed).window > 8);
    }

    #[test]
    fn a_walk_over_pages_of_which_every_fourth_is_resident_is_followed() {
        let mut streams = Streams::new();
        let is_resident = |index: u64| index.is_multiple_of(4);
        let mut begun = 0;
        let mut next = 1003;
        for _ in 0..20 {
            let stream = streams.follow(OBJECT, next, Advice::Normal, 64, is_resident);
            let stream = streams.get_mut(stream.unwrap());
            begun += u32::from(stream.window == 1);
            // What is read in one go ends at the next resident page.
            let first = (next - next % 4 + 1).max((next + 1).saturating_sub(stream.window.into()));
            stream.cover(first, next + 1);
            next = if is_resident(first - 1) {
                first - 2
            } else {
                first - 1
            };
        }
        assert_eq!(begun, 1);
        assert_eq!(streams.get(0).window, 64);
    }

    #[test]
    fn advice_opens_the_window_at_once_and_random_closes_it() {
        let mut streams = Streams::new();
        let number = follow(&mut streams, 5, Advice::Sequential, 32).unwrap();
        assert_eq!(streams.get(number).window, 32);
        assert_eq!(follow(&mut streams, 6, Advice::Random, 32), None);
    }

    #[test]
    fn a_stretch_begins_where_its_reader_is() {
        let mut streams = Streams::new();
        let number = follow(&mut streams, 100, Advice::Sequential, 64).unwrap();
        streams.get_mut(number).cover(100, 292);
        assert_eq!((streams.awaited(), streams.readers(64)), (192, 1));
        streams.advance(number, 164);
        assert!(!streams.is_awaited(OBJECT, 163) && streams.find(OBJECT, 163).is_none());
        assert!(streams.is_awaited(OBJECT, 164) && streams.is_awaited(OBJECT, 291));
        assert!(!streams.is_awaited(OBJECT, 292) && !streams.is_awaited(ObjectId(1), 200));
        let back = follow(&mut streams, 5000, Advice::Reverse, 32).unwrap();
        streams.get_mut(back).cover(4900, 5001);
        streams.advance(back, 4950);
        assert!(streams.is_awaited(OBJECT, 4950) && streams.is_awaited(OBJECT, 4900));
        assert!(!streams.is_awaited(OBJECT, 4951) && streams.find(OBJECT, 5000).is_none());
        assert_eq!((streams.awaited(), streams.readers(64)), (128 + 51, 1));
    }

    #[test]
    fn nothing_is_awaited_by_a_reader_that_was_not_seen_for_long() {
        let mut streams = Streams::new();
        let gone = follow(&mut streams, 100, Advice::Sequential, 64).unwrap();
        streams.get_mut(gone).cover(100, 164);
        let number = follow(&mut streams, 9000, Advice::Sequential, 64).unwrap();
        streams.get_mut(number).cover(9000, 9100);
        for step in 1..=LATELY {
            assert!(streams.is_awaited(OBJECT, 120), "{step}");
            streams.advance(number, 9000 + step);
        }
        assert!(!streams.is_awaited(OBJECT, 120));
        assert_eq!((streams.awaited(), streams.readers(64)), (100 - LATELY, 1));
    }

    /// Begins a walk at each of `places`, with lone faults in between.
    fn walk_among_lone_faults(streams: &mut Streams, places: impl Iterator<Item = u64>, lone: u64) {
        for first in places {
            let number = follow(streams, first, Advice::Sequential, 64).unwrap();
            streams.get_mut(number).cover(first, first + 64);
            for lone in 0..lone {
                follow(streams, 1_000_000 + 100 * lone, Advice::Normal, 64);
            }
        }
    }

    #[test]
    fn lone_faults_leave_walks_alone_and_walks_each_other_when_there_are_many() {
        let mut streams = Streams::new();
        let walks = FOLLOWED_MOST as u64 + 1;
        walk_among_lone_faults(&mut streams, (0..walks).map(|walk| 10_000 * walk), 18);
        let is_followed = |&walk: &u64| streams.find(OBJECT, 10_000 * walk).is_some();
        let followed: Vec<u64> = (0..walks).filter(is_followed).collect();
        assert_eq!(followed, (1..walks).collect::<Vec<u64>>());
        assert!(streams.find(OBJECT, 1_000_000 + 100 * 17).is_some());
    }

    #[test]
    fn walks_that_have_ended_make_room_for_others() {
        let mut streams = Streams::new();
        walk_among_lone_faults(&mut streams, (0..12).map(|walk| 10_000 * walk), 1);
        // Twelve readers begin to walk one page at a time, in turn.
        for page in 0..64 {
            for walk in 0..12 {
                let index = 5_000_000 + 10_000 * walk + page;
                follow(&mut streams, index, Advice::Normal, 64);
            }
        }
        let found = (0..12).map(|walk| streams.find(OBJECT, 5_000_000 + 10_000 * walk + 63));
        let windows: Vec<u32> = found.map(|n| streams.get(n.unwrap()).window).collect();
        assert!(
            windows.iter().all(|&window| window >= BELIEVED),
            "{windows:?}"
        );
    }
}
