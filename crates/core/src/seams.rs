//! The seams: what the core calls, asks and writes to, and never is.

pub mod arrival;
pub mod description;
pub mod load_control;
pub mod machine;
pub mod pager;
pub mod policy;
pub mod probe;
