//! PFF: memory grows and shrinks with the frequency of page faults.
//!
//! At a fault that comes at least `critical` ticks after the fault before, every page not used
//! since that fault leaves; at a quicker one none does. Either way the use bits are cleared.
//!
//! A run takes constant time a reference, whatever the number of resident pages: with the faults
//! numbered, a page remembers the number current at its last use, and is resident exactly if that
//! is not below the number current when pages were last released.
//!
//! Pages that depart are gone from the first reference on that comes later than their last uses.
//!
//! Source: W. W. Chu and H. Opderbeck, *The Page Fault Frequency Replacement Algorithm*, FJCC 1972.
//! Known failure: a steady stream of new pages faults too evenly ever to be released.

use rayon::prelude::*;

use super::reference_string::{Clock, ClockJob, ReferenceString};
use super::references::Departure;
use super::residence::{Arrival, Totals, Watcher};

/// Runs PFF for each of `criticals`, in ticks, on every processor.
pub fn run_pff(string: ReferenceString<'_>, criticals: &[u64]) -> Vec<Totals> {
    criticals
        .par_iter()
        .map(|&critical| watch_pff(string, critical, Totals::default()))
        .collect()
}

/// Shows PFF's resident set with the interval `critical`, in ticks, to `watcher`, and returns it.
pub fn watch_pff<W: Watcher>(string: ReferenceString<'_>, critical: u64, watcher: W) -> W {
    string.with_clock(Run { critical, watcher })
}

/// The run: everything but the clock.
struct Run<W> {
    critical: u64,
    watcher: W,
}

impl<'a, W: Watcher> ClockJob<'a> for Run<W> {
    type Answer = W;

    fn run<C: Clock>(mut self, string: ReferenceString<'a>, clock: C) -> W {
        // The number of faults so far, at each page's last use; 0 for none.
        let mut stamps = vec![0u32; string.page_count() as usize];
        assert!(string.pages().len() < u32::MAX as usize);
        let (mut current, mut floor) = (0u32, 1u32);
        let (mut size, mut used) = (0u64, 0u64);
        let mut now = string.start();
        let mut fault_before = now;
        let mut departures = string.departures();
        let mut due = next_due(departures);
        for (place, &page) in string.pages().iter().enumerate() {
            while place as u64 >= due {
                let (departed, others) = departures.split_first().expect("one is due");
                let time = clock.at(place);
                if time <= clock.at((departed.before as usize).saturating_sub(1)) && place > 0 {
                    break;
                }
                if time > now {
                    self.watcher.stayed(now, time, size);
                    now = time;
                }
                let stamps = departed.pages.iter().map(|&page| stamps[page as usize]);
                for stamp in stamps.filter(|&stamp| stamp >= floor) {
                    size -= 1;
                    used -= u64::from(stamp == current);
                }
                departures = others;
                due = next_due(departures);
            }
            let stamp = stamps[page as usize];
            if stamp == current && current > 0 {
                continue;
            }
            if stamp >= floor {
                stamps[page as usize] = current;
                used += 1;
                continue;
            }
            let time = clock.at(place);
            if time > now {
                self.watcher.stayed(now, time, size);
                now = time;
            }
            if time - fault_before >= self.critical {
                floor = current.max(1);
                size = used;
            }
            fault_before = time;
            current += 1;
            stamps[page as usize] = current;
            used = 1;
            size += 1;
            let cause = match stamp {
                0 => Arrival::First,
                _ => Arrival::Return,
            };
            self.watcher.faulted(size, cause);
        }
        if string.end() > now {
            self.watcher.stayed(now, string.end(), size);
        }
        self.watcher
    }
}

/// Before which reference the first of these departures comes.
fn next_due(departures: &[Departure]) -> u64 {
    departures.first().map_or(u64::MAX, |first| first.before)
}

#[cfg(test)]
mod tests;
