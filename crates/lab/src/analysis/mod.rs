//! Exact answers for every memory size, from one pass over a reference string.
//!
//! [`references`] holds a trace in memory; `sharing` knows which pages its processes have in
//! common. Fixed memory sizes: [`stack`] counts LRU distances and [`optimum`] Belady's, each giving
//! [`depths`], which are the curve of all sizes; [`queues`] (FIFO, CLOCK) and [`simulate`] (any
//! registered policy) take sizes one by one. Where a trace is too long to be held, a [`sampler`]
//! takes it block by block, and [`shards`] estimate LRU's curve. Caches whose [`visits`] want
//! several objects at once are simulated, too.
//!
//! What was sampled in windows tells less: [`sight`].
//!
//! Memory that varies: [`intervals`] give the curves of [`working_set`] and [`vmin`] for all
//! windows; these and [`pff`] also walk a string and report their size over time to [`residence`].
//! Of a string that is not held, [`ageing`] computes the working set over time, and the [`longest`]
//! intervals give the most pages of working set and VMIN. Behaviour: [`localities`] and [`phases`]
//! with [`peaks`] between them, [`lifetime`] functions with their knees, [`space_time`] products,
//! the memory [`needed`], the [`portions`] of regions in all that, and the [`footprint`] beside
//! what is mapped.

pub mod ageing;
mod ahead;
pub mod depths;
mod distribution;
pub mod footprint;
pub mod intervals;
pub mod lifetime;
pub mod localities;
pub mod longest;
pub mod map;
pub mod needed;
pub mod optimum;
pub mod peaks;
pub mod pff;
pub mod phases;
pub mod portions;
pub mod queues;
pub mod reference_string;
pub mod references;
pub mod residence;
mod runs;
pub mod sampled_windows;
pub mod sampler;
pub mod shards;
pub(crate) mod sharing;
pub mod sight;
pub mod simulate;
#[cfg(test)]
mod slow;
pub mod space_time;
pub mod stack;
#[cfg(test)]
mod testing;
pub mod visits;
pub mod vmin;
pub mod working_set;

pub use depths::Depths;
pub use references::{Choice, Loading, Name, References};
pub use sharing::FilePage;
