//! Pages by the spans they lie in, as mappings come and go.

use std::collections::BTreeMap;
use std::ops::Range;

/// The values of spans of pages. No two spans overlap, and none is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spans<T> {
    /// By first page: the first page behind, and what holds.
    by_start: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for Spans<T> {
    fn default() -> Spans<T> {
        let by_start = BTreeMap::new();
        Spans { by_start }
    }
}

impl<T: Clone> Spans<T> {
    /// The span that `page` lies in.
    pub fn find(&self, page: u64) -> Option<(Range<u64>, &T)> {
        let (&start, (end, value)) = self.by_start.range(..=page).next_back()?;
        (page < *end).then_some((start..*end, value))
    }

    /// The spans, by their places.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, &T)> {
        let spans = self.by_start.iter();
        spans.map(|(&start, (end, value))| (start..*end, value))
    }

    /// The spans that have pages from `start` to before `end`, by their places.
    pub fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (Range<u64>, &T)> {
        let first = self.find(start).map_or(start, |(place, _)| place.start);
        let inside = self.by_start.range(first..end.max(first));
        inside.map(|(&start, (end, value))| (start..*end, value))
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Has `value` hold for the pages from `start` to before `end`, in place of what did.
    pub fn insert(&mut self, start: u64, end: u64, value: T) {
        if start < end {
            self.cut(start, end);
            self.by_start.insert(start, (end, value));
        }
    }

    /// Takes the pages from `start` to before `end` away from whatever they belong to. Answers
    /// what held for them.
    pub fn cut(&mut self, start: u64, end: u64) -> Vec<T> {
        self.split(start);
        self.split(end);
        let inside = self.by_start.range(start..end.max(start));
        let inside: Vec<u64> = inside.map(|(&at, _)| at).collect();
        let removed = inside.iter().filter_map(|at| self.by_start.remove(at));
        removed.map(|(_, value)| value).collect()
    }

    /// Changes what holds for those of the pages from `start` to before `end` that have anything.
    pub fn change(&mut self, start: u64, end: u64, mut change: impl FnMut(&mut T)) {
        self.split(start);
        self.split(end);
        let inside = self.by_start.range_mut(start..end.max(start));
        inside.for_each(|(_, (_, value))| change(value));
    }

    /// Forgets all spans.
    pub fn clear(&mut self) {
        self.by_start.clear();
    }

    /// Makes two spans of one that has `at` inside.
    fn split(&mut self, at: u64) {
        if let Some((_, (end, value))) = self.by_start.range_mut(..at).next_back()
            && *end > at
        {
            let behind = (std::mem::replace(end, at), value.clone());
            self.by_start.insert(at, behind);
        }
    }
}
