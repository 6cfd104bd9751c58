//! The reasons for which a program misses: for want of memory, or for want of a better policy.

use serde::{Deserialize, Serialize};

/// The reasons for misses in some sizes of memory, and the size at which memory begins to be of
/// use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The reasons in each size that was asked for, or in half of all the pages that are used.
    pub sizes: Vec<Reasons>,
    /// The cliff, if the optimum has any hits at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cliff: Option<Cliff>,
}

/// The misses of LRU in one size of memory, by their reasons. The three add up to `misses`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reasons {
    /// The size, in pages.
    pub pages: u64,
    /// The size, in bytes.
    pub bytes: u64,
    /// The misses of LRU.
    pub misses: u64,
    /// First touches: no memory avoids them.
    pub first_touches: u64,
    /// The misses that the optimum has, too, beyond first touches: memory is too small.
    pub for_size: u64,
    /// The misses that the optimum does not have: another policy could avoid them.
    pub for_policy: u64,
    /// The policy with the fewest misses, of those that can run live, if they were simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Best>,
}

/// A policy that can run live, and its misses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Its name on the command line.
    pub policy: String,
    /// Its misses, first touches included.
    pub misses: u64,
}

/// The cliff: the smallest memory in which LRU has at least half of the hits of the optimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cliff {
    /// The size, in pages.
    pub pages: u64,
    /// The size, in bytes.
    pub bytes: u64,
    /// True if most of those hits come within the last twentieth of that size: the program walks in
    /// a loop of about that size.
    pub is_loop: bool,
}

impl Reasons {
    /// The part of the misses for want of a better policy that the best one avoids. Less than zero
    /// if it has more misses than LRU; none without a best one, or without such misses.
    pub fn gap_closed(&self) -> Option<f64> {
        let best = self.best.as_ref().filter(|_| self.for_policy > 0)?;
        Some((self.misses as f64 - best.misses as f64) / self.for_policy as f64)
    }
}
