//! Segments: pages in the order of last use, cut into segments one behind the other.
//!
//! What crosses the cut between two segments keeps its place in the order. So a page that ages is
//! not moved from list to list: it learns the number of its next segment, and the cut moves by one.
//! That looks at one member and at no neighbour, and no crossing waits for another.
//!
//! Members are frames, for pages that are resident, and behind them other numbers, for pages that
//! are gone. Frames stand in a second order, too, that of their turns to leave. It goes through the
//! segments as the first does, but within one a frame may have been passed over. What is known of a
//! member stands together, because it is needed together.
//!
//! # Invariants
//! 1. In either order, the members of a segment stand behind those of the segments before it.
//! 2. A cut is the oldest member of all segments up to it: the ring, if they are empty.
//! 3. A member that is a frame is in both orders, any other in that of use alone.

use alloc::vec;
use alloc::vec::Vec;

use crate::id::FrameId;

/// In place of the segment of what is in no order.
const NONE: u8 = u8::MAX;
/// The most segments there can be.
const SEGMENTS_MAX: usize = 32;

/// The order of last use.
const USE: usize = 0;
/// The order of turns to leave.
const TURN: usize = 1;
const ORDERS: usize = 2;

/// A member's neighbours in one order.
#[derive(Clone, Copy)]
struct Place {
    newer: u32,
    older: u32,
}

#[derive(Clone, Copy)]
struct Member {
    /// By order.
    places: [Place; ORDERS],
    segment: u8,
}

/// Where a segment ends, and what is in it.
#[derive(Clone, Copy)]
struct End {
    /// By order.
    cuts: [u32; ORDERS],
    length: u32,
}

/// Pages in the order of last use, in segments: the newest are in the first.
pub(super) struct Segments {
    /// By number. The last is no member but closes the rings: newer than the newest, and older than
    /// the oldest.
    members: Vec<Member>,
    ends: Vec<End>,
    frames_max: u32,
    /// How many members are frames.
    frames: u32,
}

impl Segments {
    /// Makes `segments` empty segments over the numbers `0..members_max`: those below `frames_max`
    /// are frames.
    pub fn new(segments: usize, frames_max: u32, members_max: u32) -> Segments {
        assert!(segments <= SEGMENTS_MAX);
        assert!(frames_max <= members_max && members_max < u32::MAX);
        let place = Place {
            newer: members_max,
            older: members_max,
        };
        let ring = Member {
            places: [place; ORDERS],
            segment: NONE,
        };
        let end = End {
            cuts: [members_max; ORDERS],
            length: 0,
        };
        Segments {
            members: vec![ring; members_max as usize + 1],
            ends: vec![end; segments],
            frames_max,
            frames: 0,
        }
    }

    /// Adds `member`, which is none yet, as the newest in its orders. Each segment before `segment`
    /// hands its oldest on, so that `segment` alone grows. Says which member it got.
    pub fn push(&mut self, member: u32, segment: usize) -> u32 {
        self.insert(0, member, [self.ring(); ORDERS]);
        self.ends[segment].length += 1;
        self.age(segment).unwrap_or(member)
    }

    /// Takes `member` out, and says in which segment it was.
    pub fn remove(&mut self, member: u32) -> Option<usize> {
        let segment = self.segment_of(member)?;
        self.ends[segment].length -= 1;
        self.unlink(USE, segment, member);
        if self.is_frame(member) {
            self.frames -= 1;
            self.unlink(TURN, segment, member);
        }
        self.members[member as usize].segment = NONE;
        Some(segment)
    }

    /// Makes `frame`, which is a member, the newest in both orders. Each segment before its own
    /// hands its oldest on, so that none grows. Says which member its own got.
    #[inline]
    pub fn renew(&mut self, frame: FrameId) -> u32 {
        let segment = core::mem::replace(&mut self.members[frame.index()].segment, 0);
        for order in [USE, TURN] {
            if segment > 0 || self.members[frame.index()].places[order].newer != self.ring() {
                self.unlink(order, segment.into(), frame.0);
                self.link(order, 0, frame.0, self.ring());
            }
        }
        self.age(segment.into()).unwrap_or(frame.0)
    }

    /// Makes the oldest member of `segment`, which is not empty, the newest of the next, and says
    /// which that is.
    pub fn pass_on(&mut self, segment: usize) -> u32 {
        self.ends[segment].length -= 1;
        self.ends[segment + 1].length += 1;
        self.hand_on(segment)
    }

    /// Makes the newest member behind `segment` its oldest, and says which that is.
    pub fn take_back(&mut self, segment: usize) -> Option<u32> {
        let cuts = self.ends[segment].cuts;
        let member = self.some(self.members[cuts[USE] as usize].places[USE].older)?;
        self.remove(member);
        self.insert(segment, member, cuts);
        self.ends[segment].length += 1;
        Some(member)
    }

    /// Puts `member`, which is none yet, to the place of `old` in the order of use, and takes `old`
    /// out. A frame is the last of its segment to have its turn.
    pub fn replace(&mut self, old: u32, member: u32) {
        let newer = self.members[old as usize].places[USE].newer;
        let segment = self.remove(old).expect("a member is replaced");
        self.insert(segment, member, [newer, self.cut_before(TURN, segment)]);
        self.ends[segment].length += 1;
    }

    /// Makes the frame of `segment` whose turn it is the last there to have its turn again.
    pub fn pass_over(&mut self, segment: usize) {
        let Some(frame) = self.next_turn(segment) else {
            return;
        };
        self.unlink(TURN, segment, frame.0);
        self.link(TURN, segment, frame.0, self.cut_before(TURN, segment));
    }

    /// Looks at the next `steps` members to cross each cut, so that they are found sooner
    /// afterwards. Goes on at all cuts at once: a look waits for the one before it at its own cut,
    /// and for none at another.
    pub fn bring_near(&self, steps: usize) {
        let mut members = [self.ring(); SEGMENTS_MAX];
        let members = &mut members[..self.ends.len()];
        for (member, end) in members.iter_mut().zip(&self.ends) {
            *member = end.cuts[USE];
        }
        for _ in 0..steps {
            for member in &mut *members {
                *member = self.members[*member as usize].places[USE].newer;
            }
        }
        core::hint::black_box(members);
    }

    /// The members that cross the cut of `segment` next, if none is used before.
    pub fn next_to_cross(&self, segment: usize) -> impl Iterator<Item = u32> + use<'_> {
        let newer = |&member: &u32| self.some(self.members[member as usize].places[USE].newer);
        core::iter::successors(self.some(self.ends[segment].cuts[USE]), newer)
    }

    /// The segment `member` is in.
    pub fn segment_of(&self, member: u32) -> Option<usize> {
        let segment = self.members[member as usize].segment;
        (segment != NONE).then_some(segment.into())
    }

    /// The frame of `segment` whose turn it is.
    pub fn next_turn(&self, segment: usize) -> Option<FrameId> {
        let cut = self.ends[segment].cuts[TURN];
        (cut != self.cut_before(TURN, segment)).then_some(FrameId(cut))
    }

    /// Members have numbers below that.
    pub fn members_max(&self) -> u32 {
        self.ring()
    }

    /// How many members are in `segment`.
    pub fn length(&self, segment: usize) -> u32 {
        self.ends[segment].length
    }

    /// How many members are frames.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Panics if places, cuts and numbers contradict each other.
    pub fn check(&self) {
        let numbers = 0..self.ring();
        let members = numbers.filter(|&member| self.segment_of(member).is_some());
        let (frames, gone): (Vec<u32>, Vec<u32>) = members.partition(|&it| self.is_frame(it));
        assert_eq!(self.frames as usize, frames.len(), "frames are miscounted");
        let (in_use, in_turn) = (self.check_order(USE), self.check_order(TURN));
        assert_eq!(
            in_turn.iter().sum::<u32>(),
            self.frames,
            "a frame has no turn"
        );
        let all = frames.len() + gone.len();
        assert_eq!(
            in_use.iter().sum::<u32>() as usize,
            all,
            "a member has no place"
        );
        let lengths = self.ends.iter().map(|end| end.length);
        assert!(in_use.into_iter().eq(lengths), "members are miscounted");
    }

    /// Panics if `order` contradicts itself. Says how many members of each segment are in it.
    fn check_order(&self, order: usize) -> Vec<u32> {
        let mut members = self.iter(order).peekable();
        let mut newer = self.ring();
        let mut check_segment = |(segment, end): (usize, &End)| {
            let mut length = 0;
            let is_in = |&member: &u32| self.segment_of(member) == Some(segment);
            while let Some(member) = members.next_if(is_in) {
                let place = self.members[member as usize].places[order];
                assert_eq!(place.newer, newer, "{member} is linked one way only");
                newer = member;
                length += 1;
            }
            assert_eq!(end.cuts[order], newer, "{segment} is cut elsewhere");
            length
        };
        self.ends
            .iter()
            .enumerate()
            .map(&mut check_segment)
            .collect()
    }

    /// The members in `order`, from the newest.
    fn iter(&self, order: usize) -> impl Iterator<Item = u32> + use<'_> {
        let older = move |&at: &u32| self.some(self.members[at as usize].places[order].older);
        core::iter::successors(older(&self.ring()), older)
    }

    fn ring(&self) -> u32 {
        self.members.len() as u32 - 1
    }

    /// The member at the end of a link.
    fn some(&self, link: u32) -> Option<u32> {
        (link != self.ring()).then_some(link)
    }

    fn is_frame(&self, member: u32) -> bool {
        member < self.frames_max
    }

    /// What the newest of `segment` is older than.
    fn cut_before(&self, order: usize, segment: usize) -> u32 {
        match segment {
            0 => self.ring(),
            _ => self.ends[segment - 1].cuts[order],
        }
    }

    /// Lets each segment before `segment` hand its oldest on, and says which `segment` got.
    #[inline]
    fn age(&mut self, segment: usize) -> Option<u32> {
        let mut last = None;
        for before in 0..segment {
            last = Some(self.hand_on(before));
        }
        last
    }

    /// Moves the cuts of `segment`, which is not empty, to before its oldest, and says which that
    /// is. Nobody is counted.
    #[inline]
    fn hand_on(&mut self, segment: usize) -> u32 {
        let cuts = &mut self.ends[segment].cuts;
        let oldest = cuts[USE];
        let member = &mut self.members[oldest as usize];
        assert_eq!(usize::from(member.segment), segment, "{segment} is empty");
        member.segment += 1;
        cuts[USE] = member.places[USE].newer;
        if cuts[TURN] == oldest {
            cuts[TURN] = member.places[TURN].newer;
        } else if self.is_frame(oldest) {
            // Others there have been passed over.
            self.unlink(TURN, segment, oldest);
            self.link(TURN, segment + 1, oldest, self.ends[segment].cuts[TURN]);
        }
        oldest
    }

    /// Makes `member` one of `segment`, behind `newer` in its orders. It is not counted there.
    fn insert(&mut self, segment: usize, member: u32, newer: [u32; ORDERS]) {
        let of = core::mem::replace(&mut self.members[member as usize].segment, segment as u8);
        assert_eq!(of, NONE, "{member} is a member already");
        self.link(USE, segment, member, newer[USE]);
        if self.is_frame(member) {
            self.frames += 1;
            self.link(TURN, segment, member, newer[TURN]);
        }
    }

    /// Puts `member` of `segment` behind `newer`, which is in that segment or in one before it.
    #[inline]
    fn link(&mut self, order: usize, segment: usize, member: u32, newer: u32) {
        let older = self.members[newer as usize].places[order].older;
        self.members[newer as usize].places[order].older = member;
        self.members[older as usize].places[order].newer = member;
        self.members[member as usize].places[order] = Place { newer, older };
        self.move_cuts(order, segment, newer, member);
    }

    /// Takes `member` of `segment` out of its place.
    #[inline]
    fn unlink(&mut self, order: usize, segment: usize, member: u32) {
        let Place { newer, older } = self.members[member as usize].places[order];
        self.members[newer as usize].places[order].older = older;
        self.members[older as usize].places[order].newer = newer;
        self.move_cuts(order, segment, member, newer);
    }

    /// Makes `to` the oldest where `from` was: of the segments up to `segment`, and of those with
    /// the empty ones behind it.
    #[inline]
    fn move_cuts(&mut self, order: usize, segment: usize, from: u32, to: u32) {
        let ends = self.ends[segment..].iter_mut();
        for end in ends.take_while(|end| end.cuts[order] == from) {
            end.cuts[order] = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: usize = 4;
    const FRAMES: u32 = 6;
    const MEMBERS: u32 = 12;

    /// A list for each segment and order, the newest first: members move from list to list.
    struct Lists([[Vec<u32>; SEGMENTS]; ORDERS]);

    impl Lists {
        fn push(&mut self, member: u32, segment: usize) -> u32 {
            self.insert([0, 0], 0, member);
            (0..segment).fold(member, |_, before| self.pass_on(before))
        }

        fn remove(&mut self, member: u32) -> Option<usize> {
            let segment = (0..SEGMENTS).find(|&at| self.0[USE][at].contains(&member))?;
            for order in &mut self.0 {
                order[segment].retain(|&it| it != member);
            }
            Some(segment)
        }

        fn pass_on(&mut self, segment: usize) -> u32 {
            let member = *self.0[USE][segment].last().unwrap();
            self.remove(member);
            self.insert([0, 0], segment + 1, member);
            member
        }

        fn take_back(&mut self, segment: usize) -> Option<u32> {
            let behind = &self.0[USE][segment + 1..];
            let member = *behind.iter().find_map(|list| list.first())?;
            self.remove(member);
            let at = [USE, TURN].map(|order| self.0[order][segment].len());
            self.insert(at, segment, member);
            Some(member)
        }

        fn replace(&mut self, old: u32, member: u32) {
            let mut lists = self.0[USE].iter();
            let at = lists.find_map(|list| list.iter().position(|&it| it == old));
            let segment = self.remove(old).unwrap();
            self.insert([at.unwrap(), 0], segment, member);
        }

        fn insert(&mut self, at: [usize; ORDERS], segment: usize, member: u32) {
            self.0[USE][segment].insert(at[USE], member);
            if member < FRAMES {
                self.0[TURN][segment].insert(at[TURN], member);
            }
        }
    }

    /// Does to both what `choice` says, and looks for a difference.
    fn step(segments: &mut Segments, lists: &mut Lists, choice: u32) {
        let (what, member) = (choice % 7, choice / 7 % MEMBERS);
        let (segment, other) = (
            choice as usize / 84 % (SEGMENTS - 1),
            choice / 252 % MEMBERS,
        );
        let of = segments.segment_of(member);
        match (what, of) {
            (0 | 1, None) => {
                let expected = lists.push(member, segment);
                assert_eq!(segments.push(member, segment), expected);
            }
            (0 | 1, Some(of)) if member < FRAMES => {
                lists.remove(member);
                let expected = lists.push(member, of);
                assert_eq!(segments.renew(FrameId(member)), expected);
            }
            (2, _) => assert_eq!(segments.remove(member), lists.remove(member)),
            (3, _) => assert_eq!(segments.take_back(segment), lists.take_back(segment)),
            (4, Some(_)) if segments.segment_of(other).is_none() => {
                segments.replace(member, other);
                lists.replace(member, other);
            }
            (5, _) => {
                segments.pass_over(segment);
                let turns = &mut lists.0[TURN][segment];
                let one = turns.len().min(1);
                turns.rotate_right(one);
            }
            (6, _) if segments.length(segment) > 0 => {
                assert_eq!(segments.pass_on(segment), lists.pass_on(segment));
            }
            _ => {}
        }
    }

    fn compare(segments: &Segments, lists: &Lists) {
        for order in [USE, TURN] {
            let expected = lists.0[order].concat();
            assert!(segments.iter(order).eq(expected));
        }
        for (segment, turns) in lists.0[TURN].iter().enumerate() {
            let expected = turns.last().map(|&frame| FrameId(frame));
            assert_eq!(segments.next_turn(segment), expected);
        }
    }

    #[test]
    fn members_stand_as_if_they_moved_from_list_to_list() {
        let mut segments = Segments::new(SEGMENTS, FRAMES, MEMBERS);
        let mut lists = Lists(Default::default());
        let mut random = 1_u64;
        for _ in 0..20_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            step(&mut segments, &mut lists, (random >> 40) as u32);
            compare(&segments, &lists);
            segments.check();
        }
    }

    #[test]
    fn what_is_pushed_passes_segments_that_are_empty() {
        let mut segments = Segments::new(3, 2, 2);
        assert_eq!(segments.push(0, 2), 0);
        assert_eq!(segments.push(1, 1), 1);
        assert_eq!(
            [0, 1].map(|member| segments.segment_of(member)),
            [Some(2), Some(1)]
        );
        assert_eq!([0, 1, 2].map(|segment| segments.length(segment)), [0, 1, 1]);
        segments.check();
    }

    #[test]
    fn a_frame_that_is_passed_over_keeps_its_place_in_the_order_of_use() {
        let mut segments = Segments::new(2, 3, 3);
        (0..3).for_each(|frame| _ = segments.push(frame, 0));
        segments.pass_over(0);
        assert_eq!(segments.next_turn(0), Some(FrameId(1)));
        assert!(segments.next_to_cross(0).eq([0, 1, 2]));
        // It ages as before, and its turn comes with its segment.
        assert_eq!(segments.pass_on(0), 0);
        assert_eq!(segments.next_turn(1), Some(FrameId(0)));
        segments.check();
    }
}
