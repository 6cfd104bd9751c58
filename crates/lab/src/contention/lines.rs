//! Cache lines: who used each last, and what it costs to get it.

/// A cache line.
#[derive(Clone, Copy)]
struct Line {
    /// The processor that used it last.
    owner: usize,
    /// The part of it that was used then.
    item: Item,
    /// Until when it is on its way.
    free_at: u64,
}

/// Something that lies in a cache line: the number of a lock, or [`COUNTERS`].
pub(super) type Item = u32;

/// The counters of a system whose processors have none of their own.
pub(super) const COUNTERS: Item = u32::MAX;

/// The lines of all locks and counters.
pub(super) struct Lines {
    lines: Vec<Line>,
    /// Processors below this are in the first socket.
    socket: usize,
    near_ns: u64,
    far_ns: u64,
    /// Moves so far.
    pub(super) moved: u64,
    /// Moves from a processor that used something else in the line.
    pub(super) moved_false: u64,
}

impl Lines {
    /// `count` lines, all of them at the first processor.
    pub(super) fn new(count: usize, processors: usize, near_ns: u64, far_ns: u64) -> Lines {
        let line = Line {
            owner: 0,
            item: COUNTERS,
            free_at: 0,
        };
        Lines {
            lines: vec![line; count],
            socket: processors.div_ceil(2),
            near_ns,
            far_ns,
            moved: 0,
            moved_false: 0,
        }
    }

    /// `processor` uses `item` of `line` at `now`; when it has it.
    pub(super) fn use_at(&mut self, line: usize, item: Item, processor: usize, now: u64) -> u64 {
        let found = &mut self.lines[line];
        let before = *found;
        found.item = item;
        if before.owner == processor {
            return now.max(before.free_at);
        }
        let is_near = (before.owner < self.socket) == (processor < self.socket);
        let move_ns = if is_near { self.near_ns } else { self.far_ns };
        found.owner = processor;
        found.free_at = now.max(before.free_at) + move_ns;
        let there = found.free_at;
        self.moved += 1;
        self.moved_false += u64::from(before.item != item);
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_moves_to_whoever_uses_it_one_move_at_a_time() {
        let mut lines = Lines::new(1, 4, 10, 30);
        assert_eq!(lines.use_at(0, 7, 0, 100), 100);
        assert_eq!(lines.use_at(0, 7, 1, 100), 110);
        assert_eq!(lines.use_at(0, 7, 2, 100), 140);
        assert_eq!(lines.use_at(0, 8, 2, 200), 200);
        assert_eq!(lines.use_at(0, 7, 3, 200), 210);
        assert_eq!((lines.moved, lines.moved_false), (3, 1));
    }
}
