//! The memory systems there are: presets of policy, pacing, clusters, load control and costs.
//!
//! One file a family, one line a system in [`entries`]. All run on the same machine
//! ([`machines::PRESENT`]) unless a study says otherwise: they are compared by what they do, not by
//! the hardware of their day. A system's own costs are: messages where its pagers are programs,
//! moves instead of page table entries where it runs in user space.

use crate::near::collect_near;
use crate::world::System;

pub mod linux;
pub mod mach;
pub mod machines;
mod marks;
pub mod plain;
pub mod sets;
pub mod unix;

/// All systems, in the order of their history, our own last.
pub fn entries() -> &'static [System] {
    ENTRIES
}

/// The system of that name.
pub fn find(name: &str) -> Option<&'static System> {
    ENTRIES.iter().find(|system| system.name == name)
}

/// The names of systems that differ from `name` by little, nearest first.
pub fn near(name: &str) -> Vec<&'static str> {
    collect_near(name, ENTRIES.iter().map(|system| system.name))
}

/// Returns true if a policy treats pages of files otherwise than programs' own: what is replayed
/// must say which is which.
pub fn tells_files(policy: &str) -> bool {
    TELL_FILES.contains(&policy)
}

static TELL_FILES: &[&str] = &[
    "gnumach",
    "gnumach-activity",
    "gnumach-balanced",
    "linux-modern",
    "linux-rmap15",
    "mglru",
    "netbsd",
    "osf-mk",
];

static ENTRIES: &[System] = &[
    plain::FIFO,
    plain::CLOCK,
    sets::WORKING_SET,
    sets::PFF,
    sets::VMS,
    mach::MACH86,
    mach::MACH3,
    unix::OSF_MK,
    linux::CLASSZONE,
    linux::RMAP,
    linux::RMAP13B,
    linux::RMAP15,
    linux::MODERN,
    linux::MGLRU,
    unix::NETBSD,
    unix::NETBSD_CLOCK_PRO,
    unix::FREEBSD,
    mach::GNUMACH,
    mach::GNUMACH_ACTIVITY,
    mach::GNUMACH_BALANCED,
    plain::TIDEMARK,
];

#[cfg(test)]
mod tests;
