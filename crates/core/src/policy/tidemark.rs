//! experimental
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::pull::pull;
use super::registry::Settings;
use super::{Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees};
use crate::id::{FrameId, ObjectId, PageId};
use crate::queue::Queues;

const fn knob(name: &'static str, max: u64, default: u64) -> Knob {
    Knob {
        name,
        meaning: "experimental",
        min: 0,
        max,
        default,
    }
}

/// x
pub static DESCRIPTION: Description = Description {
    name: "tidemark",
    summary: "experimental",
    lineage: &["CLOCK-Pro"],
    sees: Sees::Faults,
    knobs: &[
        knob("cold-min", 1000, 16),
        knob("cold-max", 1000, 500),
        knob("watch", 1000, 63),
        knob("probe-every", 1000, 4),
        knob("ghosts", 4000, 1000),
        knob("dead", 1, 1),
        knob("untouched", 1000, 500),
        knob("step", 1000, 10),
        knob("far", 1000, 1),
        knob("near", 1000, 1),
    ],
};

const FRESH: u8 = 0;
const TEST: u8 = 1;
const HOT: u8 = 2;
const WATCH: u8 = 3;

struct Tidemark {
    q: Queues,
    ghosts: Ghosts,
    seen: Vec<u64>,
    frames: u32,
    clock: u64,
    cold_target: u64,
    dead_age: u64,
    credit: u64,
    cold_min: u64,
    cold_max: u64,
    watch: u64,
    probe_every: u64,
    ghost_share: u64,
    use_dead: bool,
    untouched: u64,
    step: u64,
    far: u64,
    near: u64,
    watch_now: u64,
}

/// x
pub fn build(s: &Settings<'_>) -> Box<dyn Policy> {
    let mut t = Tidemark {
        q: Queues::new(4, s.frames_max),
        ghosts: Ghosts::new((u64::from(s.frames_max) * s.knobs[4] / 1000) as u32),
        seen: vec![0; s.frames_max as usize],
        frames: s.frames,
        clock: 0,
        cold_target: 0,
        dead_age: 2 * u64::from(s.frames),
        credit: 0,
        cold_min: s.knobs[0],
        cold_max: s.knobs[1],
        watch: s.knobs[2],
        probe_every: s.knobs[3].max(1),
        ghost_share: s.knobs[4],
        use_dead: s.knobs[5] == 1,
        untouched: s.knobs[6],
        step: s.knobs[7],
        far: s.knobs[8],
        near: s.knobs[9],
        watch_now: 0,
    };
    t.cold_target = t.cold_least();
    Box::new(t)
}

impl Policy for Tidemark {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        self.clock += 1;
        self.credit += 1;
        self.dead_age -= self.dead_age / (4 * u64::from(self.frames)).max(1);
        let ghost = self.ghosts.take(arrival.page);
        if matches!(arrival.cause, Cause::Prefetched | Cause::ZeroAhead) {
            self.seen[frame.index()] = ghost.map_or(0, |g| g.seen);
            self.q.push_back(FRESH, frame.0);
            return;
        }
        self.seen[frame.index()] = self.clock;
        let Some(ghost) = ghost else {
            let hot = self.len(HOT) + self.len(WATCH);
            let room = u64::from(self.frames).saturating_sub(self.cold_target);
            self.q
                .push_back(if hot < room { HOT } else { FRESH }, frame.0);
            return;
        };
        let r = self.clock - ghost.seen;
        if ghost.was_hot {
            self.dead_age = self.dead_age.max(2 * r);
            self.shrink();
        }
        if r < self.idle() {
            if !ghost.was_hot {
                self.grow();
            }
            self.q.push_back(HOT, frame.0);
        } else {
            let hot = self.len(HOT) + self.len(WATCH);
            let room = u64::from(self.frames).saturating_sub(self.cold_target);
            self.q
                .push_back(if hot < room { HOT } else { FRESH }, frame.0);
            if !ghost.was_hot {
                for _ in 0..self.far {
                    self.shrink();
                }
            }
        }
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        let Some(list) = self.q.remove(frame.0) else {
            return;
        };
        if departure == Departure::Evicted {
            if list == WATCH {
                self.watch_now = (self.watch_now + 2).min(self.frames.into());
            }
            let was_hot = list == HOT || list == WATCH;
            let max = (u64::from(self.frames) * self.ghost_share / 1000) as u32;
            self.ghosts.push(page, self.seen[frame.index()], was_hot);
            while self.ghosts.len() > max {
                if !self.ghosts.pop() {
                    self.shrink();
                }
            }
        }
    }

    fn page_rescued(&mut self, frame: FrameId) {
        let r = self.clock - self.seen[frame.index()];
        self.seen[frame.index()] = self.clock;
        match self.q.list_of(frame.0) {
            Some(WATCH) => {
                self.dead_age = self.dead_age.max(2 * r);
                self.watch_now = self.watch_now.saturating_sub(1);
                self.credit = self.credit.saturating_sub(self.probe_every);
                self.q.move_to_back(HOT, frame.0);
            }
            Some(FRESH) | Some(TEST) => {
                if r < self.idle() {
                    for _ in 0..self.near {
                        self.grow();
                    }
                    self.q.move_to_back(HOT, frame.0);
                } else {
                    self.q.move_to_back(FRESH, frame.0);
                }
            }
            _ => {}
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        // cold split
        let cold = self.len(FRESH) + self.len(TEST);
        while self.len(TEST) * 1000 < cold * self.untouched {
            let Some(frame) = pull(&mut self.q, FRESH, probe) else {
                break;
            };
            probe.unmap(frame);
            self.q.move_to_back(TEST, frame.0);
        }
        let hot = self.len(HOT) + self.len(WATCH);
        let least = hot * self.watch / 1000;
        self.watch_now = self.watch_now.max(least);
        while self.len(WATCH) < self.watch_now.min(hot) && self.credit >= self.probe_every {
            if !self.probe_one(probe) {
                break;
            }
        }
        self.credit = self.credit.min(self.probe_every * 16);
        let is_dead = self.use_dead && self.idle() > self.dead_age;
        if !is_dead && (cold >= self.cold_target.max(1)) {
            if let Some(f) = pull(&mut self.q, TEST, probe) {
                return Some(f);
            }
            if let Some(f) = pull(&mut self.q, FRESH, probe) {
                return Some(f);
            }
        }
        if let Some(f) = pull(&mut self.q, WATCH, probe) {
            return Some(f);
        }
        self.probe_one(probe);
        [WATCH, HOT, TEST, FRESH]
            .into_iter()
            .find_map(|l| pull(&mut self.q, l, probe))
    }

    fn resize(&mut self, frames: u32) {
        self.frames = frames;
        self.cold_target = self.cold_target.clamp(self.cold_least(), self.cold_most());
    }

    fn check(&self) {
        self.q.check();
    }
}

impl Tidemark {
    fn len(&self, l: u8) -> u64 {
        self.q.length(l).into()
    }
    fn cold_least(&self) -> u64 {
        (u64::from(self.frames) * self.cold_min / 1000).max(1)
    }
    fn cold_most(&self) -> u64 {
        (u64::from(self.frames) * self.cold_max / 1000).max(1)
    }
    fn grow(&mut self) {
        let step = (u64::from(self.frames) * self.step / 1000).max(1);
        self.cold_target = (self.cold_target + step).min(self.cold_most());
    }
    fn shrink(&mut self) {
        let step = (u64::from(self.frames) * self.step / 1000).max(1);
        self.cold_target = self.cold_target.saturating_sub(step).max(self.cold_least());
    }
    fn idle(&self) -> u64 {
        self.q
            .front(WATCH)
            .map_or(0, |f| self.clock - self.seen[f as usize])
    }
    fn probe_one(&mut self, probe: &mut Probe<'_>) -> bool {
        let Some(frame) = pull(&mut self.q, HOT, probe) else {
            return false;
        };
        probe.unmap(frame);
        self.seen[frame.index()] = self.clock;
        self.q.move_to_back(WATCH, frame.0);
        true
    }
}

#[derive(Clone, Copy)]
struct Ghost {
    page: PageId,
    seen: u64,
    was_hot: bool,
    next: u32,
}

struct Ghosts {
    q: Queues,
    table: Vec<Ghost>,
    buckets: Vec<u32>,
}

const NONE: u32 = u32::MAX;
const USED: u8 = 0;
const FREE: u8 = 1;

impl Ghosts {
    fn new(max: u32) -> Ghosts {
        let max = max + 1;
        let mut q = Queues::new(2, max);
        (0..max).for_each(|i| q.push_back(FREE, i));
        let g = Ghost {
            page: PageId {
                object: ObjectId(0),
                index: 0,
            },
            seen: 0,
            was_hot: false,
            next: NONE,
        };
        Ghosts {
            q,
            table: vec![g; max as usize],
            buckets: vec![NONE; (max as usize).next_power_of_two()],
        }
    }
    fn len(&self) -> u32 {
        self.q.length(USED)
    }
    fn bucket(&self, page: PageId) -> usize {
        let mut z = page.index ^ (u64::from(page.object.0) << 40);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) as usize & (self.buckets.len() - 1)
    }
    fn push(&mut self, page: PageId, seen: u64, was_hot: bool) {
        self.take(page);
        if self.q.front(FREE).is_none() {
            self.pop();
        }
        let i = self.q.front(FREE).unwrap();
        self.q.move_to_back(USED, i);
        let b = self.bucket(page);
        self.table[i as usize] = Ghost {
            page,
            seen,
            was_hot,
            next: self.buckets[b],
        };
        self.buckets[b] = i;
    }
    fn take(&mut self, page: PageId) -> Option<Ghost> {
        let b = self.bucket(page);
        let mut at = self.buckets[b];
        let mut prev = NONE;
        while at != NONE {
            let g = self.table[at as usize];
            if g.page == page {
                if prev == NONE {
                    self.buckets[b] = g.next
                } else {
                    self.table[prev as usize].next = g.next
                }
                self.q.move_to_back(FREE, at);
                return Some(g);
            }
            prev = at;
            at = g.next;
        }
        None
    }
    fn pop(&mut self) -> bool {
        let Some(i) = self.q.front(USED) else {
            return true;
        };
        let g = self.table[i as usize];
        self.take(g.page);
        g.was_hot
    }
}
