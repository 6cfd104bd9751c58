//! Disks: how long requests take, and in which order they are served.

use std::collections::{BTreeSet, VecDeque};

use tidemark_core::id::Ticket;
use tidemark_core::pager::Direction;

/// What a disk is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskModel {
    /// Every request takes the same time, and as much again for each page as `page_ns` says.
    Fixed {
        /// Time for a request.
        request_ns: u64,
        /// Time for each of its pages.
        page_ns: u64,
        /// How many requests are served at the same time.
        channels: u32,
    },
}

impl DiskModel {
    /// A disk that takes no time at all.
    pub const INSTANT: DiskModel = DiskModel::Fixed {
        request_ns: 0,
        page_ns: 0,
        channels: 1,
    };
}

/// What a disk was asked for, and how busy that kept it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// What it serves: `swap`, `files`, or `swap and files`.
    pub name: &'static str,
    /// Requests to read.
    pub reads: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Requests to write.
    pub writes: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Time requests were being served, added up over channels.
    pub busy_ns: u64,
    /// Time requests waited to be served, added up.
    pub queued_ns: u64,
    /// The most requests that were waiting or being served at one time.
    pub queue_max: u32,
}

/// A request, as a disk sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DiskRequest {
    pub(crate) ticket: Ticket,
    pub(crate) direction: Direction,
    /// The first page's place on the disk, in pages.
    pub(crate) address: u64,
    pub(crate) pages: u32,
}

/// A disk at work.
pub(crate) struct Disk {
    model: DiskModel,
    queue: VecDeque<(u64, DiskRequest)>,
    /// What is being served: when it will be done, in the order of the starts, and its ticket.
    serving: BTreeSet<(u64, u64, Ticket)>,
    started: u64,
    usage: DiskUse,
}

impl Disk {
    pub(crate) fn new(name: &'static str, model: DiskModel) -> Disk {
        Disk {
            model,
            queue: VecDeque::new(),
            serving: BTreeSet::new(),
            started: 0,
            usage: DiskUse {
                name,
                ..DiskUse::default()
            },
        }
    }

    /// Takes a request in.
    pub(crate) fn submit(&mut self, now: u64, request: DiskRequest) {
        let usage = &mut self.usage;
        match request.direction {
            Direction::Fetch => {
                usage.reads += 1;
                usage.pages_read += u64::from(request.pages);
            }
            Direction::Store => {
                usage.writes += 1;
                usage.pages_written += u64::from(request.pages);
            }
        }
        self.queue.push_back((now, request));
        self.start(now);
        self.usage.queue_max = self.usage.queue_max.max(self.depth());
    }

    /// Ends the request that is done first, and starts the next.
    ///
    /// - Needs: one is being served, and is done by `now`.
    pub(crate) fn finish(&mut self, now: u64) -> Ticket {
        let (done, _, ticket) = self.serving.pop_first().expect("a request is being served");
        assert!(done <= now);
        self.start(now);
        ticket
    }

    /// When the next request is done.
    pub(crate) fn next_done(&self) -> Option<u64> {
        self.serving.first().map(|&(done, ..)| done)
    }

    /// How many requests wait or are being served.
    pub(crate) fn depth(&self) -> u32 {
        (self.queue.len() + self.serving.len()) as u32
    }

    pub(crate) fn usage(&self) -> &DiskUse {
        &self.usage
    }

    fn start(&mut self, now: u64) {
        while (self.serving.len() as u32) < self.channels() {
            let Some((since, request)) = self.queue.pop_front() else {
                return;
            };
            let service_ns = self.service_ns(&request);
            self.usage.queued_ns += now - since;
            self.usage.busy_ns += service_ns;
            self.started += 1;
            self.serving
                .insert((now + service_ns, self.started, request.ticket));
        }
    }

    fn channels(&self) -> u32 {
        match self.model {
            DiskModel::Fixed { channels, .. } => channels.max(1),
        }
    }

    fn service_ns(&self, request: &DiskRequest) -> u64 {
        match self.model {
            DiskModel::Fixed {
                request_ns,
                page_ns,
                ..
            } => request_ns + page_ns * u64::from(request.pages),
        }
    }
}
