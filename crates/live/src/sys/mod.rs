//! System calls, and memory by address: the only place with `unsafe` in this crate.
//!
//! # What makes these functions safe to call
//! Managed memory belongs to the running program; the engine holds no Rust reference into it and
//! names it by number only. Ioctls on a userfaultfd change nothing outside ranges that were
//! registered with it, except that moving takes pages out of its source; every caller in this crate
//! passes a source inside a registered range or inside its own [`pool`]. The engine's own memory is
//! mapped through [`memory`], in a reserved range of addresses ([`reserve`]), so that it is never
//! registered.
//!
//! Nothing in here calls libc's memory or file functions: those symbols may be interposed by our
//! own preload library.
#![allow(unsafe_code)]

pub mod bare;
pub mod blocking_read;
pub mod calls;
pub mod confine;
pub mod file_maps;
pub mod files;
pub mod folders;
pub mod futex;
pub mod lifeline;
pub mod maps;
pub mod measure;
pub mod memory;
pub mod namespaces;
pub mod observed;
pub mod pagemap;
pub mod personality;
pub mod pidfd;
pub mod pool;
pub mod program;
pub mod reserve;
pub mod ring;
pub mod shm;
pub mod signal;
pub mod sizes;
pub mod socket;
pub mod status;
pub mod tasks;
#[cfg(test)]
pub mod testing;
pub mod thread;
pub mod uffd;
pub mod workers;

pub use rustix::io::Errno;

use rustix::event::Timespec;

/// Bytes in a page, as an address-sized number.
pub const PAGE: usize = tidemark_core::id::PAGE_BYTES as usize;

/// Nanoseconds, as system calls take them.
fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

/// The error of the calling thread's last call.
fn last_error() -> Errno {
    Errno::from_raw_os_error(error_number())
}

/// The number of the calling thread's last error; zero if there was none.
fn error_number() -> i32 {
    // SAFETY: libc gives the address of the calling thread's error number.
    unsafe { *libc::__errno_location() }
}

/// Puts that number back, for a handler of signals.
fn set_error_number(number: i32) {
    // SAFETY: libc gives the address of the calling thread's error number.
    unsafe { *libc::__errno_location() = number };
}
