//! Faults on purpose: the store fails when told to, so that tests see what follows.

use tidemark_core::seams::pager::Direction;

/// The transfers that are to go wrong. Counts from one, in the order in which calls finish.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FaultPlan {
    rules: Vec<Rule>,
    reads: u64,
    writes: u64,
    /// The number of writes that were about to begin.
    begun: u64,
}

/// One entry of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    Read(u64),
    Write(u64),
    Flip(u64),
    /// All writes from this one on: a full disk.
    WritesFrom(u64),
    /// The process ends in the midst of this write.
    Cut(u64),
    /// This many first calls are refused for now: a kernel short of memory.
    Again(u64),
}

/// The bit of a byte that [`Injected::Flip`] turns over.
pub(super) const FLIPPED: u8 = 0x10;

/// The failure of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Injected {
    /// Nothing.
    Nothing,
    /// The call fails.
    Error,
    /// The call is refused for now.
    Refusal,
    /// The call reads a bit wrongly.
    Flip,
}

impl FaultPlan {
    /// Reads a plan: `read:N`, `write:N` (the Nth call fails), `flip:N` (the Nth read has a bit
    /// turned over), `writes-from:N` (that call and all later ones fail), `again:N` (the first N
    /// reads, and the first N writes, are refused for now), `cut:N` (the process ends in the midst
    /// of the Nth write); several with commas between. Answers the entry it can't read, if any.
    pub fn parse(text: &str) -> Result<FaultPlan, &str> {
        let entries = text.split(',').filter(|entry| !entry.is_empty());
        let rules = entries.map(|entry| Rule::parse(entry).ok_or(entry));
        Ok(FaultPlan {
            rules: rules.collect::<Result<_, _>>()?,
            reads: 0,
            writes: 0,
            begun: 0,
        })
    }

    /// Counts a write that is about to begin. Returns true if the process ends in its midst.
    pub fn cuts_next_write(&mut self) -> bool {
        self.begun += 1;
        self.rules.contains(&Rule::Cut(self.begun))
    }

    /// Counts a finished call, and returns the fault to inject.
    pub fn next(&mut self, direction: Direction) -> Injected {
        let (read, write) = match direction {
            Direction::Fetch => {
                self.reads += 1;
                (self.reads, 0)
            }
            Direction::Store => {
                self.writes += 1;
                (0, self.writes)
            }
        };
        for rule in &self.rules {
            match *rule {
                Rule::Read(at) if at == read => return Injected::Error,
                Rule::Write(at) if at == write => return Injected::Error,
                Rule::WritesFrom(at) if write >= at => return Injected::Error,
                Rule::Flip(at) if at == read => return Injected::Flip,
                Rule::Again(count) if read.max(write) <= count => return Injected::Refusal,
                Rule::Read(_) | Rule::Write(_) | Rule::WritesFrom(_) | Rule::Flip(_) => {}
                Rule::Again(_) | Rule::Cut(_) => {}
            }
        }
        Injected::Nothing
    }
}

impl Rule {
    fn parse(entry: &str) -> Option<Rule> {
        let (kind, number) = entry.split_once(':')?;
        let at = number.parse().ok().filter(|at| *at > 0)?;
        match kind {
            "read" => Some(Rule::Read(at)),
            "write" => Some(Rule::Write(at)),
            "flip" => Some(Rule::Flip(at)),
            "writes-from" => Some(Rule::WritesFrom(at)),
            "cut" => Some(Rule::Cut(at)),
            "again" => Some(Rule::Again(at)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_fails_the_calls_it_names_and_no_others() {
        let mut plan = FaultPlan::parse("read:2,writes-from:3,flip:3").unwrap();
        let reads: Vec<_> = (0..4).map(|_| plan.next(Direction::Fetch)).collect();
        let (nothing, error, flip) = (Injected::Nothing, Injected::Error, Injected::Flip);
        assert_eq!(reads, [nothing, error, flip, nothing]);
        let writes: Vec<_> = (0..4).map(|_| plan.next(Direction::Store)).collect();
        assert_eq!(writes, [nothing, nothing, error, error]);
    }

    #[test]
    fn a_plan_cuts_the_write_that_it_names() {
        let mut plan = FaultPlan::parse("cut:2").unwrap();
        assert!(!plan.cuts_next_write() && plan.cuts_next_write() && !plan.cuts_next_write());
    }

    #[test]
    fn what_is_no_plan_is_named() {
        assert_eq!(FaultPlan::parse("read:1,write:x"), Err("write:x"));
        assert_eq!(FaultPlan::parse("read:0"), Err("read:0"));
        assert_eq!(FaultPlan::parse(""), Ok(FaultPlan::default()));
    }
}
