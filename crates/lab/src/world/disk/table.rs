//! Disks as they were measured, by `tidemark doctor --calibrate`.

use tidemark_core::random::SplitMix64;
use tidemark_core::seams::pager::Direction;
use tidemark_results::host::Latency;

/// The times of transfers of some sizes, one at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The number of requests served at the same time.
    pub channels: u32,
    /// Reads, by their number of pages.
    pub reads: Vec<Point>,
    /// Writes, by their number of pages.
    pub writes: Vec<Point>,
}

/// The time of transfers of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The size, in pages.
    pub pages: u32,
    /// Half of them took less.
    pub p50_ns: u64,
    /// Ninety-nine in a hundred took less.
    pub p99_ns: u64,
}

/// The names of `doctor`'s measurements, and the pages of 4 KiB each moves.
const MEASURED: [(&str, Direction, u32); 4] = [
    ("read of 4 KiB", Direction::Fetch, 1),
    ("read of 256 KiB", Direction::Fetch, 64),
    ("write of 4 KiB", Direction::Store, 1),
    ("write of 256 KiB", Direction::Store, 64),
];
/// The first of them, made beside others of its kind, and how many are under way then.
const BESIDE: (&str, f64) = ("read of 4 KiB, 8 at a time", 8.0);

impl Table {
    /// The disk that `tidemark doctor --calibrate` has measured; `None` if its record has no reads
    /// or no writes.
    pub fn from_latencies(latencies: &[Latency]) -> Option<Table> {
        let mut table = Table {
            channels: count_channels(latencies),
            reads: Vec::new(),
            writes: Vec::new(),
        };
        for (name, direction, pages) in MEASURED {
            let Some(found) = latencies.iter().find(|latency| latency.name == name) else {
                continue;
            };
            let point = Point {
                pages,
                p50_ns: (found.p50_us * 1000.0) as u64,
                p99_ns: (found.p99_us * 1000.0) as u64,
            };
            match direction {
                Direction::Fetch => table.reads.push(point),
                Direction::Store => table.writes.push(point),
            }
        }
        let is_whole = !table.reads.is_empty() && !table.writes.is_empty();
        is_whole.then_some(table)
    }

    /// The time of a transfer: between the sizes that were measured along a straight line, and
    /// past them in proportion.
    pub(crate) fn draw_ns(&self, direction: Direction, pages: u32, random: &mut SplitMix64) -> u64 {
        let points = match direction {
            Direction::Fetch => &self.reads,
            Direction::Store => &self.writes,
        };
        let drawn = random.below(1000);
        let below = points.iter().rev().find(|point| point.pages <= pages);
        let above = points.iter().find(|point| point.pages >= pages);
        match (below, above) {
            (Some(below), Some(above)) if below.pages < above.pages => {
                let (from, to) = (below.at(drawn), above.at(drawn));
                let way = u64::from(pages - below.pages);
                let whole = u64::from(above.pages - below.pages);
                (from * (whole - way) + to * way) / whole
            }
            // A small write is not measured: moving less takes no less, as far as is known.
            (_, Some(above)) => above.at(drawn),
            (Some(below), None) => below.at(drawn) * u64::from(pages) / u64::from(below.pages),
            (None, None) => 0,
        }
    }
}

/// The number of reads that a disk serves at a time: as many as are under way when they take no
/// longer for it, fewer as they do. One where that has not been measured.
fn count_channels(latencies: &[Latency]) -> u32 {
    let p50_us = |name: &str| {
        let found = latencies.iter().find(|latency| latency.name == name);
        found.map(|latency| latency.p50_us)
    };
    let (alone, beside) = (p50_us(MEASURED[0].0), p50_us(BESIDE.0));
    let channels = alone.zip(beside).map_or(1.0, |(alone, beside)| {
        BESIDE.1 * alone / beside.max(f64::MIN_POSITIVE)
    });
    channels.round().clamp(1.0, BESIDE.1) as u32
}

impl Point {
    /// The time of a draw from a thousand: the lower half takes the median, the upper half up to
    /// the 99th in a hundred and past it, ever more steeply.
    fn at(&self, drawn: u64) -> u64 {
        let over = drawn.saturating_sub(500);
        let spread = self.p99_ns.saturating_sub(self.p50_ns);
        // The fourth power of the way from the median to the 99th.
        let share = over.pow(4) * 1000 / 490_u64.pow(4);
        self.p50_ns + spread * share / 1000
    }
}
