//! Flash: requests in parallel, each with a latency that varies, over one link.

use tidemark_core::random::SplitMix64;
use tidemark_core::seams::pager::Direction;

/// A flash disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ssd {
    /// The number of requests served at the same time.
    pub channels: u32,
    /// Half of all reads are ready to be moved within this time.
    pub read_ns: u64,
    /// Half of all writes are taken within this time.
    pub write_ns: u64,
    /// The time to move a page over the link, which all requests share.
    pub link_page_ns: u64,
}

/// The distribution of latencies: pairs of thousandths of requests and the time of the slowest of
/// them, in thousandths of the median; straight lines between. Garbage collection makes the tail.
const SPREAD: [(u64, u64); 6] = [
    (0, 800),
    (500, 1000),
    (900, 1300),
    (990, 2500),
    (999, 6000),
    (1000, 12_000),
];

impl Ssd {
    /// A latency, without the way over the link.
    pub(crate) fn draw_latency_ns(&self, direction: Direction, random: &mut SplitMix64) -> u64 {
        let median_ns = match direction {
            Direction::Fetch => self.read_ns,
            Direction::Store => self.write_ns,
        };
        // Drawn in millionths, so that the tail has steps of its own.
        let drawn = random.below(1_000_000);
        let above = SPREAD.iter().position(|&(share, _)| drawn < share * 1000);
        let above = above.expect("all draws are below the last share");
        let ((low, from), (high, to)) = (SPREAD[above - 1], SPREAD[above]);
        let permille = from + (to - from) * (drawn - low * 1000) / ((high - low) * 1000);
        median_ns * permille / 1000
    }
}
