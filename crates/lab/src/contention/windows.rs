//! Windows: pieces of files that are mapped for system calls, in parts with a lock each.

use std::collections::BTreeMap;

use tidemark_core::collections::queue::Queues;

/// The windows of a system.
pub(super) struct Windows {
    parts: Vec<Part>,
}

struct Part {
    /// The place of each mapped piece.
    slots: BTreeMap<u32, u32>,
    /// The piece that each slot maps.
    pieces: Vec<Option<u32>>,
    /// All slots, the least recently used first.
    order: Queues<u8>,
}

/// The result of looking for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The window was there.
    Hit,
    /// A window that mapped nothing was taken.
    Fresh,
    /// A window was taken that mapped another piece.
    Taken,
}

impl Windows {
    /// `windows` in `parts`, each with one window at least.
    pub(super) fn new(windows: u32, parts: u32) -> Windows {
        let own = (windows / parts).max(1);
        let part = || {
            let mut order = Queues::new(1, own);
            (0..own).for_each(|slot| order.push_back(0, slot));
            Part {
                slots: BTreeMap::new(),
                pieces: vec![None; own as usize],
                order,
            }
        };
        Windows {
            parts: (0..parts).map(|_| part()).collect(),
        }
    }

    /// Finds the window of a piece, or makes the least recently used one of its part its window.
    /// Neighbours belong to different parts.
    pub(super) fn find(&mut self, piece: u32) -> Found {
        let part = piece as usize % self.parts.len();
        let part = &mut self.parts[part];
        if let Some(&slot) = part.slots.get(&piece) {
            part.order.move_to_back(0, slot);
            return Found::Hit;
        }
        let slot = part.order.front(0).expect("each part has a window");
        part.order.move_to_back(0, slot);
        let before = part.pieces[slot as usize].replace(piece);
        part.slots.insert(piece, slot);
        match before {
            None => Found::Fresh,
            Some(before) => {
                part.slots.remove(&before);
                Found::Taken
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_window_makes_room() {
        let mut windows = Windows::new(2, 1);
        let found: Vec<Found> = [5, 6, 5, 7, 5, 6]
            .map(|piece| windows.find(piece))
            .into_iter()
            .collect();
        use Found::{Fresh, Hit, Taken};
        assert_eq!(found, [Fresh, Fresh, Hit, Taken, Hit, Taken]);
    }

    #[test]
    fn parts_make_room_each_for_itself() {
        let mut windows = Windows::new(2, 2);
        let found = [4, 5, 6, 5].map(|piece| windows.find(piece));
        assert_eq!(
            found,
            [Found::Fresh, Found::Fresh, Found::Taken, Found::Hit]
        );
    }
}
