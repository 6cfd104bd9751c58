//! The pieces that tests of all crates share: the rule by which they are skipped, [servers] and
//! [waits].
//!
//! A test that needs a privilege or a program that is missing says so and passes. With
//! `REQUIRE_ALL=1`, as in continuous integration, that is a failure.
#![forbid(unsafe_code)]

pub mod servers;
pub mod waits;

use std::fmt::Display;

/// Says that a test can't run, and `why`.
///
/// # Panics
/// With `REQUIRE_ALL=1`.
pub fn skip(why: &str) {
    skip_if_allowed(why, std::env::var("REQUIRE_ALL").ok().as_deref());
}

/// True if `is_met`; else says that a test can't run, and `why`, as [`skip`] does.
pub fn require(is_met: bool, why: &str) -> bool {
    if !is_met {
        skip(why);
    }
    is_met
}

/// Returns the engine or the like that was started, unless `is_refusal` says of the error that the
/// system does not permit it: then the test is skipped.
///
/// # Panics
/// At any other error.
pub fn permitted<T, E: Display>(
    started: Result<T, E>,
    is_refusal: impl FnOnce(&E) -> bool,
) -> Option<T> {
    match started {
        Ok(started) => Some(started),
        Err(error) if is_refusal(&error) => {
            skip(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Reads and writes parts of `region` at random, in lockstep with `plain`, which has the same
/// contents; calls `between` before each turn. `below` draws a number below another.
///
/// # Panics
/// They differ.
pub fn in_lockstep(
    region: &mut [u8],
    plain: &mut [u8],
    turns: u64,
    mut below: impl FnMut(u64) -> u64,
    mut between: impl FnMut(u64),
) {
    const PART_BYTES_MAX: u64 = 5 * 4096;
    for turn in 0..turns {
        between(turn);
        let start = below(plain.len() as u64) as usize;
        let part = start..(start + below(PART_BYTES_MAX) as usize).min(plain.len());
        if below(3) == 0 {
            let value = below(256) as u8;
            region[part.clone()].fill(value);
            plain[part].fill(value);
        } else {
            assert!(
                region[part.clone()] == plain[part.clone()],
                "{turn}: {part:?}"
            );
        }
    }
    assert!(region == plain);
}

fn skip_if_allowed(why: &str, required: Option<&str>) {
    assert!(
        required != Some("1"),
        "{why}, and REQUIRE_ALL=1 asks for every test"
    );
    eprintln!("skipped: {why}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_skipped_where_not_every_one_is_required() {
        skip_if_allowed("needs a pear", None);
        skip_if_allowed("needs a pear", Some("0"));
        assert!(require(true, "needs a pear"));
    }

    #[test]
    #[should_panic(expected = "needs a pear, and REQUIRE_ALL=1 asks for every test")]
    fn a_skip_is_a_failure_where_every_test_is_required() {
        skip_if_allowed("needs a pear", Some("1"));
    }
}
