//! The array a workload pages over, and the two phases that touch it.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tidemark_core::random::mix;
use tidemark_live::sys::shm::Shared;

use super::pattern::{Access, Pattern};

/// Bytes in a page, everywhere in the benchmarks.
pub const PAGE_BYTES: u64 = 4096;
const PAGE_WORDS: usize = 512;
/// Words in a cache line: a read looks at one word of each line of the page.
const LINE_WORDS: usize = 8;

/// The equal words behind each other in a page of [`Contents::Repeating`].
const WORDS_EQUAL: u64 = 5;

/// The contents that pages are filled with.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    serde::Deserialize,
    serde::Serialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// Words that do not compress
    #[default]
    Random,
    /// Words that repeat: three to four pages compress to one, as in the memory of most programs
    Repeating,
}

impl Contents {
    /// The name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Contents::Random => "random",
            Contents::Repeating => "repeating",
        }
    }
}

/// The results of a workload over an array, and the times of its phases.
pub struct ArrayRun {
    /// Depends on every word read, and on the order.
    pub checksum: u64,
    /// The first touch of every page.
    pub fill: Duration,
    /// Everything after it.
    pub access: Duration,
    /// The number of accesses that followed the fill.
    pub accesses: u64,
}

/// Allocates the array as any program does (`calloc`) and follows `pattern` over it.
///
/// The allocation belongs to the measured time; giving the memory back does not.
pub fn follow_on_heap(pattern: Pattern, contents: Contents) -> ArrayRun {
    let start = Instant::now();
    let words = pattern.pages as usize * PAGE_WORDS;
    // One page more than needed, so that the array can start on a page boundary: the pages of
    // the pattern are then the pages of the machine.
    let mut memory = vec![0u64; words + PAGE_WORDS];
    let first = memory.as_ptr().align_offset(PAGE_BYTES as usize);
    assert!(
        first < PAGE_WORDS,
        "a page boundary lies within the first page"
    );
    let memory = &mut memory[first..first + words];
    follow((pattern, contents), &mut &mut *memory, start)
}

/// Maps a new file at `path`, as large as the array, and follows `pattern` over that instead. The
/// file has no name any more when this returns.
pub fn follow_on_file(
    pattern: Pattern,
    contents: Contents,
    path: &Path,
) -> Result<ArrayRun, String> {
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let start = Instant::now();
    let words = pattern.pages as usize * PAGE_WORDS;
    let mut options = File::options();
    let file = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(told)?;
    // Without a name the file goes with this process, however that ends.
    std::fs::remove_file(path).map_err(told)?;
    file.set_len(words as u64 * 8).map_err(told)?;
    let memory = Shared::open(file.into()).map_err(|error| told(error.into()))?;
    let reached = memory.reach(0, memory.bytes());
    reached.map_err(|error| told(error.into()))?;
    Ok(follow(
        (pattern, contents),
        &mut memory.slice::<AtomicU64>(0, words),
        start,
    ))
}

/// Memory as words. Other mappings of a file see its words change, so there they are
/// atomics; that costs nothing here.
trait Words {
    fn word(&self, place: usize) -> u64;
    fn set_word(&mut self, place: usize, value: u64);
}

impl Words for &mut [u64] {
    fn word(&self, place: usize) -> u64 {
        self[place]
    }

    fn set_word(&mut self, place: usize, value: u64) {
        self[place] = value;
    }
}

impl Words for &[AtomicU64] {
    fn word(&self, place: usize) -> u64 {
        self[place].load(Ordering::Relaxed)
    }

    fn set_word(&mut self, place: usize, value: u64) {
        self[place].store(value, Ordering::Relaxed);
    }
}

/// Follows `pattern` over `memory`, which holds zeros; `start` is when the work began.
fn follow(
    (pattern, contents): (Pattern, Contents),
    memory: &mut impl Words,
    start: Instant,
) -> ArrayRun {
    for page in 0..pattern.pages as usize {
        fill_page(pattern.seed, page, contents, memory);
    }
    let filled = Instant::now();
    let mut checksum = 0u64;
    let mut accesses = 0u64;
    for Access { page, is_write } in pattern.accesses() {
        let page = page as usize;
        checksum = fold(checksum, read_page(page, memory));
        if is_write {
            let place = page * PAGE_WORDS + checksum as usize % PAGE_WORDS;
            memory.set_word(place, memory.word(place) ^ (checksum | 1));
        }
        accesses += 1;
    }
    ArrayRun {
        checksum,
        fill: filled - start,
        access: filled.elapsed(),
        accesses,
    }
}

/// Writes every word of a page.
fn fill_page(seed: u64, page: usize, contents: Contents, memory: &mut impl Words) {
    let first = mix(seed ^ ((page as u64) << 20));
    let step = mix(first) | 1;
    let equal = match contents {
        Contents::Random => 1,
        Contents::Repeating => WORDS_EQUAL,
    };
    for place in 0..PAGE_WORDS {
        let value = first.wrapping_add(step.wrapping_mul(place as u64 / equal));
        memory.set_word(page * PAGE_WORDS + place, value);
    }
}

/// Takes `sum` into `checksum` so that order and repetition count.
fn fold(checksum: u64, sum: u64) -> u64 {
    mix(checksum ^ sum)
}

fn read_page(page: usize, memory: &impl Words) -> u64 {
    let lines = (0..PAGE_WORDS).step_by(LINE_WORDS);
    let word = |place| memory.word(page * PAGE_WORDS + place);
    lines.fold(0u64, |sum, place| sum.wrapping_add(word(place)))
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Shape;
    use super::*;

    fn checksum(shape: Shape, seed: u64) -> u64 {
        let pattern = Pattern {
            shape,
            pages: 64,
            laps: 2,
            seed,
        };
        follow_on_heap(pattern, Contents::Random).checksum
    }

    #[test]
    fn contents_that_repeat_are_other_contents_that_compress() {
        let pages_of = |contents| {
            let mut words = vec![0u64; 3 * PAGE_WORDS];
            (0..3).for_each(|page| fill_page(1, page, contents, &mut words.as_mut_slice()));
            words
        };
        let (random, repeating) = (pages_of(Contents::Random), pages_of(Contents::Repeating));
        let others = |words: &[u64]| words.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(others(&random), 3 * PAGE_WORDS - 1);
        assert_eq!(
            others(&repeating),
            3 * PAGE_WORDS.div_ceil(WORDS_EQUAL as usize) - 1
        );
    }

    #[test]
    fn the_checksum_repeats_and_tells_seeds_and_shapes_apart() {
        assert_eq!(checksum(Shape::Random, 1), checksum(Shape::Random, 1));
        assert_ne!(checksum(Shape::Random, 1), checksum(Shape::Random, 2));
        assert_ne!(checksum(Shape::Sheep, 1), checksum(Shape::Loop, 1));
        let laps = |laps| {
            let pattern = Pattern {
                shape: Shape::Loop,
                pages: 64,
                laps,
                seed: 1,
            };
            follow_on_heap(pattern, Contents::Random)
        };
        assert_ne!(laps(1).checksum, laps(3).checksum);
    }

    #[test]
    fn a_lost_page_changes_the_checksum() {
        let pattern = Pattern {
            shape: Shape::Loop,
            pages: 8,
            laps: 1,
            seed: 1,
        };
        let mut words = vec![0u64; 8 * PAGE_WORDS];
        let whole = follow(
            (pattern, Contents::Random),
            &mut words.as_mut_slice(),
            Instant::now(),
        )
        .checksum;
        let again =
            |words: &mut [u64]| (0..8).fold(0u64, |sum, page| fold(sum, read_page(page, &words)));
        assert_eq!(again(&mut words), whole);
        words[3 * PAGE_WORDS..4 * PAGE_WORDS].fill(0);
        assert_ne!(again(&mut words), whole);
    }

    #[test]
    fn a_mapped_file_reads_as_the_heap_does() {
        let pattern = Pattern {
            shape: Shape::Random,
            pages: 64,
            laps: 4,
            seed: 1,
        };
        let path = std::env::temp_dir().join(format!("tidemark-array-{}", std::process::id()));
        let on_file = follow_on_file(pattern, Contents::Random, &path)
            .expect("the temporary folder can be written");
        assert_eq!(
            on_file.checksum,
            follow_on_heap(pattern, Contents::Random).checksum
        );
        assert!(!path.exists());
    }
}
