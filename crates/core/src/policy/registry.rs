//! The policies there are: one line each.
//!
//! Help texts, tables, names in bindings and the tests that every policy must pass all follow
//! from this list and from what each policy says of itself.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::{Description, Policy};
use super::{arc, car, clock_pro, eelru, lirs, lru, mru, opt, s3_fifo, sieve, slru, two_q};
use super::{clock, fifo, gnumach, mach3, mach86, random, tidemark};
use super::{dclock, freebsd, linux_classzone, linux_modern, linux_rmap13b, linux_rmap15};
use super::{mglru, netbsd, netbsd_clock_pro, osf_mk};
use super::{nt, pff, vmin, vms, working_set, wsclock};

/// Every policy: what it says of itself, and how it is made.
static ENTRIES: &[Entry] = &[
    Entry {
        description: &fifo::DESCRIPTION,
        build: fifo::build,
    },
    Entry {
        description: &clock::DESCRIPTION,
        build: clock::build,
    },
    Entry {
        description: &random::DESCRIPTION,
        build: random::build,
    },
    Entry {
        description: &mach86::DESCRIPTION,
        build: mach86::build,
    },
    Entry {
        description: &mach3::DESCRIPTION,
        build: mach3::build,
    },
    Entry {
        description: &gnumach::RELEASED,
        build: gnumach::build_released,
    },
    Entry {
        description: &gnumach::ACTIVITY,
        build: gnumach::build_activity,
    },
    Entry {
        description: &gnumach::BALANCED,
        build: gnumach::build_balanced,
    },
    Entry {
        description: &osf_mk::DESCRIPTION,
        build: osf_mk::build,
    },
    Entry {
        description: &linux_classzone::VIRTUAL,
        build: linux_classzone::build_virtual,
    },
    Entry {
        description: &linux_classzone::REVERSE,
        build: linux_classzone::build_reverse,
    },
    Entry {
        description: &linux_rmap13b::DESCRIPTION,
        build: linux_rmap13b::build,
    },
    Entry {
        description: &linux_rmap15::DESCRIPTION,
        build: linux_rmap15::build,
    },
    Entry {
        description: &linux_modern::DESCRIPTION,
        build: linux_modern::build,
    },
    Entry {
        description: &mglru::DESCRIPTION,
        build: mglru::build,
    },
    Entry {
        description: &dclock::DESCRIPTION,
        build: dclock::build,
    },
    Entry {
        description: &netbsd::DESCRIPTION,
        build: netbsd::build,
    },
    Entry {
        description: &netbsd_clock_pro::DESCRIPTION,
        build: netbsd_clock_pro::build,
    },
    Entry {
        description: &freebsd::DESCRIPTION,
        build: freebsd::build,
    },
    Entry {
        description: &working_set::DESCRIPTION,
        build: working_set::build,
    },
    Entry {
        description: &pff::DESCRIPTION,
        build: pff::build,
    },
    Entry {
        description: &working_set::DAMPED,
        build: working_set::build_damped,
    },
    Entry {
        description: &vmin::DESCRIPTION,
        build: vmin::build,
    },
    Entry {
        description: &vms::DESCRIPTION,
        build: vms::build,
    },
    Entry {
        description: &wsclock::DESCRIPTION,
        build: wsclock::build,
    },
    Entry {
        description: &nt::DESCRIPTION,
        build: nt::build,
    },
    Entry {
        description: &lru::DESCRIPTION,
        build: lru::build,
    },
    Entry {
        description: &mru::DESCRIPTION,
        build: mru::build,
    },
    Entry {
        description: &slru::DESCRIPTION,
        build: slru::build,
    },
    Entry {
        description: &eelru::DESCRIPTION,
        build: eelru::build,
    },
    Entry {
        description: &two_q::DESCRIPTION,
        build: two_q::build,
    },
    Entry {
        description: &lirs::DESCRIPTION,
        build: lirs::build,
    },
    Entry {
        description: &arc::DESCRIPTION,
        build: arc::build,
    },
    Entry {
        description: &car::DESCRIPTION,
        build: car::build,
    },
    Entry {
        description: &clock_pro::DESCRIPTION,
        build: clock_pro::build,
    },
    Entry {
        description: &s3_fifo::DESCRIPTION,
        build: s3_fifo::build,
    },
    Entry {
        description: &s3_fifo::BITS,
        build: s3_fifo::build_bits,
    },
    Entry {
        description: &sieve::DESCRIPTION,
        build: sieve::build,
    },
    Entry {
        description: &opt::DESCRIPTION,
        build: opt::build,
    },
    Entry {
        description: &tidemark::DESCRIPTION,
        build: tidemark::build,
    },
];

/// One policy of the registry.
#[derive(Debug)]
pub struct Entry {
    /// What the policy says of itself.
    pub description: &'static Description,
    build: fn(&Settings<'_>) -> Box<dyn Policy>,
}

/// What a policy is made from.
#[derive(Debug)]
pub struct Settings<'a> {
    /// The most frames there can ever be: the size of a policy's tables.
    pub frames_max: u32,
    /// How many frames there are now.
    pub frames: u32,
    /// Where random numbers start.
    pub seed: u64,
    /// The values of the knobs, in the order of the description.
    pub knobs: &'a [u64],
}

/// Why a policy can't be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BuildError<'a> {
    /// No policy has that name. [`near`] may know what was meant.
    UnknownPolicy {
        /// The name that was asked for.
        name: &'a str,
    },
    /// The policy has no knob of that name.
    UnknownKnob {
        /// The name that was asked for.
        name: &'a str,
    },
    /// The knob can't have that value.
    OutOfRange {
        /// The knob.
        knob: &'static super::Knob,
        /// The value that was asked for.
        value: u64,
    },
}

/// All policies, in the order of their history.
pub fn entries() -> &'static [Entry] {
    ENTRIES
}

/// The policy of that name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.description.name == name)
}

/// The names of policies that differ from `name` by little, nearest first.
pub fn near(name: &str) -> Vec<&'static str> {
    collect_near(name, ENTRIES.iter().map(|entry| entry.description.name))
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
    assert!(frames <= frames_max);
    let entry = find(name).ok_or(BuildError::UnknownPolicy { name })?;
    Ok((entry.build)(&Settings {
        frames_max,
        frames,
        seed,
        knobs: &resolve_knobs(entry.description.knobs, knobs)?,
    }))
}

/// The values of the knobs that are `known`, in their order, where some are `named`.
pub(crate) fn resolve_knobs<'a>(
    known: &'static [super::Knob],
    named: &[(&'a str, u64)],
) -> Result<Vec<u64>, BuildError<'a>> {
    let mut values: Vec<u64> = known.iter().map(|knob| knob.default).collect();
    for &(name, value) in named {
        let place = known.iter().position(|knob| knob.name == name);
        let place = place.ok_or(BuildError::UnknownKnob { name })?;
        let knob = &known[place];
        if !(knob.min..=knob.max).contains(&value) {
            return Err(BuildError::OutOfRange { knob, value });
        }
        values[place] = value;
    }
    Ok(values)
}

/// Those of the names `known` that differ from `name` by little, nearest first.
pub fn collect_near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<(usize, &str)> = Vec::new();
    for known in known {
        let edits = count_edits(name, known);
        let is_part = name.len() >= 4 && known.contains(name);
        if edits <= 1 + known.len() / 4 || is_part {
            names.push((edits, known));
        }
    }
    names.sort();
    names.into_iter().map(|(_, name)| name).collect()
}

/// The Levenshtein distance: how many bytes must be added, dropped or changed.
fn count_edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    let mut above = vec![0; to.len() + 1];
    for (i, a) in from.bytes().enumerate() {
        core::mem::swap(&mut row, &mut above);
        row[0] = i + 1;
        for (j, b) in to.bytes().enumerate() {
            let changed = above[j] + usize::from(a != b);
            row[j + 1] = changed.min(above[j + 1] + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_the_policy_that_was_meant() {
        assert_eq!(near("fif"), ["fifo"]);
        assert_eq!(near("clokc"), ["clock"]);
        assert_eq!(near("rand"), ["random"]);
        assert!(near("completely-else").is_empty());
    }

    #[test]
    fn edits_are_counted_as_levenshtein_did() {
        assert_eq!(count_edits("kitten", "sitting"), 3);
        assert_eq!(count_edits("", "abc"), 3);
        assert_eq!(count_edits("abc", "abc"), 0);
    }

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
