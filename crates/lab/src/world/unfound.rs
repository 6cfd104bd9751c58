//! The memory of a process that a live engine has not found yet. [`finding`](super::finding) says
//! how it comes about, and looks for it.

use std::collections::BTreeSet;

/// The pauses between looks, at the least and at the most.
pub(super) const PAUSE_NS_LEAST: u64 = 2_000_000;
const PAUSE_NS_MOST: u64 = 64_000_000;
/// The step by which a heap grows: the C library's 128 KiB, and the page that the request at hand
/// ends on.
const HEAP_STEP_PAGES: u64 = 33;

/// The memory of a process that has not been found, and the time at which it is looked for.
#[derive(Default)]
pub(super) struct Unfound {
    parts: Vec<Part>,
    /// The part that stands for more of the heap, and the heap has not grown to yet: from this page
    /// to before that one.
    pub(super) ungrown: Vec<(u64, u64)>,
    /// Pages that the host has filled, and that are not adopted.
    pub(super) standing: BTreeSet<u64>,
    has_changed: bool,
    pause_ns: u64,
    pub(super) next_look: u64,
}

/// Memory that has not been found: from this page to before that one.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) start: u64,
    pub(super) end: u64,
    /// A mapping of its own, rather than more of the one below it.
    pub(super) is_apart: bool,
}

impl Unfound {
    /// Begins anew, but for the heap's growth to come.
    pub(super) fn begin(&mut self) {
        *self = Unfound {
            pause_ns: PAUSE_NS_LEAST,
            ungrown: std::mem::take(&mut self.ungrown),
            ..Unfound::default()
        };
    }

    /// Notes that something has been mapped or unmapped.
    pub(super) fn note_change(&mut self) {
        self.has_changed = true;
    }

    /// Notes a mapping of its own.
    pub(super) fn map(&mut self, start: u64, end: u64) {
        self.parts.push(Part {
            start,
            end,
            is_apart: true,
        });
    }

    /// Notes that the heap has grown.
    pub(super) fn grow(&mut self, start: u64, end: u64) {
        let mut parts = self.parts.iter_mut();
        match parts.find(|part| part.end == start && !part.is_apart) {
            Some(part) => part.end = end,
            None => self.parts.push(Part {
                start,
                end,
                is_apart: false,
            }),
        }
    }

    /// Returns true if the engine does not know that there is memory at `page`, which is being
    /// touched.
    pub(super) fn meet(&mut self, page: u64) -> bool {
        let holds = |&(start, end): &(u64, u64)| (start..end).contains(&page);
        if let Some(place) = self.ungrown.iter().position(holds) {
            let (start, end) = self.ungrown[place];
            let steps = (page - start) / HEAP_STEP_PAGES + 1;
            let grown = end.min(start + steps * HEAP_STEP_PAGES);
            self.ungrown[place].0 = grown;
            self.ungrown.retain(|(start, end)| start < end);
            self.grow(start, grown);
            self.has_changed = true;
        }
        self.is_unfound(page)
    }

    /// Takes pages out that are unmapped. Answers those that stand.
    pub(super) fn cut(&mut self, start: u64, end: u64) -> Vec<u64> {
        let parts = |first: u64, last: u64| {
            let parts = [(first, last.min(start)), (first.max(end), last)];
            parts.into_iter().filter(|(first, last)| first < last)
        };
        for part in std::mem::take(&mut self.parts) {
            let left = parts(part.start, part.end);
            self.parts
                .extend(left.map(|(start, end)| Part { start, end, ..part }));
        }
        for (first, last) in std::mem::take(&mut self.ungrown) {
            self.ungrown.extend(parts(first, last));
        }
        let gone: Vec<u64> = self.standing.range(start..end).copied().collect();
        for page in &gone {
            self.standing.remove(page);
        }
        gone
    }

    /// Takes what a look finds, and the pause before the next.
    pub(super) fn take(&mut self) -> (Vec<Part>, u64) {
        self.pause_ns = match std::mem::take(&mut self.has_changed) {
            true => PAUSE_NS_LEAST,
            false => (self.pause_ns * 2).min(PAUSE_NS_MOST),
        };
        (std::mem::take(&mut self.parts), self.pause_ns)
    }

    /// Returns true if there is memory at `page` that has not been found.
    pub(super) fn is_unfound(&self, page: u64) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| (part.start..part.end).contains(&page))
    }
}
