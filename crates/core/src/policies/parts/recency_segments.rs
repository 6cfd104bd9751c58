//! Segments: pages in the order of last use, cut into segments one behind the other.
//!
//! What crosses the cut between two segments keeps its place in the order. So a page that ages is
//! not moved from list to list: it learns the number of its next segment, and the cut moves by one.
//! That looks at one member and at no neighbour, and no crossing waits for another.
//!
//! Members are frames, for pages that are resident, and behind them other numbers, for pages that
//! are gone. A search for the oldest frame of a segment passes those that are gone, and the segment
//! remembers how far: they are not passed again.
//!
//! # Invariants
//! 1. The members of a segment stand behind those of the segments before it.
//! 2. A cut is the oldest member of all segments up to it: the ring, if they are empty.
//! 3. Of the members of a segment from its oldest to the one that was passed last, none is a frame.
//!    If none has been passed that is the ring.

use alloc::vec;
use alloc::vec::Vec;

use crate::id::FrameId;

/// In place of the segment of what is in no order.
const NONE: u8 = u8::MAX;
/// The most segments there can be.
const SEGMENTS_MAX: usize = 32;

/// A member, and its neighbours in the order of last use.
#[derive(Clone, Copy)]
struct Member {
    newer: u32,
    older: u32,
    segment: u8,
}

/// The end of a segment, and its contents.
#[derive(Clone, Copy)]
struct End {
    cut: u32,
    passed: u32,
    length: u32,
    frames: u32,
}

/// Pages in the order of last use, in segments: the newest are in the first.
pub(crate) struct Segments {
    /// By number. The last is no member but closes the ring: newer than the newest, and older than
    /// the oldest.
    members: Vec<Member>,
    ends: Vec<End>,
    frames_max: u32,
    /// The number of members that are frames.
    frames: u32,
}

impl Segments {
    /// Makes `segments` empty segments over the numbers `0..members_max`: those below `frames_max`
    /// are frames.
    pub fn new(segments: usize, frames_max: u32, members_max: u32) -> Segments {
        assert!(segments <= SEGMENTS_MAX);
        assert!(frames_max <= members_max && members_max < u32::MAX);
        let ring = Member {
            newer: members_max,
            older: members_max,
            segment: NONE,
        };
        let end = End {
            cut: members_max,
            passed: members_max,
            length: 0,
            frames: 0,
        };
        Segments {
            members: vec![ring; members_max as usize + 1],
            ends: vec![end; segments],
            frames_max,
            frames: 0,
        }
    }

    /// Adds `member`, which is none yet, as the newest. Each segment before `segment` hands its
    /// oldest on, so that `segment` alone grows. Says which member it got.
    pub fn push(&mut self, member: u32, segment: usize) -> u32 {
        self.insert(0, member, self.ring());
        self.ends[0].length -= 1;
        self.ends[0].frames -= u32::from(self.is_frame(member));
        self.ends[segment].length += 1;
        self.age(segment, member)
    }

    /// Takes `member` out, and says in which segment it was.
    pub fn remove(&mut self, member: u32) -> Option<usize> {
        let segment = self.segment_of(member)?;
        self.unlink(segment, member);
        let is_frame = self.is_frame(member);
        let end = &mut self.ends[segment];
        end.length -= 1;
        end.frames -= u32::from(is_frame);
        self.frames -= u32::from(is_frame);
        self.members[member as usize].segment = NONE;
        Some(segment)
    }

    /// Makes `frame`, which is a member, the newest. Each segment before its own hands its oldest
    /// on, so that none grows. Says which member its own got.
    #[inline(always)]
    pub fn renew(&mut self, frame: FrameId) -> u32 {
        let member = self.members[frame.index()];
        if member.segment > 0 {
            return self.renew_from(member.segment.into(), frame.0);
        }
        if member.newer != self.ring() {
            self.unlink(0, frame.0);
            // One stands before it there, so that no cut is at the ring.
            self.chain(frame.0, self.ring());
        }
        frame.0
    }

    /// As [`renew`](Self::renew), if the frame is behind the first segment.
    #[inline(never)]
    fn renew_from(&mut self, segment: usize, frame: u32) -> u32 {
        self.unlink(segment, frame);
        self.members[frame as usize].segment = 0;
        self.link(0, frame, self.ring());
        self.ends[segment].frames -= 1;
        self.age(segment, frame)
    }

    /// Makes the oldest member of `segment`, which is not empty, the newest of the next, and says
    /// which that is.
    pub fn pass_on(&mut self, segment: usize) -> u32 {
        self.ends[segment].length -= 1;
        self.ends[segment + 1].length += 1;
        let oldest = self.hand_on(segment, 0);
        self.ends[segment + 1].frames += u32::from(self.is_frame(oldest));
        oldest
    }

    /// Makes the newest member behind `segment` its oldest, and says which that is.
    pub fn take_back(&mut self, segment: usize) -> Option<u32> {
        let cut = self.ends[segment].cut;
        let member = self.some(self.members[cut as usize].older)?;
        self.remove(member);
        self.insert(segment, member, cut);
        Some(member)
    }

    /// Puts `member`, which is none yet, to the place of `old`, and takes `old` out.
    pub fn replace(&mut self, old: u32, member: u32) {
        let newer = self.members[old as usize].newer;
        let segment = self.remove(old).expect("a member is replaced");
        self.insert(segment, member, newer);
    }

    /// Looks at the next `steps` members to cross each cut, so that they are found sooner
    /// afterwards. Goes on at all cuts at once: a look waits for the one before it at its own cut,
    /// and for none at another.
    pub fn bring_near(&self, steps: usize) {
        let mut members = [self.ring(); SEGMENTS_MAX];
        let members = &mut members[..self.ends.len()];
        for (member, end) in members.iter_mut().zip(&self.ends) {
            *member = end.cut;
        }
        for _ in 0..steps {
            for member in &mut *members {
                *member = self.members[*member as usize].newer;
            }
        }
        core::hint::black_box(members);
    }

    /// The members that cross the cut of `segment` next, if none is used before.
    pub fn next_to_cross(&self, segment: usize) -> impl Iterator<Item = u32> + use<'_> {
        let newer = |&member: &u32| self.some(self.members[member as usize].newer);
        core::iter::successors(self.some(self.ends[segment].cut), newer)
    }

    /// The oldest frames of `segment`, and then those of the segments before it, as far as they are
    /// found with a look at `looks` members.
    pub fn next_frames(
        &self,
        segment: usize,
        looks: usize,
    ) -> impl Iterator<Item = FrameId> + use<'_> {
        let End { cut, passed, .. } = self.ends[segment];
        let newer = |&member: &u32| self.some(self.members[member as usize].newer);
        let first = match self.some(passed) {
            Some(passed) => newer(&passed),
            None => self.some(cut),
        };
        let members = core::iter::successors(first, newer).take(looks);
        members.filter(|&member| self.is_frame(member)).map(FrameId)
    }

    /// Finds the oldest frame of `segment` that `is_wanted` names.
    pub fn find_oldest(
        &mut self,
        segment: usize,
        mut is_wanted: impl FnMut(FrameId) -> bool,
    ) -> Option<FrameId> {
        if !self.has_frame(segment) {
            return None;
        }
        let mut at = self.pass_those_gone(segment);
        while usize::from(self.members[at as usize].segment) == segment {
            if self.is_frame(at) && is_wanted(FrameId(at)) {
                return Some(FrameId(at));
            }
            at = self.members[at as usize].newer;
        }
        None
    }

    /// Goes from the oldest of `segment`, or from whom was passed last, to the oldest frame, which
    /// there is.
    fn pass_those_gone(&mut self, segment: usize) -> u32 {
        let End {
            cut, mut passed, ..
        } = self.ends[segment];
        let mut at = match self.some(passed) {
            Some(passed) => self.members[passed as usize].newer,
            None => cut,
        };
        while !self.is_frame(at) {
            passed = at;
            at = self.members[at as usize].newer;
        }
        self.ends[segment].passed = passed;
        at
    }

    /// Returns true if a frame is in `segment`.
    pub fn has_frame(&self, segment: usize) -> bool {
        self.ends[segment].frames > 0
    }

    /// The segment `member` is in.
    pub fn segment_of(&self, member: u32) -> Option<usize> {
        let segment = self.members[member as usize].segment;
        (segment != NONE).then_some(segment.into())
    }

    /// Members have numbers below that.
    pub fn members_max(&self) -> u32 {
        self.ring()
    }

    /// The number of members in `segment`.
    pub fn length(&self, segment: usize) -> u32 {
        self.ends[segment].length
    }

    /// The number of members that are frames.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Panics if places, cuts and numbers contradict each other.
    pub fn check(&self) {
        let mut members = self.iter().peekable();
        let mut newer = self.ring();
        let (mut all, mut all_frames) = (0, 0);
        for (segment, end) in self.ends.iter().enumerate() {
            let (mut length, mut frames, mut frames_passed) = (0, 0, 0);
            let is_in = |&member: &u32| self.segment_of(member) == Some(segment);
            while let Some(member) = members.next_if(is_in) {
                let place = self.members[member as usize];
                assert_eq!(place.newer, newer, "{member} is linked one way only");
                newer = member;
                length += 1;
                frames += u32::from(self.is_frame(member));
                if member == end.passed {
                    frames_passed = frames;
                    assert!(!self.is_frame(member), "a frame was passed");
                }
            }
            assert_eq!(end.cut, newer, "{segment} is cut elsewhere");
            assert_eq!((end.length, end.frames), (length, frames), "{segment}");
            if let Some(passed) = self.some(end.passed) {
                assert_eq!(self.segment_of(passed), Some(segment));
                assert_eq!(frames_passed, frames, "a frame was passed");
            }
            all += length as usize;
            all_frames += frames;
        }
        assert!(members.next().is_none(), "members have no end");
        let numbers = 0..self.ring();
        let listed = numbers.filter(|&member| self.segment_of(member).is_some());
        assert_eq!(listed.count(), all, "a member has no place");
        assert_eq!(self.frames, all_frames, "frames are miscounted");
    }

    /// The members, from the newest.
    fn iter(&self) -> impl Iterator<Item = u32> + use<'_> {
        let older = |&at: &u32| self.some(self.members[at as usize].older);
        core::iter::successors(older(&self.ring()), older)
    }

    fn ring(&self) -> u32 {
        self.members.len() as u32 - 1
    }

    /// The member that a link leads to; `None` at the end of a list.
    fn some(&self, link: u32) -> Option<u32> {
        (link != self.ring()).then_some(link)
    }

    fn is_frame(&self, member: u32) -> bool {
        member < self.frames_max
    }

    /// Lets each segment before `segment` hand its oldest on, and says which `segment` got: of the
    /// first that is `newest`, which has come there and is not counted yet.
    #[inline]
    fn age(&mut self, segment: usize, newest: u32) -> u32 {
        let last = (0..segment).fold(newest, |came, before| {
            self.hand_on(before, u32::from(self.is_frame(came)))
        });
        self.ends[segment].frames += u32::from(self.is_frame(last));
        last
    }

    /// Moves the cut of `segment`, which is not empty, to before its oldest, and returns that one.
    /// As many as `frames` have come for it. Lengths stay.
    #[inline(always)]
    fn hand_on(&mut self, segment: usize, frames: u32) -> u32 {
        let ring = self.ring();
        let end = &mut self.ends[segment];
        let oldest = end.cut;
        let member = &mut self.members[oldest as usize];
        assert_eq!(usize::from(member.segment), segment, "{segment} is empty");
        member.segment += 1;
        end.cut = member.newer;
        end.passed = if end.passed == oldest {
            ring
        } else {
            end.passed
        };
        end.frames += frames;
        end.frames -= u32::from(oldest < self.frames_max);
        oldest
    }

    /// Makes `member` one of `segment`, behind `newer`, which is in that segment or before it.
    fn insert(&mut self, segment: usize, member: u32, newer: u32) {
        let of = core::mem::replace(&mut self.members[member as usize].segment, segment as u8);
        assert_eq!(of, NONE, "{member} is a member already");
        self.link(segment, member, newer);
        let (is_frame, ring) = (self.is_frame(member), self.ring());
        let end = &mut self.ends[segment];
        end.length += 1;
        if is_frame {
            self.frames += 1;
            end.frames += 1;
            // It may be older than those that were passed.
            end.passed = ring;
        }
    }

    /// Puts `member` of `segment` behind `newer`, which is in that segment or in one before it.
    #[inline]
    fn link(&mut self, segment: usize, member: u32, newer: u32) {
        self.chain(member, newer);
        self.move_cuts(segment, newer, member);
    }

    /// Puts `member` behind `newer`, and moves no cut.
    #[inline]
    fn chain(&mut self, member: u32, newer: u32) {
        let older = self.members[newer as usize].older;
        self.members[newer as usize].older = member;
        self.members[older as usize].newer = member;
        let place = &mut self.members[member as usize];
        (place.newer, place.older) = (newer, older);
    }

    /// Takes `member` of `segment` out of its place.
    #[inline]
    fn unlink(&mut self, segment: usize, member: u32) {
        let Member { newer, older, .. } = self.members[member as usize];
        self.members[newer as usize].older = older;
        self.members[older as usize].newer = newer;
        let ring = self.ring();
        let end = &mut self.ends[segment];
        if end.passed == member {
            end.passed = if end.cut == member { ring } else { older };
        }
        self.move_cuts(segment, member, newer);
    }

    /// Makes `to` the oldest where `from` was: of the segments up to `segment`, and of those with
    /// the empty ones behind it.
    #[inline]
    fn move_cuts(&mut self, segment: usize, from: u32, to: u32) {
        let ends = self.ends[segment..].iter_mut();
        for end in ends.take_while(|end| end.cut == from) {
            end.cut = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: usize = 4;
    const FRAMES: u32 = 6;
    const MEMBERS: u32 = 12;

    /// A list for each segment, the newest first: members move from list to list.
    struct Lists([Vec<u32>; SEGMENTS]);

    impl Lists {
        fn push(&mut self, member: u32, segment: usize) -> u32 {
            self.0[0].insert(0, member);
            (0..segment).fold(member, |_, before| self.pass_on(before))
        }

        fn remove(&mut self, member: u32) -> Option<usize> {
            let segment = (0..SEGMENTS).find(|&at| self.0[at].contains(&member))?;
            self.0[segment].retain(|&it| it != member);
            Some(segment)
        }

        fn pass_on(&mut self, segment: usize) -> u32 {
            let member = self.0[segment].pop().unwrap();
            self.0[segment + 1].insert(0, member);
            member
        }

        fn take_back(&mut self, segment: usize) -> Option<u32> {
            let behind = &mut self.0[segment + 1..];
            let member = behind.iter_mut().find(|list| !list.is_empty())?.remove(0);
            self.0[segment].push(member);
            Some(member)
        }

        fn replace(&mut self, old: u32, member: u32) {
            let mut members = self.0.iter_mut().flatten();
            *members.find(|it| **it == old).unwrap() = member;
        }

        fn next_frames(&self, segment: usize) -> impl Iterator<Item = FrameId> {
            let members = self.0[..=segment].iter().flatten().rev();
            members.filter(|&&it| it < FRAMES).map(|&it| FrameId(it))
        }

        fn find_oldest(&self, segment: usize, but: u32) -> Option<FrameId> {
            let mut oldest = self.0[segment].iter().rev();
            let found = oldest.find(|&&it| it < FRAMES && it != but);
            found.map(|&frame| FrameId(frame))
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
                let found = segments.find_oldest(segment, |FrameId(frame)| frame != other);
                assert_eq!(found, lists.find_oldest(segment, other));
                let next = segments.next_frames(segment, MEMBERS as usize);
                assert!(next.eq(lists.next_frames(segment)));
            }
            (6, _) if segments.length(segment) > 0 => {
                assert_eq!(segments.pass_on(segment), lists.pass_on(segment));
            }
            _ => {}
        }
    }

    #[test]
    fn members_stand_as_if_they_moved_from_list_to_list() {
        let mut segments = Segments::new(SEGMENTS, FRAMES, MEMBERS);
        let mut lists = Lists(Default::default());
        let mut random = 1_u64;
        for _ in 0..50_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            step(&mut segments, &mut lists, (random >> 40) as u32);
            assert!(segments.iter().eq(lists.0.concat()));
            segments.check();
        }
    }

    #[test]
    fn what_is_pushed_passes_segments_that_are_empty() {
        let mut segments = Segments::new(3, 2, 2);
        assert_eq!(segments.push(0, 2), 0);
        assert_eq!(segments.push(1, 1), 1);
        let of = [0, 1].map(|member| segments.segment_of(member));
        assert_eq!(of, [Some(2), Some(1)]);
        assert_eq!([0, 1, 2].map(|segment| segments.length(segment)), [0, 1, 1]);
        segments.check();
    }
}
