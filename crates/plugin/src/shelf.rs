//! The shelf: every module that has been read, by the name it was asked for.
//!
//! Names of policies go from the command line to the places where policies are made; a module goes
//! the same way under the name of its file, once it has been [`load`]ed here. The shelf only
//! grows, by what a command line can name.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tidemark_core::policies::{self, Boxed, BuildError, Visitor};
use tidemark_core::seams::policy::{Description, Policy};

use crate::guest::Setback;
use crate::host::Hosted;
use crate::module::{LoadError, describe, read};

static SHELF: Mutex<Vec<&'static Kept>> = Mutex::new(Vec::new());

/// A module that has been read.
pub struct Kept {
    /// The description that it gives of itself. Its name is that of its file, as it was asked for.
    pub description: Description,
    /// Its binary form.
    pub bytes: Vec<u8>,
    /// The number of its failures, in all policies made from it.
    pub counts: Counts,
}

/// The failures of a module, over all policies made from it in this process.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Setbacks {
    /// Calls that went beyond their bounds.
    pub stopped: u64,
    /// Calls that did what can't be done.
    pub trapped: u64,
    /// Answers that named a frame that may not leave, or none where one had to.
    pub misnamed: u64,
    /// Policies whose module is called no more.
    pub given_up: u64,
}

impl fmt::Display for Setbacks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setbacks {
            stopped,
            trapped,
            misnamed,
            given_up,
        } = self;
        write!(
            formatter,
            "{stopped} calls were stopped, {trapped} trapped, {misnamed} named no frame that may \
             leave; the oldest page left instead"
        )?;
        match given_up {
            0 => Ok(()),
            _ => formatter.write_str(", and it was called no more"),
        }
    }
}

/// [`Setbacks`] as they are counted.
#[derive(Default)]
pub struct Counts {
    stopped: AtomicU64,
    trapped: AtomicU64,
    misnamed: AtomicU64,
    given_up: AtomicU64,
    is_told: AtomicBool,
}

impl Counts {
    /// Counts a call that did not come to its end.
    pub fn add(&self, setback: &Setback) {
        let counter = match setback {
            Setback::Stopped => &self.stopped,
            Setback::Trapped(_) => &self.trapped,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an answer that could not be used.
    pub fn add_misnamed(&self) {
        self.misnamed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a policy whose module is called no more.
    pub fn add_given_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> Setbacks {
        Setbacks {
            stopped: self.stopped.load(Ordering::Relaxed),
            trapped: self.trapped.load(Ordering::Relaxed),
            misnamed: self.misnamed.load(Ordering::Relaxed),
            given_up: self.given_up.load(Ordering::Relaxed),
        }
    }
}

/// Returns true if `name` names a file rather than a policy of the registry.
pub fn is_file(name: &str) -> bool {
    name.ends_with(".wasm") || name.ends_with(".wat")
}

/// Reads the module in the file `path`, in text or binary form, so that [`build`] knows it by
/// that name. A file that has been read is not read again.
///
/// # Errors
/// If the file can't be read, or can't serve as a policy.
pub fn load(path: &str) -> Result<&'static Description, LoadError> {
    match find_kept(path) {
        Some(kept) => Ok(&kept.description),
        None => keep(path, read(path)?),
    }
}

/// Takes the module in `bytes`, in binary form, so that [`build`] knows it as `name`. One that has
/// that name stays.
///
/// # Errors
/// If it can't serve as a policy.
pub fn keep(name: &str, bytes: Vec<u8>) -> Result<&'static Description, LoadError> {
    if let Some(kept) = find_kept(name) {
        return Ok(&kept.description);
    }
    let name: &'static str = name.to_owned().leak();
    let description = describe(name, &bytes).map_err(|wrong| LoadError {
        name: name.to_owned(),
        wrong,
    })?;
    let kept = Box::leak(Box::new(Kept {
        description,
        bytes,
        counts: Counts::default(),
    }));
    SHELF
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(kept);
    Ok(&kept.description)
}

/// The policy of that name: one of the registry, or a module that has been [`load`]ed.
pub fn find(name: &str) -> Option<&'static Description> {
    let registered = policies::find(name).map(|entry| entry.description);
    registered.or_else(|| find_kept(name).map(|kept| &kept.description))
}

/// Makes the policy of that name for a memory of `frames` frames that may grow to `frames_max`:
/// as [`policies::build`], and for modules that have been [`load`]ed.
///
/// # Errors
/// If there is no such policy or knob, or the knob's value is out of its range.
pub fn build<'a>(
    name: &'a str,
    frames_max: u32,
    frames: u32,
    seed: u64,
    knobs: &[(&'a str, u64)],
) -> Result<Box<dyn Policy>, BuildError<'a>> {
    visit(name, frames_max, frames, seed, knobs, Boxed)
}

/// Makes a policy as [`build`] does, and has `visitor` visit it: as [`policies::visit`].
///
/// # Errors
/// As [`build`].
pub fn visit<'a, V: Visitor>(
    name: &'a str,
    frames_max: u32,
    frames: u32,
    seed: u64,
    knobs: &[(&'a str, u64)],
    visitor: V,
) -> Result<V::Output, BuildError<'a>> {
    let Some(kept) = find_kept(name) else {
        return policies::visit(name, frames_max, frames, seed, knobs, visitor);
    };
    match knobs.first() {
        Some(&(name, _)) => Err(BuildError::UnknownKnob { name }),
        None => Ok(visitor.visit(Hosted::new(kept, frames_max, frames, seed))),
    }
}

/// The binary form of the module `name`, as it was when it was loaded. `None` if it has not been.
pub fn binary(name: &str) -> Option<&'static [u8]> {
    find_kept(name).map(|kept| &kept.bytes[..])
}

/// The failures of the module `name` so far. `None` if it has not been loaded.
pub fn setbacks(name: &str) -> Option<Setbacks> {
    find_kept(name).map(|kept| kept.counts.read())
}

/// Takes the report on the module `name`, if anything has failed: once, when it is first
/// called no more, or when all `is_over`.
pub fn take_news(name: &str, is_over: bool) -> Option<Setbacks> {
    let counts = &find_kept(name)?.counts;
    let setbacks = counts.read();
    let is_news = setbacks.given_up > 0 || is_over && setbacks != Setbacks::default();
    let is_first = is_news && !counts.is_told.swap(true, Ordering::Relaxed);
    is_first.then_some(setbacks)
}

fn find_kept(name: &str) -> Option<&'static Kept> {
    let shelf = SHELF.lock().unwrap_or_else(PoisonError::into_inner);
    shelf
        .iter()
        .copied()
        .find(|kept| kept.description.name == name)
}
