//! Read-ahead: the pages that are read before anyone has touched them.

pub mod linux;
pub mod streams;
pub(crate) mod window;
