//! Paging: bringing pages in when they are touched, and sending others out to make room.

pub mod fault;
pub(crate) mod page_in;
pub(crate) mod pins;
pub mod reclaim;
pub mod transfer;
mod trim;
