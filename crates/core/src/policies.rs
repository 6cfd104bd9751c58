//! The policies there are: a declaration and a line of the list each, both in this file.
//!
//! Help texts, tables, names in bindings and the tests that every policy must pass all follow
//! from this list and from what each policy says of itself.

use alloc::boxed::Box;

use crate::seams::policy::{Description, Policy};

use settings::resolve_knobs;

pub use settings::{BuildError, Settings};

mod parts;
pub mod settings;
pub mod tidemark;

/// Policies of textbooks: queues, clocks and working sets.
pub mod classic {
    pub mod clock;
    pub mod fifo;
    pub mod lfu;
    pub mod lru;
    pub mod mru;
    pub mod opt;
    pub mod pff;
    pub mod random;
    pub mod vmin;
    pub mod working_set;
    pub mod wsclock;
}

/// Policies of the literature on caches.
pub mod caches {
    pub mod arc;
    pub mod car;
    pub mod clock_pro;
    pub mod dclock;
    pub mod eelru;
    pub mod least_stale;
    pub mod lirs;
    pub mod s3_fifo;
    pub mod sieve;
    pub mod slru;
    pub mod two_q;
}

/// Policies of operating systems.
pub mod kernels {
    pub mod freebsd;
    pub mod gnumach;
    pub mod linux_classzone;
    pub mod linux_modern;
    pub mod linux_rmap13b;
    pub mod linux_rmap15;
    pub mod mach3;
    pub mod mach86;
    pub mod mglru;
    pub mod netbsd;
    pub mod netbsd_clock_pro;
    pub mod nt;
    pub mod osf_mk;
    pub mod vms;
}

/// Lists every policy: what it says of itself, and how it is made.
macro_rules! register {
    ($($description:path => $build:path,)*) => {
        static ENTRIES: &[Entry] = &[$(Entry { description: &$description }),*];

        /// Makes the policy of `entry`, and has it visited.
        fn make_and_visit<V: Visitor>(entry: &Entry, settings: Settings, visitor: V) -> V::Output {
            $(if core::ptr::eq(entry.description, &$description) {
                return visitor.visit($build(settings));
            })*
            unreachable!("every entry is in the list")
        }
    };
}

register! {
    classic::fifo::DESCRIPTION => classic::fifo::build,
    classic::clock::DESCRIPTION => classic::clock::build,
    classic::random::DESCRIPTION => classic::random::build,
    kernels::mach86::DESCRIPTION => kernels::mach86::build,
    kernels::mach3::DESCRIPTION => kernels::mach3::build,
    kernels::gnumach::RELEASED => kernels::gnumach::build_released,
    kernels::gnumach::ACTIVITY => kernels::gnumach::build_activity,
    kernels::gnumach::BALANCED => kernels::gnumach::build_balanced,
    kernels::osf_mk::DESCRIPTION => kernels::osf_mk::build,
    kernels::linux_classzone::VIRTUAL => kernels::linux_classzone::build_virtual,
    kernels::linux_classzone::REVERSE => kernels::linux_classzone::build_reverse,
    kernels::linux_rmap13b::DESCRIPTION => kernels::linux_rmap13b::build,
    kernels::linux_rmap15::DESCRIPTION => kernels::linux_rmap15::build,
    kernels::linux_modern::DESCRIPTION => kernels::linux_modern::build,
    kernels::mglru::DESCRIPTION => kernels::mglru::build,
    caches::dclock::DESCRIPTION => caches::dclock::build,
    kernels::netbsd::DESCRIPTION => kernels::netbsd::build,
    kernels::netbsd_clock_pro::DESCRIPTION => kernels::netbsd_clock_pro::build,
    kernels::freebsd::DESCRIPTION => kernels::freebsd::build,
    classic::working_set::DESCRIPTION => classic::working_set::build,
    classic::pff::DESCRIPTION => classic::pff::build,
    classic::working_set::DAMPED => classic::working_set::build_damped,
    classic::vmin::DESCRIPTION => classic::vmin::build,
    kernels::vms::DESCRIPTION => kernels::vms::build,
    classic::wsclock::DESCRIPTION => classic::wsclock::build,
    kernels::nt::DESCRIPTION => kernels::nt::build,
    classic::lru::DESCRIPTION => classic::lru::build,
    classic::lfu::DESCRIPTION => classic::lfu::build,
    classic::mru::DESCRIPTION => classic::mru::build,
    caches::slru::DESCRIPTION => caches::slru::build,
    caches::eelru::DESCRIPTION => caches::eelru::build,
    caches::two_q::DESCRIPTION => caches::two_q::build,
    caches::two_q::FAULTS => caches::two_q::build_faults,
    caches::lirs::DESCRIPTION => caches::lirs::build,
    caches::arc::DESCRIPTION => caches::arc::build,
    caches::car::DESCRIPTION => caches::car::build,
    caches::clock_pro::DESCRIPTION => caches::clock_pro::build,
    caches::s3_fifo::DESCRIPTION => caches::s3_fifo::build,
    caches::s3_fifo::BITS => caches::s3_fifo::build_bits,
    caches::sieve::DESCRIPTION => caches::sieve::build,
    caches::least_stale::DESCRIPTION => caches::least_stale::build,
    classic::opt::DESCRIPTION => classic::opt::build,
    tidemark::DESCRIPTION => tidemark::build,
}

/// One policy of the registry.
#[derive(Debug)]
pub struct Entry {
    /// The policy's own description.
    pub description: &'static Description,
}

/// Does something with a policy as the type it is, so that the compiler knows what each call of it
/// does: for loops that ask a policy at every reference.
pub trait Visitor {
    /// The result.
    type Output;

    /// Does it.
    fn visit<P: Policy + 'static>(self, policy: P) -> Self::Output;
}

/// All policies, in the order of their history.
pub fn entries() -> &'static [Entry] {
    ENTRIES
}

/// The policy of that name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.description.name == name)
}

/// Makes the policy of that name for a memory of `frames` frames that may grow to `frames_max`.
/// Knobs that are not named keep their defaults.
pub fn build<'a>(
    name: &'a str,
    frames_max: u32,
    frames: u32,
    seed: u64,
    knobs: &[(&'a str, u64)],
) -> Result<Box<dyn Policy>, BuildError<'a>> {
    visit(name, frames_max, frames, seed, knobs, Boxed)
}

/// Puts a policy behind the calls that all have in common: what [`build`] answers.
#[derive(Debug)]
pub struct Boxed;

impl Visitor for Boxed {
    type Output = Box<dyn Policy>;

    fn visit<P: Policy + 'static>(self, policy: P) -> Box<dyn Policy> {
        Box::new(policy)
    }
}

/// Makes a policy as [`build`] does, and has `visitor` visit it.
pub fn visit<'a, V: Visitor>(
    name: &'a str,
    frames_max: u32,
    frames: u32,
    seed: u64,
    knobs: &[(&'a str, u64)],
    visitor: V,
) -> Result<V::Output, BuildError<'a>> {
    assert!(frames <= frames_max);
    let entry = find(name).ok_or(BuildError::UnknownPolicy { name })?;
    let settings = Settings {
        frames_max,
        frames,
        seed,
        knobs: resolve_knobs(entry.description.knobs, knobs)?,
    };
    Ok(make_and_visit(entry, settings, visitor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_or_out_of_range_is_named() {
        let error = |name, knobs: &[(&'static str, u64)]| build(name, 8, 8, 0, knobs).err();
        assert_eq!(
            error("lifo", &[]),
            Some(BuildError::UnknownPolicy { name: "lifo" })
        );
        let unknown = Some(BuildError::UnknownKnob { name: "speed" });
        assert_eq!(error("mach86", &[("speed", 1)]), unknown);
        let knob = &find("mach86").unwrap().description.knobs[0];
        let range = Some(BuildError::OutOfRange { knob, value: 1001 });
        assert_eq!(error("mach86", &[("inactive", 1001)]), range);
        assert_eq!(error("mach86", &[("inactive", 1000)]), None);
    }
}
