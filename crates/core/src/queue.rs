//! Queues: doubly linked lists of small numbers over one table of links.
//!
//! Policies keep frames in order, and a frame stands in at most one place of that order. So one
//! table with an entry a frame serves all lists of a policy, and nothing is allocated after it is
//! made. Adding, removing and moving take the same time whatever the length.
//!
//! # Invariants
//! 1. A member is on exactly one list, and each list is linked the same in both directions.
//! 2. The lengths of the lists add up to the number of members.

use alloc::vec;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;
const NO_LIST: u8 = u8::MAX;

#[derive(Clone, Copy)]
struct Link {
    next: u32,
    previous: u32,
    list: u8,
}

#[derive(Clone, Copy)]
struct Ends {
    front: u32,
    back: u32,
    length: u32,
}

/// Several lists over the numbers `0..members_max`, each number on at most one of them.
pub struct Queues {
    links: Vec<Link>,
    ends: Vec<Ends>,
}

impl Queues {
    /// Makes `lists` empty lists.
    pub fn new(lists: u8, members_max: u32) -> Queues {
        assert!(lists < NO_LIST && members_max < NONE);
        let link = Link {
            next: NONE,
            previous: NONE,
            list: NO_LIST,
        };
        let ends = Ends {
            front: NONE,
            back: NONE,
            length: 0,
        };
        Queues {
            links: vec![link; members_max as usize],
            ends: vec![ends; lists.into()],
        }
    }

    /// Adds `member`, which is on no list, behind all others of `list`.
    pub fn push_back(&mut self, list: u8, member: u32) {
        self.insert_before(list, NONE, member);
    }

    /// Adds `member`, which is on no list, in front of all others of `list`.
    pub fn push_front(&mut self, list: u8, member: u32) {
        self.insert_before(list, self.ends[usize::from(list)].front, member);
    }

    /// Takes `member` off whatever list it is on, and says which one that was.
    pub fn remove(&mut self, member: u32) -> Option<u8> {
        let Link {
            next,
            previous,
            list,
        } = self.links[member as usize];
        if list == NO_LIST {
            return None;
        }
        let ends = &mut self.ends[usize::from(list)];
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
            list: NO_LIST,
        };
        Some(list)
    }

    /// Takes `member` off its list, if it is on one, and adds it behind all others of `list`.
    pub fn move_to_back(&mut self, list: u8, member: u32) {
        self.remove(member);
        self.push_back(list, member);
    }

    /// The list `member` is on.
    pub fn list_of(&self, member: u32) -> Option<u8> {
        let list = self.links[member as usize].list;
        (list != NO_LIST).then_some(list)
    }

    /// The first of `list`.
    pub fn front(&self, list: u8) -> Option<u32> {
        some(self.ends[usize::from(list)].front)
    }

    /// The last of `list`.
    pub fn back(&self, list: u8) -> Option<u32> {
        some(self.ends[usize::from(list)].back)
    }

    /// Who stands behind `member` on its list.
    pub fn next(&self, member: u32) -> Option<u32> {
        some(self.links[member as usize].next)
    }

    /// How many are on `list`.
    pub fn length(&self, list: u8) -> u32 {
        self.ends[usize::from(list)].length
    }

    /// How many are on any list.
    pub fn total(&self) -> u32 {
        self.ends.iter().map(|ends| ends.length).sum()
    }

    /// The members of `list`, from the front.
    pub fn iter(&self, list: u8) -> impl Iterator<Item = u32> {
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
                assert_eq!(
                    usize::from(link.list),
                    list,
                    "member {at} is on another list"
                );
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
            .filter(|link| link.list != NO_LIST)
            .count();
        assert_eq!(
            members, listed,
            "a member is on a list that does not hold it"
        );
    }

    fn insert_before(&mut self, list: u8, next: u32, member: u32) {
        assert_eq!(
            self.links[member as usize].list, NO_LIST,
            "{member} is on a list already"
        );
        let ends = &mut self.ends[usize::from(list)];
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
        let mut queues = Queues::new(2, 8);
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
        let mut queues = Queues::new(1, 5);
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
        let mut queues = Queues::new(2, 3);
        (0..3).for_each(|member| queues.push_back(0, member));
        queues.move_to_back(1, 1);
        queues.move_to_back(0, 0);
        assert_eq!(members(&queues, 0), [2, 0]);
        assert_eq!((queues.list_of(1), queues.list_of(0)), (Some(1), Some(0)));
        queues.check();
    }

    #[test]
    #[should_panic(expected = "on a list already")]
    fn a_member_is_on_one_list_at_most() {
        let mut queues = Queues::new(2, 3);
        queues.push_back(0, 1);
        queues.push_back(1, 1);
    }
}
