//! Jobs: how many may be begun follows from what processes have and had, as far as there is a
//! [job server](crate::jobs).

use std::sync::atomic::Ordering::Relaxed;

use tidemark_live::shared::{Counter, ProcessIndex, Shared};
use tidemark_results::record::Jobs;

use super::Tree;
use super::size::pages_of;
use crate::jobs::JobServer;

impl Tree {
    /// Has that server offer jobs as memory has room for them.
    pub fn offer_jobs(&mut self, jobs: Option<JobServer>) {
        self.jobs = jobs;
    }

    /// Takes in tokens that are back.
    pub(super) fn serve_jobs(&mut self) {
        if let Some(jobs) = &mut self.jobs {
            jobs.serve();
        }
    }

    /// Has the server know of a process that has ended.
    pub(super) fn note_ended_process(&mut self, index: ProcessIndex) {
        if let Some(jobs) = &mut self.jobs {
            jobs.note_ended_process(pages_needed(&self.shared, index));
        }
    }

    /// Has the server know what processes have now.
    pub(super) fn look_at_jobs(&mut self) {
        let Some(jobs) = &mut self.jobs else { return };
        let records = self.members.iter().filter_map(|member| member.record);
        let sizes: Vec<u64> = records
            .map(|index| pages_needed(&self.shared, index))
            .collect();
        jobs.serve();
        jobs.look(self.shared.frames_total(), &sizes);
    }

    /// Ends the server. What it leaves behind.
    pub(super) fn end_jobs(&mut self) -> Option<Jobs> {
        self.serve_jobs();
        let record = self.jobs.take()?.record();
        if record.tokens_missing > 0 {
            self.notes.push(format!(
                "{} of {} tokens for jobs did not come back: jobs were killed, or go on",
                record.tokens_missing,
                record.slots - 1
            ));
        }
        Some(record)
    }
}

/// The pages that a process has, in memory or in the store, or had in memory at one time.
fn pages_needed(shared: &Shared, index: ProcessIndex) -> u64 {
    let peak = shared.process(index).counter(Counter::FramesPeak);
    pages_of(shared, index).max(peak.load(Relaxed))
}
