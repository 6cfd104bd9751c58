//! The counts made while a trace is read, so that it need not be held.
//!
//! The reader hands on the references block by block; LRU's stack, the intervals between uses and
//! the working sets each follow on a separate thread. The results are the same as from references
//! in memory.
//!
//! # Bounds
//! Memory: what the analyses take by pages and windows, and [`QUEUE`] blocks on the way.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use super::order::Assumed;
use crate::analysis::Depths;
use crate::analysis::ageing::Ageing;
use crate::analysis::intervals::{Intervals, measure};
use crate::analysis::longest::Longest;
use crate::analysis::reference_string::{Stretch, Touch};
use crate::analysis::references::Columns;
use crate::analysis::residence::Timeline;
use crate::analysis::stack::Stack;

/// Blocks that may wait for an analysis.
const QUEUE: usize = 4;
/// Blocks whose memory is used again, once every analysis is through with them.
const SPARE: usize = 3 * QUEUE;

/// The counts wanted in passing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passing {
    /// The depths of LRU's stack.
    pub depths: bool,
    /// The intervals between uses, and what answers within these terms need.
    pub intervals: Option<Assumed>,
    /// The working sets over time.
    pub working_sets: Option<WorkingSets>,
}

/// Working sets over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingSets {
    /// The windows, each once, rising; the usual ones if there are none.
    pub windows: Vec<u64>,
    /// The most spans of time.
    pub pieces: usize,
}

/// The counts made in passing.
#[derive(Default)]
pub(super) struct Passed {
    pub(super) depths: Option<Depths>,
    pub(super) intervals: Option<Measured>,
    pub(super) working_sets: Option<(Vec<u64>, Vec<Timeline>)>,
}

/// Intervals, and the longest of them.
pub(super) struct Measured {
    pub(super) intervals: Intervals,
    pub(super) longest: Longest,
}

/// References on their way to the analyses.
struct Chunk {
    columns: Columns,
    first: u64,
    next: Option<u64>,
    page_count: u32,
    touch: Touch,
}

impl Chunk {
    fn stretch(&self) -> Stretch<'_> {
        Stretch {
            pages: &self.columns.pages,
            times: &self.columns.times,
            first: self.first,
            next: self.next,
            page_count: self.page_count,
            touch: self.touch,
            departures: &self.columns.departures,
        }
    }
}

/// The string that passes.
pub(super) struct Passer<'scope> {
    depths: Option<ScopedJoinHandle<'scope, Depths>>,
    intervals: Option<ScopedJoinHandle<'scope, Measured>>,
    working_sets: Option<ScopedJoinHandle<'scope, (Vec<u64>, Vec<Timeline>)>>,
    queues: Vec<SyncSender<Arc<Chunk>>>,
    touch: Touch,
    /// The newest references: they leave when the time of the next is known.
    held: Option<Chunk>,
    sent: VecDeque<Arc<Chunk>>,
    references: u64,
}

impl<'scope> Passer<'scope> {
    /// Starts the analyses of a string that ends at tick `end`, and of whose intervals the
    /// `longest` are kept.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        wanted: &Passing,
        touch: Touch,
        end: u64,
        longest: u64,
    ) -> Passer<'scope> {
        let mut queues = vec![];
        let mut queue = || {
            let (sender, receiver) = sync_channel(QUEUE);
            queues.push(sender);
            receiver
        };
        let depths = wanted.depths.then(|| {
            let receiver = queue();
            scope.spawn(move || count_depths(&receiver))
        });
        let intervals = wanted.intervals.is_some().then(|| {
            let receiver = queue();
            scope.spawn(move || Measured::count(longest, end, |take| feed(&receiver, take)))
        });
        let working_sets = wanted.working_sets.clone().map(|sets| {
            let receiver = queue();
            scope.spawn(move || {
                let mut ageing = Ageing::new(&sets.windows, end, sets.pieces);
                feed(&receiver, &mut |stretch| ageing.take(stretch));
                (sets.windows, ageing.finish())
            })
        });
        Passer {
            depths,
            intervals,
            working_sets,
            queues,
            touch,
            held: None,
            sent: VecDeque::new(),
            references: 0,
        }
    }

    /// Takes the references that `fill` puts into columns, and how many pages there are with them.
    pub(super) fn take(&mut self, fill: impl FnOnce(&mut Columns) -> u32) {
        let mut chunk = self.empty();
        chunk.page_count = fill(&mut chunk.columns);
        self.references += chunk.columns.pages.len() as u64;
        let Some(start) = chunk.stretch().start() else {
            return;
        };
        if let Some(held) = self.held.replace(chunk) {
            self.send(held, Some(start));
        }
    }

    /// Waits for the analyses.
    pub(super) fn finish(mut self) -> Passed {
        if let Some(held) = self.held.take() {
            self.send(held, None);
        }
        self.queues.clear();
        let why = "it follows the string to its end";
        Passed {
            depths: self.depths.map(|counting| counting.join().expect(why)),
            intervals: self.intervals.map(|measuring| measuring.join().expect(why)),
            working_sets: self.working_sets.map(|ageing| ageing.join().expect(why)),
        }
    }

    fn send(&mut self, mut chunk: Chunk, next: Option<u64>) {
        chunk.next = next;
        let chunk = Arc::new(chunk);
        for queue in &self.queues {
            // One that has gone away has panicked, which shows when it is joined.
            let _ = queue.send(chunk.clone());
        }
        self.sent.push_back(chunk);
        if self.sent.len() > SPARE {
            self.sent.pop_front();
        }
    }

    /// A chunk without references, of used memory if some is free.
    fn empty(&mut self) -> Chunk {
        let oldest = self.sent.pop_front().map(Arc::try_unwrap);
        let columns = match oldest {
            Some(Ok(chunk)) => chunk.columns,
            Some(Err(busy)) => {
                self.sent.push_front(busy);
                Columns::default()
            }
            None => Columns::default(),
        };
        Chunk {
            columns,
            first: self.references,
            next: None,
            page_count: 0,
            touch: self.touch,
        }
    }
}

impl Measured {
    /// Measures what `feed` hands over, and keeps the `longest` intervals.
    pub(super) fn count(
        longest: u64,
        end: u64,
        feed: impl FnOnce(&mut dyn FnMut(Stretch<'_>)),
    ) -> Measured {
        let (intervals, longest) = measure(end, Some(Longest::new(longest, end)), feed);
        Measured {
            intervals,
            longest: longest.expect("they were wanted"),
        }
    }
}

fn feed(receiver: &Receiver<Arc<Chunk>>, take: &mut dyn FnMut(Stretch<'_>)) {
    for chunk in receiver {
        take(chunk.stretch());
    }
}

fn count_depths(receiver: &Receiver<Arc<Chunk>>) -> Depths {
    let mut stack = Stack::new(0);
    let mut depths = Depths::new(0);
    for chunk in receiver {
        if let Some(last) = chunk.page_count.checked_sub(1) {
            stack.make_room(last);
            depths.make_room(last);
        }
        stack.follow(chunk.stretch(), &mut depths);
    }
    depths
}
