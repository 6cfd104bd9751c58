//! Collections: sets, lists and tables of small numbers that are sized once.

pub mod bitmap;
pub(crate) mod bits;
pub mod column;
pub mod field;
pub mod queue;
