//! Descriptions: what a policy says of itself.

/// The description that a policy gives of itself.
#[derive(Debug)]
pub struct Description {
    /// The name on the command line and in reports: lower case, hyphens.
    pub name: &'static str,
    /// One line of meaning.
    pub summary: &'static str,
    /// The publications and systems it follows, oldest first.
    pub lineage: &'static [&'static str],
    /// The least it must see.
    pub sees: Sees,
    /// The knobs: name, meaning, range, default.
    pub knobs: &'static [Knob],
}

/// The least information that a policy must be shown. Each includes the ones before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sees {
    /// Faults, and soft faults on pages it had unmapped.
    Faults,
    /// One bit a page, sampled and cleared when the policy asks.
    Bits,
    /// Every reference, in order. Simulation only.
    References,
    /// The references still to come. Simulation only.
    Future,
}

impl Sees {
    /// Returns true if a machine that runs programs can show it: no more than a bit a page.
    pub fn is_shown_live(self) -> bool {
        self <= Sees::Bits
    }
}

/// A number that changes how a policy behaves.
#[derive(PartialEq, Eq, Debug)]
pub struct Knob {
    /// The name, lower case with hyphens.
    pub name: &'static str,
    /// The effect of the value, and its unit.
    pub meaning: &'static str,
    /// The least value.
    pub min: u64,
    /// The greatest value.
    pub max: u64,
    /// The value if it is not set.
    pub default: u64,
}
