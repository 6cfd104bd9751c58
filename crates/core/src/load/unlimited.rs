//! No load control: everything runs, always.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::seams::load_control::{Description, LoadControl, LoadView, Verdict};

/// The description of `none`.
pub static DESCRIPTION: Description = Description {
    name: "none",
    summary: "everything runs, always",
    lineage: &["Mach 1986"],
    knobs: &[],
    is_live: true,
};

/// Everything runs, always.
pub struct Unlimited;

/// Makes a `none`.
pub fn build(_knobs: &[u64]) -> Box<dyn LoadControl> {
    Box::new(Unlimited)
}

impl LoadControl for Unlimited {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn tick(&mut self, _view: &LoadView<'_>, _verdicts: &mut Vec<Verdict>) {}
}
