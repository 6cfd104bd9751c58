//! How long the string of a trace is and when it ends, from its index: before it is read.

use std::collections::BTreeMap;

use tidemark_trace::{Block, Blocks, Error, TimeUnit, Unpacker};

use crate::analysis::references::Clock;

/// The extent of a trace's references, over all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// How many references there are.
    pub(super) references: u64,
    /// Virtual time at the last of them, in the trace's unit.
    pub(super) time: u64,
    /// The tick that their string ends at.
    pub(super) end: u64,
}

impl Extent {
    /// The extent of the references in `blocks`.
    ///
    /// The index has times of blocks, which may end with an event. Only behind a process's last
    /// reference does that matter: there blocks are read.
    pub(super) fn of(blocks: &Blocks) -> Result<Extent, Error> {
        let references = blocks.index().records();
        if blocks.header().time == TimeUnit::References || references == 0 {
            return Ok(Extent {
                references,
                time: references,
                end: references,
            });
        }
        let entries = &blocks.index().entries;
        let last = entries.iter().rposition(|entry| entry.records > 0);
        let entries = &entries[..=last.expect("there are references")];
        let places = entries.iter().enumerate();
        let last_of: BTreeMap<u32, usize> = places
            .map(|(place, entry)| (entry.process, place))
            .collect();
        let mut unpacker = Unpacker::new()?;
        let mut block = Block::default();
        let mut clock = Clock::default();
        for (place, entry) in entries.iter().enumerate() {
            clock.begin(entry.process, entry.time_start);
            if last_of[&entry.process] != place {
                clock.pass(entry.time_end - entry.time_start);
            } else if entry.records > 0 {
                blocks.read(place, &mut unpacker, &mut block)?;
                clock.pass(block.gaps.iter().map(|&gap| u64::from(gap)).sum());
            }
        }
        Ok(Extent {
            references,
            time: clock.now,
            end: clock.now + 1,
        })
    }
}
