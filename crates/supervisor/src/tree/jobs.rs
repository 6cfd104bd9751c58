//! Jobs: how many may be begun follows from what processes have and had, as far as there is a
//! [job server](crate::jobs).

use std::sync::atomic::Ordering::Relaxed;

use tidemark_live::shared::{Counter, ProcessIndex, Shared};
use tidemark_results::record::Jobs;
use tidemark_tasks::Remains;

use super::Tree;
use super::size::pages_of;
use crate::jobs::JobServer;

impl Tree {
    /// Lets the job server `jobs` offer jobs as memory has room for them.
    pub fn offer_jobs(&mut self, jobs: Option<JobServer>) {
        if let Some(jobs) = &jobs {
            self.steward.offer_jobs(jobs.most());
        }
        self.jobs = jobs;
        self.serve_jobs();
    }

    /// Takes in the tokens that were put back, and hands out as many as jobs are allowed.
    pub(super) fn serve_jobs(&mut self) {
        if let Some(jobs) = &mut self.jobs {
            self.steward.handle_ended_jobs(jobs.take_back());
        }
        self.hand_out_jobs();
    }

    fn hand_out_jobs(&mut self) {
        if let Some((jobs, allowed)) = self.jobs.as_mut().zip(self.steward.jobs_allowed()) {
            jobs.offer(allowed);
        }
    }

    /// The counts and the size that the process of that record leaves behind.
    pub(super) fn remains_of(&self, index: ProcessIndex) -> Remains {
        let process = self.shared.process(index);
        let count = |counter| process.counter(counter).load(Relaxed);
        Remains {
            page_outs: count(Counter::PageOuts),
            page_out_requests: count(Counter::PageOutRequests),
            pages: match self.jobs {
                Some(_) => pages_needed(&self.shared, index),
                None => 0,
            },
        }
    }

    /// Has the steward know what processes have now, and how many jobs are at work.
    pub(super) fn look_at_jobs(&mut self) {
        self.serve_jobs();
        let Some(jobs) = &self.jobs else { return };
        let records = self.members.iter().filter_map(|member| member.record);
        let sizes: Vec<u64> = records
            .map(|index| pages_needed(&self.shared, index))
            .collect();
        let frames = self.shared.frames_total();
        self.steward.handle_jobs(jobs.at_work(), frames, &sizes);
        self.hand_out_jobs();
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
