//! The pieces that tests of all crates share: the rule by which they are skipped, and [servers].
//!
//! A test that needs a privilege or a program that is missing says so and passes. With
//! `REQUIRE_ALL=1`, as in continuous integration, that is a failure.
#![forbid(unsafe_code)]

pub mod servers;

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
