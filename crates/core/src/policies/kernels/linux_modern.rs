//! Linux since 5.9: two lists for each kind of page, refault distances, and a balance of costs.
//!
//! Pages come to the inactive list of their kind and become active at their second use there. A
//! page that has left leaves a stamp; if it comes back before as many others have left or become
//! active as there are pages it could have pushed out, it is active at once. How much of each kind
//! is looked at follows what reclaiming either has cost: writes, futile looks, and refaults of
//! pages that had been active.
//!
//! Pages are reclaimed in cycles of [`BATCH`], which look at a 4096th of each list first, and at
//! twice as much each time that was not enough. Here a cycle goes on from one choice to the next.
//!
//! # Departures
//! There is one zone and one group of processes. The kernel rotates active pages and activates
//! inactive ones at their first use if they are mapped as program text; which pages are is not
//! known here, and all external ones count as text unless the `text` knob says otherwise. A page
//! shared by many has one bit, so that two uses at once by different processes count as one.
//! Modified external pages are left to a flusher that is not here: they are made active when they
//! are met first, and written when they are met again.

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::ghost_list::{Ghost, Ghosts};
use crate::policies::parts::lists::pull_any;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, KernelUse, Knob, Policy, Probe, Sees, SimulatedPolicy,
    SpacePolicy,
};

/// The description of `linux-modern`.
pub static DESCRIPTION: Description = Description {
    name: "linux-modern",
    summary: "inactive pages become active when used twice, or when back soon after they left",
    lineage: &[
        "van Riel 2008 (split LRU)",
        "Weiner 2012 (refault distance)",
        "Linux 6.12 (mm/vmscan.c, mm/workingset.c)",
    ],
    sees: Sees::Bits,
    knobs: &[
        Knob {
            name: "swappiness",
            meaning: "how dear reading an internal page is taken to be: 100 as an external one",
            min: 0,
            max: 200,
            default: 60,
        },
        Knob {
            name: "text",
            meaning: "1: external pages count as program text; 0: they do not",
            min: 0,
            max: 1,
            default: 1,
        },
    ],
};

const INACTIVE_ANON: u8 = 0;
const ACTIVE_ANON: u8 = 1;
const INACTIVE_FILE: u8 = 2;
const ACTIVE_FILE: u8 = 3;
const LISTS: usize = 4;
const ANON: usize = 0;
const FILE: usize = 1;
const KINDS: usize = 2;

/// SWAP_CLUSTER_MAX: pages in a cycle, looked at on one list before the next has its turn, and
/// the cost of one write or refault.
const BATCH: u64 = 32;
/// DEF_PRIORITY: a cycle begins with this power of two of each list.
const PRIORITY: u32 = 12;
/// Pages in a GiB, as a power of two: what the balance of active and inactive depends on.
const GIB_SHIFT: u32 = 18;

#[derive(Clone, Copy, Default)]
struct Page {
    is_file: bool,
    is_referenced: bool,
    /// Has been active since it came, or had been before it left last.
    is_workingset: bool,
    /// An external page that was found modified once already.
    was_met_modified: bool,
}

/// The state kept for a kind of page.
#[derive(Clone, Copy, Default)]
struct Kind {
    cost: u64,
    /// Refaults that became active at once, now and when the last cycle began.
    activations: u64,
    activations_seen: u64,
}

/// The progress of a cycle.
struct Cycle {
    is_begun: bool,
    priority: u32,
    reclaimed: u64,
    /// The number of pages of each list that this round was to look at, and of those that are left.
    targets: [u64; LISTS],
    left: [u64; LISTS],
    list: usize,
    chunk: u64,
    may_deactivate: [bool; KINDS],
    /// True if active pages are left alone that might be looked at, and are looked at by force.
    is_sparing: bool,
    is_forced: bool,
    is_adjusted: bool,
}

struct LinuxModern {
    queues: Queues,
    pages: Column<Page>,
    ghosts: Ghosts,
    /// The number of pages that have left or become active: the clock of refault distances.
    age: u64,
    kinds: [Kind; KINDS],
    cycle: Cycle,
    swappiness: u64,
    is_file_text: bool,
    frames: u32,
}

/// Makes a `linux-modern`.
pub fn build(settings: Settings) -> impl Policy {
    LinuxModern::new(&settings)
}

impl LinuxModern {
    fn new(settings: &Settings) -> LinuxModern {
        LinuxModern {
            queues: Queues::new(LISTS as u8, settings.frames_max),
            pages: Column::new(Page::default(), settings.frames_max as usize),
            ghosts: Ghosts::new(settings.frames_max.max(1)),
            age: 0,
            kinds: [Kind::default(); KINDS],
            cycle: Cycle::new(),
            swappiness: settings.knobs[0],
            is_file_text: settings.knobs[1] == 1,
            frames: settings.frames,
        }
    }
}

impl Policy for LinuxModern {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let found = self.ghosts.take(arrival.page);
        let kind = usize::from(arrival.is_external);
        let mut page = Page {
            is_file: arrival.is_external,
            ..Page::default()
        };
        let mut list = inactive(kind);
        if arrival.cause == Cause::Kept {
            page.is_referenced = true;
        } else if let Some(found) = found {
            let distance = self.age - found.ghost.seen;
            if distance <= self.workingset_size(kind) {
                list = active(kind);
                self.age += 1;
                self.kinds[kind].activations += 1;
                if found.ghost.was_hot {
                    page.is_workingset = true;
                    self.note_cost(kind, BATCH);
                }
            }
        }
        self.pages[frame.index()] = page;
        self.queues.push_back(list, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        self.queues.remove(frame.0);
        if departure == Departure::Evicted {
            let ghost = Ghost {
                page,
                seen: self.age,
                was_hot: self.pages[frame.index()].is_workingset,
            };
            self.ghosts.remember(ghost, self.frames);
            self.age += 1;
        }
    }

    fn page_copied(&mut self, frame: FrameId, _kernel_use: KernelUse) -> bool {
        // `folio_mark_accessed`: the second use makes it active.
        let page = &mut self.pages[frame.index()];
        let kind = usize::from(page.is_file);
        let is_idle = self.queues.list_of(frame.0) == Some(inactive(kind));
        if core::mem::replace(&mut page.is_referenced, true) && is_idle {
            page.is_referenced = false;
            self.queues.move_to_back(active(kind), frame.0);
            self.age += 1;
        }
        true
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        // Where everything is in use the kernel would go on for longer than one choice may take.
        for _ in 0..3 * self.queues.total() {
            if !self.find_turn(probe) {
                break;
            }
            if let Some(frame) = self.look(probe) {
                self.cycle.reclaimed += 1;
                return Some(frame);
            }
        }
        let lists = [INACTIVE_FILE, INACTIVE_ANON, ACTIVE_FILE, ACTIVE_ANON];
        pull_any(&mut self.queues, &lists, probe)
    }

    fn resize(&mut self, frames: u32) {
        self.frames = frames;
    }

    fn check(&self) {
        self.queues.check();
        self.ghosts.check();
        for list in 0..LISTS as u8 {
            for frame in self.queues.iter(list) {
                assert_eq!(self.pages[frame as usize].is_file, list >= INACTIVE_FILE);
            }
        }
    }
}

impl SimulatedPolicy for LinuxModern {
    fn pages_ahead(&self, wanted: &[PageId], leaving: &[PageId]) {
        self.ghosts.bring_near(wanted, leaving);
    }
}

impl SpacePolicy for LinuxModern {}

/// The cycle and its rounds.
impl LinuxModern {
    /// Finds the list whose turn it is, beginning rounds as long as there is nothing left of one.
    /// Answers whether there is one.
    fn find_turn(&mut self, probe: &mut Probe<'_>) -> bool {
        let mut rounds = 0;
        loop {
            let cycle = &mut self.cycle;
            if cycle.chunk > 0 && cycle.left[cycle.list] > 0 {
                return true;
            }
            if cycle.left.iter().any(|&left| left > 0) {
                cycle.list = (cycle.list + 1) % LISTS;
                cycle.chunk = BATCH;
                if cycle.list == 0 {
                    self.adjust();
                }
                continue;
            }
            rounds += 1;
            if rounds > 3 * PRIORITY {
                return false;
            }
            self.begin_round(probe);
        }
    }

    /// Begins the next round: of the same cycle if it has not brought enough, of the next if it
    /// has or nothing is left to try.
    fn begin_round(&mut self, probe: &mut Probe<'_>) {
        let cycle = &mut self.cycle;
        if cycle.reclaimed >= BATCH {
            self.end_cycle(probe);
        } else if cycle.is_begun && cycle.priority > 0 {
            cycle.priority -= 1;
        } else if cycle.is_begun && cycle.is_sparing && !cycle.is_forced {
            cycle.is_forced = true;
            cycle.priority = PRIORITY;
        } else if cycle.is_begun {
            self.end_cycle(probe);
        }
        self.cycle.is_begun = true;
        self.plan(probe);
    }

    fn end_cycle(&mut self, probe: &mut Probe<'_>) {
        // Internal pages must age even if none was looked at.
        if self.is_inactive_low(ANON) {
            for _ in 0..BATCH {
                if let Some(frame) = self.queues.front(ACTIVE_ANON).map(FrameId) {
                    probe.take_referenced(frame);
                    self.deactivate(frame);
                }
            }
        }
        for kind in &mut self.kinds {
            kind.activations_seen = kind.activations;
        }
        self.cycle = Cycle::new();
    }

    /// Says how many pages of each list this round looks at.
    fn plan(&mut self, probe: &Probe<'_>) {
        for kind in [ANON, FILE] {
            let of_kind = &self.kinds[kind];
            let has_refaults = of_kind.activations != of_kind.activations_seen;
            self.cycle.may_deactivate[kind] =
                self.cycle.is_forced || has_refaults || self.is_inactive_low(kind);
        }
        let priority = self.cycle.priority;
        let (shares, sum) = self.shares(probe);
        for list in 0..LISTS as u8 {
            let size = self.length(list) >> priority;
            let place = usize::from(list);
            self.cycle.targets[place] = size * shares[kind_of(list)] / sum;
            let is_active = matches!(list, ACTIVE_ANON | ACTIVE_FILE);
            if is_active && !self.cycle.may_deactivate[kind_of(list)] {
                self.cycle.is_sparing |= self.cycle.targets[place] > 0;
                self.cycle.targets[place] = 0;
            }
        }
        self.cycle.left = self.cycle.targets;
        (self.cycle.list, self.cycle.chunk) = (0, BATCH);
        self.cycle.is_adjusted = false;
    }

    /// Computes the parts of the lists of either kind that are looked at, and the whole.
    fn shares(&self, probe: &Probe<'_>) -> ([u64; KINDS], u64) {
        let cycle = &self.cycle;
        if cycle.priority == 0 && self.swappiness != 0 {
            return ([1, 1], 1);
        }
        let file = self.length(INACTIVE_FILE) + self.length(ACTIVE_FILE);
        let free = u64::from(probe.frames_free());
        let has_old_anon = self.length(INACTIVE_ANON) >> cycle.priority > 0;
        let is_file_tiny = file + free <= high_watermark(self.frames.into());
        if is_file_tiny && !cycle.may_deactivate[ANON] && has_old_anon {
            return ([1, 0], 1);
        }
        let has_old_file = self.length(INACTIVE_FILE) >> cycle.priority > 0;
        if has_old_file && !cycle.may_deactivate[FILE] {
            return ([0, 1], 1);
        }
        let [anon, file] = self.kinds.map(|kind| kind.cost);
        let total = anon + file;
        let (anon, file) = (total + anon, total + file);
        let total = anon + file;
        let anon = self.swappiness * (total + 1) / (anon + 1);
        let file = (200 - self.swappiness) * (total + 1) / (file + 1);
        ([anon, file], (anon + file).max(1))
    }

    /// Once enough is reclaimed, ends the round for the kind that has less left of it, and cuts
    /// the other's down to the same part of its target.
    fn adjust(&mut self) {
        if self.cycle.reclaimed < BATCH || self.cycle.is_adjusted {
            return;
        }
        let Cycle { targets, left, .. } = &mut self.cycle;
        let of = |counts: &[u64; LISTS], kind: usize| counts[2 * kind] + counts[2 * kind + 1];
        let (anon, file) = (of(left, ANON), of(left, FILE));
        if anon == 0 || file == 0 {
            *left = [0; LISTS];
            return;
        }
        let (less, more) = if file > anon {
            (ANON, FILE)
        } else {
            (FILE, ANON)
        };
        let percent = of(left, less) * 100 / (of(targets, less) + 1);
        (left[2 * less], left[2 * less + 1]) = (0, 0);
        for list in [2 * more, 2 * more + 1] {
            let scanned = targets[list] - left[list];
            left[list] = (targets[list] * (100 - percent) / 100).saturating_sub(scanned);
        }
        self.cycle.is_adjusted = true;
    }
}

/// Single pages.
impl LinuxModern {
    /// Looks at the oldest page of the list whose turn it is. Answers its frame if it is to go.
    fn look(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let list = self.cycle.list as u8;
        self.cycle.left[self.cycle.list] -= 1;
        self.cycle.chunk -= 1;
        let frame = FrameId(self.queues.front(list)?);
        if !probe.may_leave(frame) {
            self.queues.move_to_back(list, frame.0);
            return None;
        }
        let kind = kind_of(list);
        if list == active(kind) {
            let is_text = kind == FILE && self.is_file_text;
            if probe.take_referenced(frame) && is_text {
                self.queues.move_to_back(list, frame.0);
                self.note_cost(kind, 1);
            } else {
                self.deactivate(frame);
            }
            return None;
        }
        match self.judge(frame, probe) {
            Verdict::Reclaim { is_modified } => {
                let writes = u64::from(is_modified);
                self.note_cost(kind, writes * BATCH + writes);
                Some(frame)
            }
            Verdict::Keep => {
                self.queues.move_to_back(list, frame.0);
                self.note_cost(kind, 1);
                None
            }
            Verdict::Activate => {
                self.queues.move_to_back(active(kind), frame.0);
                self.age += 1;
                self.note_cost(kind, 1);
                None
            }
        }
    }

    fn judge(&mut self, frame: FrameId, probe: &mut Probe<'_>) -> Verdict {
        let page = &mut self.pages[frame.index()];
        let was_referenced = core::mem::take(&mut page.is_referenced);
        if probe.take_referenced(frame) {
            page.is_referenced = true;
            let is_text = page.is_file && self.is_file_text;
            return match was_referenced || is_text {
                true => Verdict::Activate,
                false => Verdict::Keep,
            };
        }
        let is_modified = probe.may_be_modified(frame);
        if is_modified && page.is_file {
            if was_referenced {
                return Verdict::Keep;
            }
            if !core::mem::replace(&mut page.was_met_modified, true) {
                return Verdict::Activate;
            }
        }
        Verdict::Reclaim { is_modified }
    }

    fn deactivate(&mut self, frame: FrameId) {
        let page = &mut self.pages[frame.index()];
        page.is_workingset = true;
        let list = inactive(usize::from(page.is_file));
        self.queues.move_to_back(list, frame.0);
    }

    /// Notes the cost of reclaiming pages of a kind. Old costs fade as memory turns over.
    fn note_cost(&mut self, kind: usize, cost: u64) {
        self.kinds[kind].cost += cost;
        let total: u64 = self.kinds.iter().map(|kind| kind.cost).sum();
        if total > u64::from(self.queues.total()) / 4 {
            self.kinds.iter_mut().for_each(|kind| kind.cost /= 2);
        }
    }

    /// The number of pages a page of that kind could have pushed out, had it stayed.
    fn workingset_size(&self, kind: usize) -> u64 {
        let actives = self.length(ACTIVE_FILE) + self.length(ACTIVE_ANON);
        actives + self.length(inactive(1 - kind))
    }

    /// Returns true if a kind has too few inactive pages: under half up to a GiB, and less of more.
    fn is_inactive_low(&self, kind: usize) -> bool {
        let (idle, busy) = (self.length(inactive(kind)), self.length(active(kind)));
        let gib = (idle + busy) >> GIB_SHIFT;
        let ratio = if gib > 0 { (10 * gib).isqrt() } else { 1 };
        idle * ratio < busy
    }

    fn length(&self, list: u8) -> u64 {
        self.queues.length(list).into()
    }
}

impl Cycle {
    fn new() -> Cycle {
        Cycle {
            is_begun: false,
            priority: PRIORITY,
            reclaimed: 0,
            targets: [0; LISTS],
            left: [0; LISTS],
            list: 0,
            chunk: 0,
            may_deactivate: [false; KINDS],
            is_sparing: false,
            is_forced: false,
            is_adjusted: false,
        }
    }
}

/// The fate of an inactive page.
enum Verdict {
    Reclaim { is_modified: bool },
    Keep,
    Activate,
}

fn inactive(kind: usize) -> u8 {
    [INACTIVE_ANON, INACTIVE_FILE][kind]
}

fn active(kind: usize) -> u8 {
    [ACTIVE_ANON, ACTIVE_FILE][kind]
}

fn kind_of(list: u8) -> usize {
    usize::from(list >= INACTIVE_FILE)
}

/// The high watermark of a zone of that many pages, with `watermark_scale_factor` 10.
fn high_watermark(frames: u64) -> u64 {
    let kib = 4 * frames;
    let least = (16 * kib).isqrt().clamp(128, 262_144) / 4;
    let step = (least / 4).max(frames * 10 / 10_000);
    least + 2 * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::parts::bench::{Bench, settings};

    fn policy(frames: u32) -> (LinuxModern, Bench) {
        let policy = LinuxModern::new(&settings(frames, &[60, 1]));
        (policy, Bench::new(frames))
    }

    fn judge(policy: &mut LinuxModern, bench: &mut Bench, number: u32) -> &'static str {
        match policy.judge(FrameId(number), &mut bench.probe()) {
            Verdict::Keep => "keep",
            Verdict::Activate => "activate",
            Verdict::Reclaim { is_modified: false } => "drop",
            Verdict::Reclaim { is_modified: true } => "write",
        }
    }

    #[test]
    fn an_internal_page_is_active_at_its_second_use_and_text_at_its_first() {
        let (mut policy, mut bench) = policy(4);
        bench.bring(&mut policy, 0, Cause::ZeroFill);
        bench.bring_of(&mut policy, 1, Cause::Fetched, true);
        assert_eq!(judge(&mut policy, &mut bench, 0), "drop");
        bench.touch(&[0, 1]);
        assert_eq!(judge(&mut policy, &mut bench, 0), "keep");
        assert_eq!(judge(&mut policy, &mut bench, 1), "activate");
        bench.touch(&[0]);
        assert_eq!(judge(&mut policy, &mut bench, 0), "activate");
    }

    #[test]
    fn a_modified_external_page_is_written_when_it_is_met_again() {
        let (mut policy, mut bench) = policy(4);
        bench.bring_of(&mut policy, 0, Cause::Fetched, true);
        bench.bring(&mut policy, 1, Cause::ZeroFill);
        (bench.bits.modified[0], bench.bits.modified[1]) = (true, true);
        assert_eq!(judge(&mut policy, &mut bench, 0), "activate");
        assert_eq!(judge(&mut policy, &mut bench, 0), "write");
        assert_eq!(judge(&mut policy, &mut bench, 1), "write");
    }

    #[test]
    fn a_page_back_before_the_active_ones_could_have_left_is_active_at_once() {
        let (mut policy, mut bench) = policy(8);
        (0..8).for_each(|number| bench.bring(&mut policy, number, Cause::ZeroFill));
        (0..3).for_each(|number| policy.queues.move_to_back(ACTIVE_ANON, number));
        for (number, others, list) in [(5, 2, ACTIVE_ANON), (6, 4, INACTIVE_ANON)] {
            bench.evict(&mut policy, number);
            // The number of pages that leave or become active before it is back.
            policy.age += others;
            bench.bring(&mut policy, number, Cause::Fetched);
            assert_eq!(policy.queues.list_of(number), Some(list), "{others}");
        }
        assert_eq!(policy.kinds[ANON].activations, 1);
        assert_eq!(policy.kinds[ANON].cost, 0);
    }

    #[test]
    fn only_what_had_been_active_costs_when_it_comes_back() {
        let (mut policy, mut bench) = policy(1000);
        (0..1000).for_each(|number| bench.bring(&mut policy, number, Cause::ZeroFill));
        (0..9).for_each(|number| policy.queues.move_to_back(ACTIVE_ANON, number));
        policy.deactivate(FrameId(0));
        bench.evict(&mut policy, 0);
        bench.bring(&mut policy, 0, Cause::Fetched);
        assert_eq!(policy.kinds[ANON].cost, BATCH);
        assert!(policy.pages[0].is_workingset);
        // Old costs fade.
        (0..7).for_each(|_| policy.note_cost(FILE, BATCH));
        assert_eq!(
            (policy.kinds[ANON].cost, policy.kinds[FILE].cost),
            (16, 112)
        );
    }

    #[test]
    fn the_kind_that_has_cost_more_is_looked_at_less() {
        let (mut policy, mut bench) = policy(1000);
        (0..800)
            .for_each(|number| bench.bring_of(&mut policy, number, Cause::Fetched, number < 400));
        policy.cycle.may_deactivate = [true; KINDS];
        policy.cycle.priority = 2;
        assert_eq!(policy.shares(&bench.probe()), ([60, 140], 200));
        policy.kinds[FILE].cost = 90;
        let (shares, sum) = policy.shares(&bench.probe());
        assert_eq!((shares, sum), ([60 * 271 / 91, 140 * 271 / 181], 178 + 209));
        // At the last priority everything is looked at.
        policy.cycle.priority = 0;
        assert_eq!(policy.shares(&bench.probe()), ([1, 1], 1));
    }

    #[test]
    fn the_second_copy_by_a_system_call_makes_a_page_active() {
        let mut bench = Bench::new(4);
        let mut policy = LinuxModern::new(&settings(4, &[60, 1]));
        bench.bring(&mut policy, 0, Cause::Fetched);
        assert!(policy.page_copied(FrameId(0), KernelUse::First));
        assert_eq!(policy.queues.list_of(0), Some(INACTIVE_ANON));
        assert!(policy.page_copied(FrameId(0), KernelUse::Again));
        assert_eq!(policy.queues.list_of(0), Some(ACTIVE_ANON));
    }
}
