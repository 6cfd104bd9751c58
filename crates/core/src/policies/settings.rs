//! Settings: what a policy or a load control is made from, and why it can't be.

use alloc::vec::Vec;

use crate::seams::description::Knob;

/// The sizes and choices that a policy is made from.
#[derive(Debug)]
pub struct Settings {
    /// The most frames there can ever be: the size of a policy's tables.
    pub frames_max: u32,
    /// The number of frames usable now.
    pub frames: u32,
    /// The seed of random numbers.
    pub seed: u64,
    /// The values of the knobs, in the order of the description.
    pub knobs: Vec<u64>,
}

/// The reason why a policy can't be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BuildError<'a> {
    /// No policy has that name.
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
        knob: &'static Knob,
        /// The value that was asked for.
        value: u64,
    },
}

/// The values of the knobs that are `known`, in their order, where some are `named`.
pub(crate) fn resolve_knobs<'a>(
    known: &'static [Knob],
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
