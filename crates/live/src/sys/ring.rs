//! Asynchronous reads and writes of whole pages: io_uring, made by hand.
pub use rustix::io_uring as raw;
