//! The number of references of a trace and the time of the last one, from its index: before the
//! trace is read.

use std::collections::BTreeMap;

use tidemark_trace::container::Entry;
use tidemark_trace::{Block, Blocks, Error, ErrorKind, TimeUnit, Unpacker};

use crate::analysis::references::{Clock, TIME_MAX};

/// The extent of a trace's references, over all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// The number of references.
    pub(super) references: u64,
    /// Virtual time from the beginning of the first block to the last of them, in the trace's unit.
    pub(super) time: u64,
    /// The tick that their string ends at.
    pub(super) end: u64,
}

impl Extent {
    /// The extent of the references in `blocks`: of all processes, or of those that are chosen.
    ///
    /// The index has times of blocks, which may end with an event. Only behind a process's last
    /// reference does that matter: there blocks are read.
    pub(super) fn of(blocks: &Blocks, chosen: Option<&[u32]>) -> Result<Extent, Error> {
        let is_chosen = |process: u32| chosen.is_none_or(|chosen| chosen.contains(&process));
        let entries = blocks.index().entries.iter().enumerate();
        let entries = entries.filter(|(_, entry)| is_chosen(entry.process));
        let mut entries: Vec<(usize, Entry)> = entries.map(|(at, &entry)| (at, entry)).collect();
        let references = entries
            .iter()
            .map(|(_, entry)| u64::from(entry.records))
            .sum();
        if blocks.header().time == TimeUnit::References || references == 0 {
            return Ok(Extent {
                references,
                time: references,
                end: references,
            });
        }
        let last = entries.iter().rposition(|(_, entry)| entry.records > 0);
        entries.truncate(last.expect("there are references") + 1);
        let last_of: BTreeMap<u32, usize> = entries
            .iter()
            .map(|(place, entry)| (entry.process, *place))
            .collect();
        let mut unpacker = Unpacker::new()?;
        let mut block = Block::default();
        let mut clock = Clock::default();
        for (place, entry) in entries {
            clock.begin(entry.process, entry.time_start);
            if last_of[&entry.process] != place {
                clock.pass(entry.time_end.saturating_sub(entry.time_start));
            } else if entry.records > 0 {
                blocks.read(place, &mut unpacker, &mut block)?;
                clock.pass(block.gaps.iter().map(|&gap| u64::from(gap)).sum());
            }
        }
        Ok(Extent {
            references,
            time: clock.now,
            end: clock.now.saturating_add(1),
        })
    }

    /// Refuses more time than analyses count.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.time > TIME_MAX {
            true => Err(Error::new(ErrorKind::TooLarge {
                what: "the time of all processes together,",
                value: self.time,
                max: TIME_MAX,
            })),
            false => Ok(()),
        }
    }
}
