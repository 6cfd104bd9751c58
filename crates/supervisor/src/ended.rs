//! Records of the processes of a run that have ended.
//!
//! A build or a test suite begins processes by the thousand, and a record has two kilobytes. Those
//! of the processes that paged most are kept; of the others there are the number and the sum.

use tidemark_results::{Ending, OtherProcesses, ProcessRecord};

use crate::departures::Departure;

/// The number of records that are kept. Twice as many gather before the least are summed up.
const RECORDS_KEPT: usize = 1000;

/// The processes of a run that have ended.
#[derive(Debug, Default)]
pub struct EndedProcesses {
    /// The records in the order in which the processes ended.
    kept: Vec<EndedProcess>,
    others: OtherProcesses,
}

#[derive(Debug)]
struct EndedProcess {
    record: ProcessRecord,
    /// The departure, while the ending is not known.
    departure: Option<Departure>,
}

impl EndedProcesses {
    /// Adds the record of a process, which may be on its way out as `departure` says. Of the
    /// process `main`, which the run was started for, every record is kept.
    pub fn add(&mut self, record: ProcessRecord, departure: Option<Departure>, main: Option<u32>) {
        self.kept.push(EndedProcess { record, departure });
        if self.kept.len() >= 2 * RECORDS_KEPT {
            self.settle();
            self.sum_up(main);
        }
    }

    /// Learns how the last process of this number ended.
    pub fn note_ending(&mut self, pid: u32, ending: Ending) {
        let is_it = |process: &&mut EndedProcess| process.record.pid == pid;
        if let Some(last) = self.kept.iter_mut().rfind(is_it) {
            last.departure = None;
            last.record.ending = ending;
        }
    }

    /// Writes down what has come to be known of how processes ended.
    pub fn settle(&mut self) {
        for process in &mut self.kept {
            if let Some(ending) = process.departure.as_ref().and_then(Departure::ending) {
                process.departure = None;
                process.record.ending = ending;
            }
        }
    }

    /// The records, and the sum of those that are not among them.
    pub fn finish(&mut self) -> (Vec<ProcessRecord>, OtherProcesses) {
        let kept = std::mem::take(&mut self.kept);
        let records = kept.into_iter().map(|process| process.record).collect();
        (records, std::mem::take(&mut self.others))
    }

    /// Keeps the records of those that paged most, and of those whose ending is not known.
    fn sum_up(&mut self, main: Option<u32>) {
        let mut excess = self.kept.len() - RECORDS_KEPT;
        let mut amounts: Vec<_> = self.kept.iter().map(|one| paged(&one.record)).collect();
        let most = *amounts.select_nth_unstable(excess - 1).1;
        self.kept.retain(|EndedProcess { record, departure }| {
            let may_leave = departure.is_none() && Some(record.pid) != main;
            if excess == 0 || !may_leave || paged(record) > most {
                return true;
            }
            excess -= 1;
            self.others.add(record);
            false
        });
    }
}

/// The measure by which one process is worth a record more than another.
fn paged(record: &ProcessRecord) -> (u64, u64) {
    (record.statistics.page_ins, record.statistics.frames_peak)
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use tidemark_results::Statistics;

    use super::*;

    fn record(pid: u32, page_ins: u64) -> ProcessRecord {
        ProcessRecord {
            pid,
            parent: None,
            program: "task".into(),
            ending: Ending::Gone,
            locks: None,
            statistics: Statistics {
                page_ins,
                ..Statistics::default()
            },
        }
    }

    #[test]
    fn of_thousands_those_that_paged_most_have_records_and_the_rest_a_sum() {
        let mut ended = EndedProcesses::default();
        let page_ins = |pid: u32| u64::from(pid.wrapping_mul(2_654_435_761) >> 12);
        let pids = 1..=10_000;
        for pid in pids.clone() {
            ended.add(record(pid, page_ins(pid)), None, Some(1));
        }
        let (kept, others) = ended.finish();
        assert!((RECORDS_KEPT..2 * RECORDS_KEPT).contains(&kept.len()));
        assert_eq!(kept.len() as u64 + others.processes, 10_000);
        let sum = |records: &[ProcessRecord]| -> u64 {
            records.iter().map(|one| one.statistics.page_ins).sum()
        };
        let all: u64 = pids.clone().map(page_ins).sum();
        assert_eq!(sum(&kept) + others.statistics.page_ins, all);
        assert!(kept.iter().map(|one| one.pid).is_sorted());
        let mut most: Vec<u32> = pids.collect();
        most.sort_by_key(|pid| std::cmp::Reverse(page_ins(*pid)));
        for pid in &most[..RECORDS_KEPT] {
            assert!(kept.iter().any(|one| one.pid == *pid), "{pid}");
        }
    }

    #[test]
    fn the_program_itself_and_who_is_on_the_way_out_keep_their_records() {
        let mut ended = EndedProcesses::default();
        ended.add(record(1, 0), None, Some(1));
        // A descriptor of no process: how it ended comes to be known by its age alone.
        let life = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        ended.add(record(2, 0), Some(Departure::new(life())), Some(1));
        for pid in 3..2 * RECORDS_KEPT as u32 + 10 {
            ended.add(record(pid, 1), None, Some(1));
        }
        ended.note_ending(2, Ending::Status(3));
        ended.note_ending(1, Ending::Signal(9));
        let (kept, others) = ended.finish();
        assert!(others.processes > 0);
        let endings = [kept[0].ending, kept[1].ending];
        assert_eq!(endings, [Ending::Signal(9), Ending::Status(3)]);
    }
}
