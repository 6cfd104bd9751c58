//! Queues: doubly linked lists of small numbers over one table of links.
//!
//! Policies keep frames in order, and a frame has at most one place in that order. So one
//! table with an entry a frame serves all lists of a policy, and nothing is allocated after it is
//! made. Adding, removing and moving take the same time whatever the length.
//!
//! # Invariants
//! 1. A member is on exactly one list, and each list is linked the same in both directions.
//! 2. The lengths of the lists add up to the number of members.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::IndexMut;

use crate::collections::column::Column;

const NONE: u32 = u32::MAX;

/// The type of the numbers that name members of lists. `u8` is enough for most; a list a space
/// needs `u32`.
pub trait ListNumber: Copy + PartialEq {
    /// Stands for no list.
    const NONE: Self;

    /// The number as an index.
    fn index(self) -> usize;
}

impl ListNumber for u8 {
    const NONE: u8 = u8::MAX;

    fn index(self) -> usize {
        self.into()
    }
}

impl ListNumber for u32 {
    const NONE: u32 = u32::MAX;

    fn index(self) -> usize {
        self as usize
    }
}

#[derive(Clone, Copy)]
struct Link<List> {
    next: u32,
    previous: u32,
    list: List,
}

#[derive(Clone, Copy)]
struct Ends {
    front: u32,
    back: u32,
    length: u32,
}

const EMPTY: Ends = Ends {
    front: NONE,
    back: NONE,
    length: 0,
};

/// Several lists over the numbers `0..members_max`, each number on at most one of them.
pub struct Queues<List = u8> {
    links: Column<Link<List>>,
    ends: Vec<Ends>,
}

impl<List: ListNumber> Queues<List> {
    /// Makes `lists` empty lists.
    pub fn new(lists: List, members_max: u32) -> Queues<List> {
        Queues::in_two(lists, members_max, 0)
    }

    /// Makes `lists` empty lists of two kinds of members: frames, and others whose numbers follow
    /// those of the frames.
    pub fn in_two(lists: List, frames_max: u32, others_max: u32) -> Queues<List> {
        let members_max = frames_max.checked_add(others_max);
        let members_max = members_max.expect("members are far fewer than their numbers allow");
        assert!(lists != List::NONE && members_max < NONE);
        let link = Link {
            next: NONE,
            previous: NONE,
            list: List::NONE,
        };
        Queues {
            links: Column::in_two(link, frames_max as usize, members_max as usize),
            ends: vec![EMPTY; lists.index()],
        }
    }

    /// Makes sure that `list` is there, with all before it: one that is new is empty.
    pub fn add_list(&mut self, list: List) {
        assert!(list != List::NONE);
        if list.index() >= self.ends.len() {
            self.ends.resize(list.index() + 1, EMPTY);
        }
    }

    /// Adds `member`, which is on no list, behind all others of `list`.
    #[inline]
    pub fn push_back(&mut self, list: List, member: u32) {
        match self.order(member) {
            Some(mut order) => order.insert_before(list, NONE, member),
            None => apart(|| self.order_apart().insert_before(list, NONE, member)),
        }
    }

    /// Adds `member`, which is on no list, in front of all others of `list`.
    pub fn push_front(&mut self, list: List, member: u32) {
        let front = self.ends[list.index()].front;
        match self.order(member) {
            Some(mut order) => order.insert_before(list, front, member),
            None => apart(|| self.order_apart().insert_before(list, front, member)),
        }
    }

    /// Takes `member` off whatever list it is on, and says which one that was.
    #[inline]
    pub fn remove(&mut self, member: u32) -> Option<List> {
        match self.order(member) {
            Some(mut order) => order.remove(member),
            None => apart(|| self.order_apart().remove(member)),
        }
    }

    /// Takes `member` off its list, if it is on one, and adds it behind all others of `list`.
    #[inline]
    pub fn move_to_back(&mut self, list: List, member: u32) {
        match self.order(member) {
            Some(mut order) => order.move_to_back(list, member),
            None => apart(|| self.order_apart().move_to_back(list, member)),
        }
    }

    /// Rotates a list so that `member` is its first: the members before it move behind the last, in
    /// their order. Takes constant time.
    pub fn turn_to(&mut self, member: u32) {
        match self.order(member) {
            Some(mut order) => order.turn_to(member),
            None => apart(|| self.order_apart().turn_to(member)),
        }
    }

    /// Puts `member`, which is on no list, to the place of `old`, which then is on none.
    pub fn replace(&mut self, old: u32, member: u32) {
        let next = self.links[old as usize].next;
        let list = self.remove(old).expect("a member is replaced");
        match self.order(member) {
            Some(mut order) => order.insert_before(list, next, member),
            None => apart(|| self.order_apart().insert_before(list, next, member)),
        }
    }

    /// The list `member` is on.
    pub fn list_of(&self, member: u32) -> Option<List> {
        let list = self.links[member as usize].list;
        (list != List::NONE).then_some(list)
    }

    /// The first of `list`.
    #[inline]
    pub fn front(&self, list: List) -> Option<u32> {
        some(self.ends[list.index()].front)
    }

    /// The last of `list`.
    #[inline]
    pub fn back(&self, list: List) -> Option<u32> {
        some(self.ends[list.index()].back)
    }

    /// The member behind `member` on its list.
    pub fn next(&self, member: u32) -> Option<u32> {
        some(self.links[member as usize].next)
    }

    /// The member before `member` on its list.
    pub fn previous(&self, member: u32) -> Option<u32> {
        some(self.links[member as usize].previous)
    }

    /// The most members that there can be: their numbers are below that.
    pub fn members_max(&self) -> u32 {
        self.links.len() as u32
    }

    /// The number of lists.
    pub fn lists(&self) -> usize {
        self.ends.len()
    }

    /// The number of members on `list`.
    #[inline]
    pub fn length(&self, list: List) -> u32 {
        self.ends[list.index()].length
    }

    /// The number of members on all lists.
    pub fn total(&self) -> u32 {
        self.ends.iter().map(|ends| ends.length).sum()
    }

    /// The members of `list`, from the front.
    pub fn iter(&self, list: List) -> impl Iterator<Item = u32> + use<'_, List> {
        core::iter::successors(self.front(list), |&member| self.next(member))
    }

    /// Panics if the links contradict each other.
    pub fn check(&self) {
        let mut members = 0;
        for (list, ends) in self.ends.iter().enumerate() {
            let mut previous = NONE;
            let mut at = ends.front;
            let mut length = 0;
            while at != NONE {
                let link = self.links[at as usize];
                assert_eq!(link.list.index(), list, "member {at} is on another list");
                assert_eq!(
                    link.previous, previous,
                    "member {at} is linked one way only"
                );
                length += 1;
                assert!(
                    length <= ends.length,
                    "list {list} is longer than its length"
                );
                previous = at;
                at = link.next;
            }
            assert_eq!(ends.back, previous, "list {list} ends elsewhere");
            assert_eq!(
                ends.length, length,
                "list {list} is shorter than its length"
            );
            members += length as usize;
        }
        let listed = self
            .links
            .iter()
            .filter(|link| link.list != List::NONE)
            .count();
        assert_eq!(
            members, listed,
            "a member is on a list that does not hold it"
        );
    }

    /// The links to be changed, if they are in one piece and `member` has been on a list: then so
    /// have its neighbours, and nothing grows.
    #[inline]
    fn order(&mut self, member: u32) -> Option<Order<'_, [Link<List>]>> {
        let (links, ends) = (self.links.written_mut(), &mut self.ends[..]);
        ((member as usize) < links.len()).then_some(Order { links, ends })
    }

    fn order_apart(&mut self) -> Order<'_, Column<Link<List>>> {
        let (links, ends) = (&mut self.links, &mut self.ends[..]);
        Order { links, ends }
    }
}

/// Does what is seldom needed, out of the way of what is often.
#[cold]
#[inline(never)]
fn apart<T>(act: impl FnOnce() -> T) -> T {
    act()
}

/// The lists while they are changed.
struct Order<'a, Links: ?Sized> {
    links: &'a mut Links,
    ends: &'a mut [Ends],
}

impl<List: ListNumber, Links> Order<'_, Links>
where
    Links: IndexMut<usize, Output = Link<List>> + ?Sized,
{
    #[inline]
    fn remove(&mut self, member: u32) -> Option<List> {
        let Link {
            next,
            previous,
            list,
        } = self.links[member as usize];
        if list == List::NONE {
            return None;
        }
        let ends = &mut self.ends[list.index()];
        ends.length -= 1;
        match next {
            NONE => ends.back = previous,
            _ => self.links[next as usize].previous = previous,
        }
        match previous {
            NONE => ends.front = next,
            _ => self.links[previous as usize].next = next,
        }
        self.links[member as usize] = Link {
            next: NONE,
            previous: NONE,
            list: List::NONE,
        };
        Some(list)
    }

    #[inline]
    fn move_to_back(&mut self, list: List, member: u32) {
        let link = self.links[member as usize];
        if link.list != list {
            self.remove(member);
            self.insert_before(list, NONE, member);
        } else if link.next != NONE {
            self.pass_all_behind(member, link);
        }
    }

    /// Takes `member`, which others of its list stand behind, behind all of them. What policies do
    /// most: less is written than in taking it off and adding it.
    #[inline]
    fn pass_all_behind(&mut self, member: u32, link: Link<List>) {
        let ends = &mut self.ends[link.list.index()];
        let last = core::mem::replace(&mut ends.back, member);
        match link.previous {
            NONE => ends.front = link.next,
            previous => self.links[previous as usize].next = link.next,
        }
        self.links[link.next as usize].previous = link.previous;
        self.links[last as usize].next = member;
        self.links[member as usize] = Link {
            next: NONE,
            previous: last,
            ..link
        };
    }

    fn turn_to(&mut self, member: u32) {
        let Link { previous, list, .. } = self.links[member as usize];
        if previous == NONE {
            return;
        }
        let ends = &mut self.ends[list.index()];
        let first = core::mem::replace(&mut ends.front, member);
        let last = core::mem::replace(&mut ends.back, previous);
        self.links[member as usize].previous = NONE;
        self.links[previous as usize].next = NONE;
        self.links[last as usize].next = first;
        self.links[first as usize].previous = last;
    }

    #[inline]
    fn insert_before(&mut self, list: List, next: u32, member: u32) {
        assert!(
            self.links[member as usize].list == List::NONE,
            "{member} is on a list already"
        );
        let ends = &mut self.ends[list.index()];
        ends.length += 1;
        let previous = match next {
            NONE => core::mem::replace(&mut ends.back, member),
            _ => core::mem::replace(&mut self.links[next as usize].previous, member),
        };
        match previous {
            NONE => ends.front = member,
            _ => self.links[previous as usize].next = member,
        }
        self.links[member as usize] = Link {
            next,
            previous,
            list,
        };
    }
}

fn some(member: u32) -> Option<u32> {
    (member != NONE).then_some(member)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(queues: &Queues, list: u8) -> Vec<u32> {
        queues.iter(list).collect()
    }

    #[test]
    fn members_stand_in_the_order_they_were_added_at_either_end() {
        let mut queues = Queues::new(2_u8, 8);
        queues.push_back(0, 3);
        queues.push_back(0, 4);
        queues.push_front(0, 2);
        queues.push_back(1, 7);
        assert_eq!(members(&queues, 0), [2, 3, 4]);
        assert_eq!(members(&queues, 1), [7]);
        assert_eq!((queues.front(0), queues.back(0)), (Some(2), Some(4)));
        queues.check();
    }

    #[test]
    fn a_member_leaves_from_the_front_the_middle_and_the_back() {
        let mut queues = Queues::new(1_u8, 5);
        (0..5).for_each(|member| queues.push_back(0, member));
        assert_eq!(queues.remove(2), Some(0));
        assert_eq!(queues.remove(0), Some(0));
        assert_eq!(queues.remove(4), Some(0));
        assert_eq!(queues.remove(4), None);
        assert_eq!(members(&queues, 0), [1, 3]);
        queues.check();
        assert_eq!((queues.remove(1), queues.remove(3)), (Some(0), Some(0)));
        assert_eq!(
            (queues.front(0), queues.back(0), queues.length(0)),
            (None, None, 0)
        );
        queues.check();
    }

    #[test]
    fn moving_takes_a_member_along_to_another_list() {
        let mut queues = Queues::new(2_u8, 3);
        (0..3).for_each(|member| queues.push_back(0, member));
        queues.move_to_back(1, 1);
        queues.move_to_back(0, 0);
        assert_eq!(members(&queues, 0), [2, 0]);
        assert_eq!((queues.list_of(1), queues.list_of(0)), (Some(1), Some(0)));
        queues.check();
    }

    #[test]
    fn lists_are_added_beside_those_that_have_members() {
        let mut queues: Queues<u32> = Queues::new(1, 3);
        queues.push_back(0, 1);
        queues.add_list(70_000);
        queues.move_to_back(70_000, 1);
        queues.push_back(69_999, 2);
        assert_eq!((queues.length(0), queues.list_of(1)), (0, Some(70_000)));
        assert_eq!(queues.lists(), 70_001);
        queues.check();
    }

    #[test]
    fn a_list_turns_to_any_of_its_members() {
        for (to, expected) in [(0, [0, 1, 2]), (1, [1, 2, 0]), (2, [2, 0, 1])] {
            let mut queues = Queues::new(1_u8, 3);
            (0..3).for_each(|member| queues.push_back(0, member));
            queues.turn_to(to);
            assert_eq!(members(&queues, 0), expected);
            queues.check();
        }
    }

    #[test]
    fn a_member_takes_the_place_of_another() {
        let mut queues = Queues::new(2_u8, 6);
        (0..3).for_each(|member| queues.push_back(0, member));
        queues.replace(2, 5);
        queues.replace(0, 3);
        assert_eq!(members(&queues, 0), [3, 1, 5]);
        assert_eq!((queues.list_of(0), queues.list_of(2)), (None, None));
        queues.check();
    }

    #[test]
    #[should_panic(expected = "on a list already")]
    fn a_member_is_on_one_list_at_most() {
        let mut queues = Queues::new(2_u8, 3);
        queues.push_back(0, 1);
        queues.push_back(1, 1);
    }
}
