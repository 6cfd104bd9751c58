//! Read-ahead: what is remembered of readers, to read pages before anyone has touched them.

pub(crate) mod fates;
pub mod streams;
