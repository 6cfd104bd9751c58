//! The way of a userfaultfd from the engine that forks to the child's.

use std::os::fd::RawFd;

/// The word of an engine that forks on the userfaultfd of the child, in the child's record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// Nothing yet.
    Open,
    /// There is no userfaultfd, or it can't be taken.
    Nothing,
    /// The child has ended, and all that used its memory, before it said hello.
    Ended,
    /// The userfaultfd can be taken.
    File(Loan),
    /// The child's engine has a copy of the userfaultfd.
    Taken(Loan),
}

/// An open userfaultfd of a child. No two that are open are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loan {
    /// The place in the table of the process whose engine has it open.
    pub lender: u32,
    /// The descriptor's number in the file table of that engine.
    pub number: RawFd,
}

impl Offer {
    pub(super) fn of(word: u64) -> Offer {
        match (word % KINDS, Loan::of(word / KINDS)) {
            (0, _) => Offer::Open,
            (1, _) => Offer::Nothing,
            (2, _) => Offer::Ended,
            (3, loan) => Offer::File(loan),
            (_, loan) => Offer::Taken(loan),
        }
    }

    pub(super) fn word(self) -> u64 {
        match self {
            Offer::Open => 0,
            Offer::Nothing => 1,
            Offer::Ended => 2,
            Offer::File(loan) => loan.word() * KINDS + 3,
            Offer::Taken(loan) => loan.word() * KINDS + 4,
        }
    }
}

const KINDS: u64 = 8;

/// The numbers of files have 31 bits.
const NUMBERS: u64 = 1 << 31;

impl Loan {
    fn of(word: u64) -> Loan {
        Loan {
            lender: (word / NUMBERS) as u32,
            number: (word % NUMBERS) as RawFd,
        }
    }

    fn word(self) -> u64 {
        u64::from(self.lender) * NUMBERS + self.number as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_tells_all_of_an_offer() {
        for (lender, number) in [(0, 0), (7, 3), (4095, i32::MAX)] {
            let loan = Loan { lender, number };
            for offer in [Offer::File(loan), Offer::Taken(loan)] {
                assert_eq!(Offer::of(offer.word()), offer);
            }
        }
        for offer in [Offer::Open, Offer::Nothing, Offer::Ended] {
            assert_eq!(Offer::of(offer.word()), offer);
        }
        assert_eq!(Offer::of(0), Offer::Open, "as in a record just claimed");
    }
}
