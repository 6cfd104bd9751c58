//! Any policy, of the core's registry or from a file, at chosen sizes, by simulation on every
//! processor.
//!
//! The memory asks the policy only when it is full, moves one page at a time and never waits: so
//! published miss counts are made. A hit sets a bit and stays out of the policy, unless the policy
//! asks for every reference.

mod batch;

use rayon::prelude::*;
use tidemark_core::id::{FrameId, ObjectId, PageId, SpaceId, VirtPage};
use tidemark_core::memory::frame::{Frames, State};
use tidemark_core::memory::reverse_map::ReverseMap;
use tidemark_core::policies::{BuildError, Visitor};
use tidemark_core::seams::policy::{Arrival, Cause, Departure, Policy, Probe, Sees};
use tidemark_core::time::Time;
use tidemark_model::sampled::Sampled;

pub use batch::count_batch_misses;
pub use tidemark_model::sampled::MachineKind;

use super::ahead::{AHEAD, bring_pages_near, is_far};
use super::optimum;
use super::queues::{count_clock_misses, count_fifo_misses};
use super::reference_string::ReferenceString;
use super::references::{Departure as Departed, Name, References};

/// The simulation to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job<'a> {
    /// The policy's name in the registry, or that of a file that has been loaded.
    pub policy: &'a str,
    /// Its knobs, where they differ from their defaults.
    pub knobs: Vec<(&'a str, u64)>,
    /// The seed of its random numbers.
    pub seed: u64,
    /// The size of memory, in pages.
    pub frames: u32,
    /// The source of the answers to its questions.
    pub eyes: MachineKind,
}

impl<'a> Job<'a> {
    /// `policy` with its defaults, in a memory with reference bits.
    pub fn new(policy: &'a str, frames: u32) -> Job<'a> {
        Job {
            policy,
            knobs: Vec::new(),
            seed: 1,
            frames,
            eyes: MachineKind::Bits,
        }
    }
}

/// The cost of a string of references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// References to pages that were not resident, the first to each included.
    pub misses: u64,
    /// References to pages that were resident and unmapped.
    pub soft_faults: u64,
    /// Mappings the policy removed to find out about pages.
    pub unmaps: u64,
    /// Questions the policy asked.
    pub questions: u64,
    /// Choices that named a frame that may not leave.
    pub refusals: u64,
}

/// Runs every job over `references`, as many at a time as there are processors. The costs are in
/// the order of the jobs.
///
/// # Errors
/// If a job's policy or knob is not known, or a knob's value is out of its range.
pub fn simulate_all<'a>(
    references: &References,
    jobs: &[Job<'a>],
) -> Result<Vec<Cost>, BuildError<'a>> {
    let ids = collect_page_ids(&references.names);
    jobs.par_iter()
        .map(|job| simulate_departing(job, &references.pages, &ids, &references.departures))
        .collect()
}

/// The misses of the policy of `job` in each number of `frames`, side by side; `names` are those of
/// the pages.
///
/// # Errors
/// If the policy or a knob is not known, or a knob's value is out of its range.
pub fn count_misses<'a>(
    job: &Job<'a>,
    string: ReferenceString<'_>,
    names: &[Name],
    frames: &[u32],
) -> Result<Vec<u64>, BuildError<'a>> {
    let (pages, departures) = (string.pages(), string.departures());
    // The two that all are compared with have loops of their own, for many sizes at once.
    if job.knobs.is_empty() && job.eyes == MachineKind::Bits && departures.is_empty() {
        match job.policy {
            "fifo" => return Ok(count_fifo_misses(pages, string.page_count(), frames)),
            "clock" => return Ok(count_clock_misses(pages, string.page_count(), frames)),
            _ => {}
        }
    }
    let ids = collect_page_ids(names);
    let of_frames = |&frames: &u32| Job {
        frames,
        ..job.clone()
    };
    let costs = frames
        .par_iter()
        .map(|frames| simulate_departing(&of_frames(frames), pages, &ids, departures));
    costs.map(|cost| Ok(cost?.misses)).collect()
}

/// Runs `job` over `pages`. `ids` says how the policy knows each page.
///
/// # Errors
/// If the policy or a knob is not known, or a knob's value is out of its range.
///
/// # Panics
/// If a page has no id, or the policy names no frame though memory is full. For a policy that sees
/// the future, if there are more than 2^30 references.
pub fn simulate<'a>(job: &Job<'a>, pages: &[u32], ids: &[PageId]) -> Result<Cost, BuildError<'a>> {
    simulate_departing(job, pages, ids, &[])
}

/// Runs `job` over `pages`, of which some leave memory for good on the way.
fn simulate_departing<'a>(
    job: &Job<'a>,
    pages: &[u32],
    ids: &[PageId],
    departures: &[Departed],
) -> Result<Cost, BuildError<'a>> {
    let page_count = u32::try_from(ids.len()).expect("pages have numbers of 32 bits");
    // A memory that holds every page never asks.
    let frames = job.frames.min(page_count).max(1);
    let run = Run {
        frames,
        eyes: job.eyes,
        pages,
        ids,
        departures,
    };
    tidemark_plugin::visit(job.policy, frames, frames, job.seed, &job.knobs, run)
}

/// Collects the core's page numbers of those names: a process is an object. Copies stand
/// apart, above all addresses, and are neighbours of copies.
pub fn collect_page_ids(names: &[Name]) -> Vec<PageId> {
    let id = |name: &Name| PageId {
        object: ObjectId(name.process),
        index: name.page ^ u64::from(name.copy).rotate_right(12),
    };
    names.iter().map(id).collect()
}

/// A job, but for its policy.
struct Run<'a> {
    frames: u32,
    eyes: MachineKind,
    pages: &'a [u32],
    ids: &'a [PageId],
    departures: &'a [Departed],
}

impl Visitor for Run<'_> {
    type Output = Cost;

    /// Compiled for each policy there is: a policy's part of a reference is often less work than
    /// finding out whose it is.
    fn visit<P: Policy + 'static>(self, policy: P) -> Cost {
        run(policy, &self)
    }
}

fn run<P: Policy>(policy: P, of: &Run<'_>) -> Cost {
    let &Run { pages, ids, .. } = of;
    let sees = policy.describe().sees;
    let mut memory = Memory::new(policy, of);
    match sees {
        Sees::Faults | Sees::Bits | Sees::References => {
            for near in pages.chunks(AHEAD) {
                memory.look_ahead(near);
                near.iter().for_each(|&page| memory.refer(page, sees));
            }
        }
        Sees::Future => {
            let next_uses = optimum::collect_next_uses(pages, ids.len() as u32);
            for (near, nexts) in pages.chunks(AHEAD).zip(next_uses.chunks(AHEAD)) {
                memory.look_ahead(near);
                for (&page, &next) in near.iter().zip(nexts) {
                    memory.refer(page, sees);
                    memory.foresee(page, next);
                }
            }
        }
    }
    memory.policy.check();
    memory.cost.unmaps = memory.translation.unmaps;
    memory.cost
}

/// In place of the frame of a page that is not resident.
const AWAY: u32 = u32::MAX;
/// In place of the frame of a page that has never been used.
const NEVER: u32 = AWAY - 1;
/// The only space there is.
const SPACE: SpaceId = SpaceId(0);
/// The time by which a reference moves the clock that policies see.
const REFERENCE_NS: u64 = 1000;
/// A policy that insists for so long is broken.
const REFUSALS_MAX: u64 = 1000;

/// The contents of a frame: the page's number, and how the policy knows it. Kept together, because
/// a page that leaves has been in no processor's cache for long; the parts of its name stand apart,
/// which takes eight bytes less.
#[derive(Clone, Copy)]
struct Held {
    index: u64,
    object: ObjectId,
    page: u32,
}

const NOTHING: Held = Held {
    index: 0,
    object: ObjectId(u32::MAX),
    page: u32::MAX,
};

impl Held {
    fn new(page: u32, id: PageId) -> Held {
        let PageId { object, index } = id;
        Held {
            index,
            object,
            page,
        }
    }

    fn id(&self) -> PageId {
        PageId {
            object: self.object,
            index: self.index,
        }
    }
}

struct Memory<'a, P> {
    policy: P,
    cost: Cost,
    frames: Frames,
    translation: Sampled,
    /// For a policy that walks: every page is mapped in the space of its object, at its place.
    places: Option<ReverseMap>,
    free: Vec<u32>,
    held: Vec<Held>,
    frame_of: Vec<u32>,
    ids: &'a [PageId],
    /// The policy's names of those of the next pages that are not resident.
    ahead: Vec<PageId>,
    /// The frames that may be emptied for them.
    next: Vec<FrameId>,
    /// The pages in the frames `next`.
    leaving: Vec<PageId>,
    /// References so far.
    ticks: u64,
    /// The pages that depart from here on.
    departures: &'a [Departed],
    /// The number of the reference before which the first of them depart.
    due: u64,
}

impl<'a, P: Policy> Memory<'a, P> {
    /// An empty memory.
    fn new(policy: P, of: &Run<'a>) -> Memory<'a, P> {
        let &Run {
            frames,
            eyes,
            ids,
            departures,
            ..
        } = of;
        let count = frames as usize;
        let places = policy.walks().then(|| {
            let mut places = ReverseMap::new(count);
            places.keep_standing();
            places
        });
        Memory {
            policy,
            cost: Cost::default(),
            frames: Frames::new(frames, frames),
            translation: Sampled::new(eyes, frames),
            places,
            free: (0..frames).rev().collect(),
            held: vec![NOTHING; count],
            frame_of: vec![NEVER; ids.len()],
            ids,
            ahead: Vec::with_capacity(AHEAD),
            next: Vec::with_capacity(AHEAD),
            leaving: Vec::with_capacity(AHEAD),
            ticks: 0,
            departures,
            due: next_due(departures),
        }
    }

    /// Brings what the next references will look at into the nearest cache, and lets the policy do
    /// the same.
    fn look_ahead(&mut self, pages: &[u32]) {
        bring_pages_near(&self.frame_of, pages);
        if !is_far(self.ids) {
            return;
        }
        self.ahead.clear();
        let missed = pages
            .iter()
            .filter(|&&page| self.frame_of[page as usize] >= NEVER);
        self.ahead
            .extend(missed.map(|&page| self.ids[page as usize]));
        self.next.clear();
        self.policy.frames_ahead(self.ahead.len(), &mut self.next);
        self.leaving.clear();
        let held = self.next.iter().map(|frame| self.held[frame.index()].id());
        self.leaving.extend(held);
        self.policy.pages_ahead(&self.ahead, &self.leaving);
    }

    #[inline(always)]
    fn refer(&mut self, page: u32, sees: Sees) {
        if self.ticks == self.due {
            self.depart();
        }
        self.ticks += 1;
        if sees == Sees::Future {
            self.pass_clock();
        }
        let frame = self.frame_of[page as usize];
        if frame >= NEVER {
            self.miss(page);
            return;
        }
        if !self.translation.refer(FrameId(frame)) {
            self.rescue(FrameId(frame));
        }
        if sees >= Sees::References {
            self.policy.page_referenced(FrameId(frame));
        }
    }

    /// Empties the frames of the pages that depart now.
    #[cold]
    fn depart(&mut self) {
        while self.ticks == self.due {
            let (departed, others) = self.departures.split_first().expect("one is due");
            for &page in &departed.pages {
                let frame = self.frame_of[page as usize];
                if frame < NEVER {
                    let frame = FrameId(frame);
                    self.translation.part(frame);
                    self.frame_of[page as usize] = AWAY;
                    self.leave(frame, self.ids[page as usize], Departure::Discarded);
                    self.frames.force(frame, State::Free, false);
                    self.free.push(frame.0);
                }
            }
            self.departures = others;
            self.due = next_due(others);
        }
    }

    /// Tells the policy when `page`, which has just been used, is used next.
    fn foresee(&mut self, page: u32, next: u32) {
        let next = match next {
            u32::MAX => u64::MAX,
            next => next.into(),
        };
        let frame = FrameId(self.frame_of[page as usize]);
        self.policy.page_foreseen(frame, next);
    }

    #[cold]
    fn rescue(&mut self, frame: FrameId) {
        self.pass_clock();
        self.map_again(frame);
        self.end_fault(frame);
    }

    /// Has the page in `frame`, which was unmapped, mapped again.
    fn map_again(&mut self, frame: FrameId) {
        self.cost.soft_faults += 1;
        self.translation.modify(frame);
        self.frames.force(frame, State::Resident, false);
        self.stand(self.held[frame.index()].id(), frame);
        self.policy.page_rescued(frame);
    }

    #[inline(never)]
    fn miss(&mut self, page: u32) {
        self.pass_clock();
        let frame = self.bring(page);
        self.end_fault(frame);
    }

    /// Brings `page` to a frame, of which one is emptied if none is free. Tells which.
    #[inline(always)]
    fn bring(&mut self, page: u32) -> FrameId {
        self.cost.misses += 1;
        let id = self.ids[page as usize];
        self.policy.page_missed(id);
        let frame = match self.free.pop() {
            Some(frame) => FrameId(frame),
            None => self.evict(),
        };
        self.held[frame.index()] = Held::new(page, id);
        let cause = match std::mem::replace(&mut self.frame_of[page as usize], frame.0) {
            NEVER => Cause::ZeroFill,
            _ => Cause::Fetched,
        };
        self.enter(frame, id, cause);
        frame
    }

    /// Reports a page that has come to `frame`.
    fn enter(&mut self, frame: FrameId, page: PageId, cause: Cause) {
        // Every use is a write, and what is written is written at once.
        let is_used = cause != Cause::Cleaned;
        self.translation.bring(frame, is_used, is_used);
        if is_used {
            self.stand(page, frame);
        }
        self.frames.force(frame, State::Resident, false);
        let arrival = Arrival {
            page,
            cause,
            space: SPACE,
            is_external: false,
        };
        self.policy.page_entered(frame, &arrival);
    }

    /// A tick of the program's own time is a reference.
    fn pass_clock(&mut self) {
        self.policy.clock_moved(SPACE, self.ticks - 1);
    }

    /// Lets the policy trim when a fault is over, but not the page that was wanted: its program has
    /// not run since.
    fn end_fault(&mut self, wanted: FrameId) {
        while let Some(frame) = self.ask(Some(wanted), P::trim) {
            self.set_free(frame);
        }
        self.clean(Some(wanted));
    }

    /// Takes the page that `frame` holds out of memory, and leaves the frame free.
    fn set_free(&mut self, frame: FrameId) {
        self.translation.part(frame);
        self.take_out(frame);
        self.frames.force(frame, State::Free, false);
        self.free.push(frame.0);
    }

    /// Writes what the policy wants clean. None is back before the last is named, and what need
    /// not be written is back first. No page is referred to meanwhile, so that it keeps its frame.
    fn clean(&mut self, wanted: Option<FrameId>) {
        let (mut ready, mut written) = (Vec::new(), Vec::new());
        while let Some(frame) = self.ask(wanted, P::clean) {
            let id = self.held[frame.index()].id();
            if self.translation.is_modified(frame) || self.frames.is_dirty(frame) {
                written.push((id, frame));
            } else {
                ready.push((id, frame));
            }
            self.frames.force(frame, State::Leaving, false);
            self.frames.force_cleaning(frame, true);
            self.translation.part(frame);
            self.leave(frame, id, Departure::Evicted);
        }
        written.sort_unstable_by_key(|&(id, _)| id);
        for (id, frame) in ready.into_iter().chain(written) {
            self.frames.force_cleaning(frame, false);
            self.enter(frame, id, Cause::Cleaned);
        }
    }

    fn stand(&mut self, id: PageId, frame: FrameId) {
        if let Some(places) = &mut self.places {
            places.insert(frame, SpaceId(id.object.0), VirtPage(id.index));
        }
    }

    /// Empties a frame for a page that comes at once: it is never seen free.
    fn evict(&mut self) -> FrameId {
        let frame = self.choose_victim();
        self.take_out(frame);
        frame
    }

    /// The frame that the policy names, of those that may leave.
    fn choose_victim(&mut self) -> FrameId {
        loop {
            let frame = self.ask(None, P::choose);
            let frame = frame.expect("a full memory holds a page that may leave");
            if self.frames.may_leave(frame) {
                break frame;
            }
            self.cost.refusals += 1;
            assert!(self.cost.refusals < REFUSALS_MAX, "the policy insists");
        }
    }

    fn ask(
        &mut self,
        wanted: Option<FrameId>,
        ask: impl FnOnce(&mut P, &mut Probe<'_>) -> Option<FrameId>,
    ) -> Option<FrameId> {
        let mut probe = Probe::new(
            Time(self.ticks * REFERENCE_NS),
            &mut self.frames,
            &mut self.translation,
            &mut self.cost.questions,
            0,
        );
        if let Some(places) = &mut self.places {
            probe = probe.with_places(places);
        }
        if let Some(wanted) = wanted {
            probe = probe.with_wanted(wanted);
        }
        ask(&mut self.policy, &mut probe)
    }

    /// Takes the page that `frame` holds out of memory.
    fn take_out(&mut self, frame: FrameId) {
        let what = self.held[frame.index()];
        self.frame_of[what.page as usize] = AWAY;
        self.leave(frame, what.id(), Departure::Evicted);
    }

    /// Reports a page that is on its way out of `frame`.
    fn leave(&mut self, frame: FrameId, page: PageId, why: Departure) {
        if let Some(places) = &mut self.places {
            places.clear(frame);
        }
        self.policy.page_left(frame, page, why);
    }
}

/// The number of the reference before which the first of `departures` takes place; the largest
/// number if there is none.
fn next_due(departures: &[Departed]) -> u64 {
    departures.first().map_or(u64::MAX, |first| first.before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_core::policies;
    use tidemark_model::cache::replay;
    use tidemark_model::traces;

    #[test]
    fn every_policy_costs_what_it_costs_in_the_model() {
        let words = traces::skewed(6, 300, 30_000);
        let references = References::from_pages(words.iter().copied());
        let optimum = optimum::count_depths(&references.pages, references.page_count);
        let shown = |entry: &&policies::Entry| entry.description.sees <= Sees::Bits;
        for entry in policies::entries().iter().filter(shown) {
            let name = entry.description.name;
            for kind in [MachineKind::Bits, MachineKind::SoftFaults] {
                let sizes = [8, 50, 200];
                let jobs = sizes.map(|frames| Job {
                    eyes: kind,
                    ..Job::new(name, frames)
                });
                let costs = simulate_all(&references, &jobs).unwrap();
                for (cost, frames) in costs.iter().zip(sizes) {
                    let policy = policies::build(name, frames, frames, 1, &[]).unwrap();
                    let model = replay(policy, frames, kind, &words);
                    let expected = (model.hard, model.soft, model.unmaps, model.refusals);
                    let counted = (cost.misses, cost.soft_faults, cost.unmaps, cost.refusals);
                    assert_eq!(counted, expected, "{name} {kind:?} {frames}");
                    let best = optimum.misses_at(frames);
                    assert!(cost.misses >= best, "{name} beats the optimum at {frames}");
                }
            }
        }
    }

    #[test]
    fn a_memory_of_every_page_misses_each_once() {
        let references = References::from_pages([3, 4, 3, 5, 4]);
        let costs = simulate_all(&references, &[Job::new("clock", 1 << 31)]).unwrap();
        assert_eq!((costs[0].misses, costs[0].questions), (3, 0));
    }

    #[test]
    fn found_m4_frames_of_pages_that_depart_are_free() {
        // Two pages of one process; three of another, which ends; and three of a third.
        let mut references = References::from_pages([0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        references.departures = vec![Departed {
            before: 5,
            pages: vec![2, 3, 4],
        }];
        let names = ["lru", "fifo", "clock", "opt", "arc", "tidemark"];
        let jobs = names.map(|name| Job::new(name, 5));
        let costs = simulate_all(&references, &jobs).unwrap();
        let misses = costs.iter().map(|cost| cost.misses);
        assert_eq!(misses.collect::<Vec<_>>(), [8; 6]);
        references.departures.clear();
        let costs = simulate_all(&references, &jobs[..1]).unwrap();
        assert_eq!(costs[0].misses, 10);
    }

    #[test]
    fn found_m4_no_policy_minds_that_pages_depart() {
        let mut random = traces::SplitMix64::new(5);
        let (mut pages, mut departures, mut first) = (vec![], vec![], 0);
        for _ in 0..30 {
            let count = random.below(30) + 1;
            pages.extend((0..300).map(|_| match random.below(3) {
                0 => random.below(20),
                _ => 1000 + first + random.below(count),
            }));
            departures.push((pages.len() as u64, first, first + count));
            first += count;
        }
        let mut references = References::from_pages(pages);
        let names = references.names.clone();
        let numbers = |from: u64, to: u64| {
            let named = (0..).zip(&names);
            let gone = named.filter(|(_, name)| (1000 + from..1000 + to).contains(&name.page));
            gone.map(|(number, _)| number).collect::<Vec<u32>>()
        };
        let departed = departures.iter().map(|&(before, from, to)| Departed {
            before,
            pages: numbers(from, to),
        });
        references.departures = departed.collect();
        let names = policies::entries()
            .iter()
            .map(|entry| entry.description.name);
        let jobs: Vec<Job<'_>> = names
            .flat_map(|name| [3, 10, 25, 40].map(|frames| Job::new(name, frames)))
            .collect();
        let costs = simulate_all(&references, &jobs).unwrap();
        for (job, cost) in jobs.iter().zip(costs) {
            let least = u64::from(references.page_count);
            assert!(cost.misses >= least, "{} {}", job.policy, job.frames);
        }
    }

    #[test]
    fn what_is_not_known_is_named() {
        let references = References::from_pages([1, 2]);
        let unknown = simulate_all(&references, &[Job::new("lifo", 1)]);
        assert_eq!(unknown, Err(BuildError::UnknownPolicy { name: "lifo" }));
        let none = References::from_pages([]);
        let costs = simulate_all(&none, &[Job::new("fifo", 4)]).unwrap();
        assert_eq!(costs, [Cost::default()]);
    }
}
