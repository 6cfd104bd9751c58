//! Compressed memory: pages between the frames and the disk.
//!
//! A page that leaves is compressed and put at the end of a log in memory. What is taken out of the
//! log again, because the page is wanted or given up, leaves a hole. The oldest part of the log
//! leaves for the disk as it lies, and comes back so. Where each page is, what leaves next and how
//! much memory the log may have are decided here; a store moves the bytes.
//!
//! - [`tier`]: what stores drive, live and simulated.
//! - [`log`]: the log-structured table of compressed pages. After Rosenblum and Ousterhout, "The
//!   Design and Implementation of a Log-Structured File System" (1992), sections 3.3 to 3.5.
//! - [`division`]: how memory is divided between plain frames and the log.

pub mod division;
pub mod log;
pub mod tier;
