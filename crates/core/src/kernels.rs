//! Kernels: the mechanisms that simulated kernels turn on. A live process uses none of them.

mod buffered_io;
pub(crate) mod double_paging;
pub mod page_daemon;
pub mod pid_controller;
pub mod placement;
