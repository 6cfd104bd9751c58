//! Paging: bringing pages in when they are touched, and sending others out to make room.

pub(crate) mod attempt;
pub mod fault;
pub(crate) mod pacing;
pub(crate) mod page_in;
pub(crate) mod pinned;
pub(crate) mod pins;
pub mod reclaim;
pub(crate) mod served;
pub mod transfer;
pub(crate) mod transfers;
mod trim;
