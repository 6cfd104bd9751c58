//! Disks: how long requests take, and in which order they are served.
//!
//! [`hdd`] rotates and seeks, [`ssd`] has channels and a latency that varies, [`table`] has been
//! measured. What varies is drawn from a seed.

use std::collections::BTreeSet;

use tidemark_core::id::Ticket;
use tidemark_core::random::SplitMix64;
use tidemark_core::seams::pager::Direction;

use hdd::{Arm, Hdd};
use ssd::Ssd;
use table::Table;

pub mod hdd;
pub mod presets;
pub mod ssd;
pub mod table;

/// The model of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskModel {
    /// Every request takes the same time, and as much more for each page as `page_ns` says.
    Fixed {
        /// Time for a request.
        request_ns: u64,
        /// Time for each of its pages.
        page_ns: u64,
        /// The number of requests served at the same time.
        channels: u32,
    },
    /// Rotating platters and one arm.
    Hdd(Hdd),
    /// Flash.
    Ssd(Ssd),
    /// As measured.
    Table(Table),
}

impl DiskModel {
    /// A disk that takes no time at all.
    pub const INSTANT: DiskModel = DiskModel::Fixed {
        request_ns: 0,
        page_ns: 0,
        channels: 1,
    };
}

/// The requests made to a disk, and the time it was busy with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// The use it serves: `swap`, `files`, or `swap and files`.
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

/// A memory's name for what it asks of a disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Errand {
    /// A request of the core.
    Request(Ticket),
    /// A part of a transfer of [compressed memory](super::compressed), and which one of all.
    Part { transfer: u64, number: u64 },
}

/// A request, as a disk sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DiskRequest {
    /// The number of the memory that asks.
    pub(crate) memory: u32,
    /// The memory's name for it.
    pub(crate) errand: Errand,
    pub(crate) direction: Direction,
    /// The first page's place on the disk, in pages.
    pub(crate) address: u64,
    pub(crate) pages: u32,
}

impl DiskRequest {
    fn asker(&self) -> Asker {
        (self.memory, self.errand)
    }

    pub(crate) fn end(&self) -> u64 {
        self.address + u64::from(self.pages)
    }
}

/// A request that waits, and since when.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    since: u64,
    request: DiskRequest,
    /// True if the request has been answered from the write cache.
    is_answered: bool,
}

/// The end of a request that is being served, in the order of the starts, and its waiter if it has
/// one.
type Serving = (u64, u64, Option<Asker>);

/// The waiter for a request: a memory by number, and its name for it.
type Asker = (u32, Errand);

/// A disk at work.
pub(crate) struct Disk {
    model: DiskModel,
    queue: Vec<Waiting>,
    serving: BTreeSet<Serving>,
    started: u64,
    /// The number of members of `serving` that occupy a channel; answers from a cache don't.
    channels_used: u32,
    arm: Arm,
    /// The time at which the link to the machine is free.
    link_ns: u64,
    /// Pages in the write cache.
    cached: u32,
    random: SplitMix64,
    usage: DiskUse,
}

impl Disk {
    pub(crate) fn new(name: &'static str, model: DiskModel, seed: u64) -> Disk {
        Disk {
            model,
            queue: Vec::new(),
            serving: BTreeSet::new(),
            started: 0,
            channels_used: 0,
            arm: Arm::default(),
            link_ns: 0,
            cached: 0,
            random: SplitMix64::new(seed),
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
        let is_answered = self.answer_from_cache(now, &request);
        self.queue.push(Waiting {
            since: now,
            request,
            is_answered,
        });
        self.start(now);
        self.usage.queue_max = self.usage.queue_max.max(self.depth());
    }

    /// Ends what is done first, and starts the next. Returns the owner of that request, or `None`
    /// if it was the cache's.
    ///
    /// - Needs: something is being served, and is done by `now`.
    pub(crate) fn finish(&mut self, now: u64) -> Option<Asker> {
        let (done, number, asker) = self.serving.pop_first().expect("a request is being served");
        assert!(done <= now);
        if number > 0 {
            self.channels_used -= 1;
        }
        self.start(now);
        asker
    }

    /// The time at which the next is done.
    pub(crate) fn next_done(&self) -> Option<u64> {
        self.serving.first().map(|&(done, ..)| done)
    }

    /// The number of requests, of all askers, that wait or are being served.
    pub(crate) fn depth(&self) -> u32 {
        let waiting = self.queue.iter().filter(|waiting| !waiting.is_answered);
        let serving = self.serving.iter().filter(|(.., asker)| asker.is_some());
        (waiting.count() + serving.count()) as u32
    }

    pub(crate) fn usage(&self) -> &DiskUse {
        &self.usage
    }

    /// A write that fits the cache is over as soon as it is there.
    fn answer_from_cache(&mut self, now: u64, request: &DiskRequest) -> bool {
        let DiskModel::Hdd(hdd) = &self.model else {
            return false;
        };
        let is_fitting = self.cached + request.pages <= hdd.cache_pages;
        if request.direction != Direction::Store || !is_fitting {
            return false;
        }
        self.cached += request.pages;
        let done = now + hdd.overhead_ns + hdd.cache_page_ns * u64::from(request.pages);
        // Number 0 marks what occupies no channel; the errand keeps such entries apart.
        self.serving.insert((done, 0, Some(request.asker())));
        true
    }

    fn start(&mut self, now: u64) {
        while !self.queue.is_empty() && self.has_channel() {
            match &self.model {
                DiskModel::Hdd(_) => self.start_batch(now),
                DiskModel::Fixed { .. } | DiskModel::Ssd(_) | DiskModel::Table(_) => {
                    let waiting = self.queue.remove(0);
                    let done = self.serve(now, &waiting.request);
                    self.usage.busy_ns += done - now;
                    self.begin(now, done, waiting);
                }
            }
        }
    }

    /// Starts the arm on the next request above it (or the lowest), and on those that follow
    /// right behind: the elevator that goes one way (C-LOOK), with merging.
    fn start_batch(&mut self, now: u64) {
        let DiskModel::Hdd(hdd) = self.model.clone() else {
            return;
        };
        let mut waiting = self.queue.remove(self.find_next());
        let mut done = self.arm.serve(&hdd, now, &waiting.request);
        self.usage.busy_ns += done - now;
        loop {
            self.begin(now, done, waiting);
            let (end, direction) = (waiting.request.end(), waiting.request.direction);
            let follows = |other: &Waiting| {
                other.request.address == end && other.request.direction == direction
            };
            let Some(next) = self.queue.iter().position(follows) else {
                return;
            };
            waiting = self.queue.remove(next);
            let before = done;
            done = self.arm.follow(&hdd, before, &waiting.request);
            self.usage.busy_ns += done - before;
        }
    }

    fn begin(&mut self, now: u64, done: u64, waiting: Waiting) {
        let asker = match waiting.is_answered {
            true => {
                self.cached -= waiting.request.pages;
                None
            }
            false => {
                self.usage.queued_ns += now - waiting.since;
                Some(waiting.request.asker())
            }
        };
        self.started += 1;
        self.channels_used += 1;
        self.serving.insert((done, self.started, asker));
    }

    /// The place in the queue of the next request above the arm, or of the lowest.
    fn find_next(&self) -> usize {
        let address = |number: &usize| self.queue[*number].request.address;
        let above = (0..self.queue.len()).filter(|number| address(number) >= self.arm.address());
        let next = above.min_by_key(address);
        next.or_else(|| (0..self.queue.len()).min_by_key(address))
            .expect("a request waits")
    }

    fn has_channel(&self) -> bool {
        let channels = match &self.model {
            DiskModel::Fixed { channels, .. } => *channels,
            DiskModel::Hdd(_) => 1,
            DiskModel::Ssd(ssd) => ssd.channels,
            DiskModel::Table(table) => table.channels,
        };
        self.channels_used < channels.max(1)
    }

    /// The time at which a request will be done that starts now.
    fn serve(&mut self, now: u64, request: &DiskRequest) -> u64 {
        let pages = u64::from(request.pages);
        match &self.model {
            DiskModel::Fixed {
                request_ns,
                page_ns,
                ..
            } => now + request_ns + page_ns * pages,
            DiskModel::Ssd(ssd) => {
                let ready = now + ssd.draw_latency_ns(request.direction, &mut self.random);
                let move_ns = ssd.link_page_ns * pages;
                // A slow request holds no other up: the link moves what is ready.
                self.link_ns = self.link_ns.max(now) + move_ns;
                self.link_ns.max(ready + move_ns)
            }
            DiskModel::Table(table) => {
                now + table.draw_ns(request.direction, request.pages, &mut self.random)
            }
            DiskModel::Hdd(_) => unreachable!("the arm serves in batches"),
        }
    }
}

#[cfg(test)]
mod tests;
