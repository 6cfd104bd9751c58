//! Tables of which few entries may be in use, wherever these are.

/// The number of entries that have their memory together.
const CHUNK: usize = 32;

/// An entry for each number below a bound, blank at first. A chunk of entries that are all blank
/// has no memory.
pub(crate) struct Sparse {
    chunks: Vec<Option<Box<Chunk>>>,
    blank: u128,
    bound: usize,
}

struct Chunk {
    entries: [u128; CHUNK],
    /// The number of those that are not blank.
    used: usize,
}

impl Sparse {
    /// A table of `bound` times `blank`.
    pub(crate) fn new(blank: u128, bound: u32) -> Sparse {
        let bound = bound as usize;
        // Room alone, which takes no memory before it is used.
        let chunks = Vec::with_capacity(bound.div_ceil(CHUNK));
        Sparse {
            chunks,
            blank,
            bound,
        }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.bound
    }

    /// The entry of a number.
    pub(crate) fn get(&self, number: usize) -> u128 {
        assert!(number < self.bound, "entry {number} of {}", self.bound);
        match self.chunks.get(number / CHUNK) {
            Some(Some(chunk)) => chunk.entries[number % CHUNK],
            _ => self.blank,
        }
    }

    /// Sets the entry of a number.
    pub(crate) fn set(&mut self, number: usize, entry: u128) {
        if self.get(number) == entry {
            return;
        }
        let place = number / CHUNK;
        if place >= self.chunks.len() {
            self.chunks.resize_with(place + 1, || None);
        }
        let blank = self.blank;
        let chunk = self.chunks[place].get_or_insert_with(|| {
            Box::new(Chunk {
                entries: [blank; CHUNK],
                used: 0,
            })
        });
        let before = std::mem::replace(&mut chunk.entries[number % CHUNK], entry);
        chunk.used += usize::from(before == blank);
        chunk.used -= usize::from(entry == blank);
        if chunk.used == 0 {
            self.chunks[place] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_memory_as_long_as_one_of_their_chunk_is_in_use() {
        let mut table = Sparse::new(5, 1000);
        table.set(999, 5);
        assert!(table.chunks.is_empty());
        table.set(990, 1);
        table.set(999, 2);
        table.set(990, 7);
        let read = [989, 990, 999].map(|number| table.get(number));
        assert_eq!((read, table.len()), ([5, 7, 2], 1000));
        table.set(990, 5);
        assert_eq!(table.get(999), 2);
        table.set(999, 5);
        assert!(table.chunks.iter().all(Option::is_none));
    }

    #[test]
    #[should_panic(expected = "entry 3 of 3")]
    fn there_is_nothing_beyond_the_bound() {
        Sparse::new(0, 3).get(3);
    }
}
