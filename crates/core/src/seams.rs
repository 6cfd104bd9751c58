//! The seams: what the core calls, asks and writes to, and never is.

pub mod machine;
pub mod pager;
pub mod policy;
