//! Fates: what is known of pages that came ahead of their use.
//!
//! A page that came so and is not mapped can't be used without a fault: what becomes of it is
//! counted. One that was mapped before its first touch can: its first use leaves no trace where
//! there are no reference bits, and only a later fault, or a write, shows that it was used. What
//! is counted as used or as unused here is so; the rest is not known.
//!
//! A fate is for counting alone. No decision depends on it.

/// The knowledge of the page in a frame, if it came ahead of its use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// The page did not come ahead of its use, or that use has been counted.
    Settled,
    /// Not mapped since: it has not been touched.
    Untouched,
    /// The page was mapped before its first use. No fault shows that use.
    Hidden,
    /// The page was mapped before its first use, and a walk has gone past it since.
    Passed,
    /// Its program has written to it: it was used.
    Written,
}

impl Fate {
    /// All, by their numbers.
    pub(crate) const ALL: [Fate; 5] = [
        Fate::Settled,
        Fate::Untouched,
        Fate::Hidden,
        Fate::Passed,
        Fate::Written,
    ];

    /// The fate of a page that is mapped without a fault that waits for it.
    pub(crate) fn mapped(self) -> Fate {
        match self {
            Fate::Untouched => Fate::Hidden,
            Fate::Settled | Fate::Hidden | Fate::Passed | Fate::Written => self,
        }
    }

    /// The fate of a page that a walk has gone past.
    pub(crate) fn passed(self) -> Fate {
        match self {
            Fate::Hidden => Fate::Passed,
            Fate::Settled | Fate::Untouched | Fate::Passed | Fate::Written => self,
        }
    }

    /// The fate of a page that holds something else than when it came.
    pub(crate) fn written(self) -> Fate {
        match self {
            Fate::Hidden | Fate::Passed => Fate::Written,
            Fate::Settled | Fate::Untouched | Fate::Written => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_was_never_mapped_was_not_used_whoever_goes_past_it() {
        assert_eq!(Fate::Untouched.passed().written(), Fate::Untouched);
    }

    #[test]
    fn a_page_that_is_mapped_ahead_is_known_to_be_used_when_it_was_written() {
        let mapped = Fate::Untouched.mapped();
        assert_eq!(mapped, Fate::Hidden);
        assert_eq!(mapped.passed(), Fate::Passed);
        assert_eq!(mapped.passed().written(), Fate::Written);
        assert_eq!(mapped.written().mapped().passed(), Fate::Written);
    }

    #[test]
    fn what_is_settled_stays_so() {
        assert_eq!(Fate::Settled.mapped().passed().written(), Fate::Settled);
    }
}
