//! Random runs: a [`Plan`] is a setup and a list of [`Step`]s, drawn from [`Choices`].
//!
//! A step names spaces and pages by small numbers that are valid in every state, and is
//! skipped where it cannot apply. So any steps can be deleted from a plan and the rest still runs:
//! that is what makes [`shrink`](crate::shrink) simple.

use std::fmt;

use tidemark_core::id::{FrameId, PagerId, SpaceId, VirtPage};
use tidemark_core::kernels::{GAINS, Gains, Kernel, Pacing, Passes, Placement, SwapAhead};
use tidemark_core::load;
use tidemark_core::memory::address_space::Advice;
use tidemark_core::policies;
use tidemark_core::seams::machine::Rights;
use tidemark_core::seams::policy::Knob;
use tidemark_core::vm::{Config, Counters};

use crate::machine::Kind;
use crate::memory::Origin;
use crate::pager::Temper;
use crate::physical::Stamp;
use crate::random::{Bytes, Choices};
use crate::stage::{Act, Setup, Stage};

/// Random runs use this many pages of each space for anonymous memory.
const ANONYMOUS_PAGES: u64 = 48;
/// The place at which they map external pages, and the number of those.
const EXTERNAL_AT: u64 = 64;
const EXTERNAL_PAGES: u64 = 16;
const EXTERNAL_PAGER: PagerId = PagerId(1);
/// The pager whose pages are copied: it is never written to.
const COPIED_PAGER: PagerId = PagerId(2);
/// More spaces than these are not made.
const SPACES_MAX: usize = 4;

/// No more steps are spelled by bytes, however many there are.
const STEPS_MAX: usize = 500;

/// Something that happens to the memory under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A program reads a page.
    Read(Spot),
    /// A program writes a page: something new, or what it wrote to it the time before the last.
    Write {
        /// The place.
        spot: Spot,
        /// True if the mapping is new.
        is_new: bool,
    },
    /// A program reads or writes pages one after the other: as many, upwards or downwards.
    Sweep {
        /// The first.
        spot: Spot,
        /// The number of pages.
        pages: u64,
        /// In which order.
        way: Way,
        /// True if they are written.
        is_writing: bool,
    },
    /// Anonymous memory is mapped.
    Map(Spot, u64, Rights),
    /// External pages are mapped, shared.
    MapShared(Spot, u64, Rights),
    /// Memory is mapped that has what external pages have.
    MapCopy(Spot, u64, Rights),
    /// Memory is unmapped.
    Unmap(Spot, u64),
    /// Memory is unmapped, and the core learns of it late.
    UnmapUnseen(Spot, u64),
    /// Contents are dropped.
    Discard(Spot, u64),
    /// Memory is moved.
    Remap(Spot, u64, u64),
    /// Rights are changed.
    Protect(Spot, u64, Rights),
    /// Advice is given.
    Advise(Spot, u64, Advice),
    /// Modified external pages of a space are written, as far as that goes at once.
    Flush(u64),
    /// A space is copied.
    Fork(u64),
    /// A space is made.
    Create,
    /// A space is ended.
    Destroy(u64),
    /// Pages stand where the core knows of none.
    Appear(Spot, u64),
    /// The core takes over what it has not heard of.
    Adopt(u64),
    /// A page is held in place: the first that is mapped from there on.
    Pin(Spot),
    /// All held pages are let go.
    UnpinAll,
    /// The number of usable frames changes to this many parts in eight of the most.
    Limit(u64),
    /// Time passes, in milliseconds.
    Tick(u64),
    /// The next transfer ends.
    Deliver,
    /// All transfers end.
    Drain,
}

/// A page of a space: both are reduced to what there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spot {
    /// The number of the space among the living ones.
    pub space: u64,
    /// The page.
    pub page: u64,
}

/// The direction of a sweep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// To higher pages.
    Up,
    /// To lower pages.
    Down,
}

/// A run: what is set up and what happens.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The setup with which the run starts.
    pub setup: Setup,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:?}", self.setup)?;
        self.steps
            .iter()
            .try_for_each(|step| writeln!(out, "    {step:?}"))
    }
}

/// The faults that the surroundings of a run show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weather {
    /// Pagers answer in order and never fail.
    Calm,
    /// Pagers are slow, reorder and fail; stores fill up.
    Foul,
}

impl Plan {
    /// Draws a plan of `steps` steps.
    pub fn draw(choices: &mut dyn Choices, weather: Weather, steps: usize) -> Plan {
        let setup = draw_setup(choices, weather);
        let has_forks = choices.chance(1, 2);
        let steps = (0..steps).map(|_| draw_step(choices, has_forks)).collect();
        Plan { setup, steps }
    }

    /// The plan that `bytes` spell: as many steps as they are good for.
    pub fn spell(bytes: &[u8]) -> Plan {
        let mut choices = Bytes::new(bytes);
        let weather = if choices.chance(1, 2) {
            Weather::Calm
        } else {
            Weather::Foul
        };
        let mut plan = Plan::draw(&mut choices, weather, 0);
        let has_forks = choices.chance(1, 2);
        while !choices.is_spent() && plan.steps.len() < STEPS_MAX {
            plan.steps.push(draw_step(&mut choices, has_forks));
        }
        plan
    }
}

fn draw_setup(choices: &mut dyn Choices, weather: Weather) -> Setup {
    let policies: Vec<&'static str> = policies::entries()
        .iter()
        .filter(|entry| entry.description.sees.is_shown_live())
        .map(|entry| entry.description.name)
        .collect();
    let policy = policies[choices.below(policies.len() as u64) as usize];
    let kind = if choices.chance(1, 2) {
        Kind::Bits
    } else {
        Kind::SoftFaults
    };
    let is_foul = weather == Weather::Foul;
    let swap_slots = if is_foul && choices.chance(1, 4) {
        24
    } else {
        4096
    };
    let config = draw_config(choices);
    let swap = if is_foul {
        draw_temper(choices)
    } else {
        Temper::CALM
    };
    let outside = if is_foul {
        draw_temper(choices)
    } else {
        Temper::CALM
    };
    let seed = choices.below(1 << 32);
    Setup {
        config,
        policy,
        load: pick_load(seed),
        kind,
        swap_slots,
        swap,
        outside,
        seed,
        is_traced: false,
    }
}

/// A load control with its knobs at one end: at their defaults most need more programs, or more
/// time, than a plan has.
fn pick_load(seed: u64) -> (&'static str, Vec<(&'static str, u64)>) {
    let entries = load::registry::entries();
    let count = entries.len() as u64;
    let description = entries[(seed % count) as usize].description;
    let is_least = (seed / count).is_multiple_of(2);
    let end = |knob: &Knob| if is_least { knob.min } else { knob.max };
    let knobs = description.knobs.iter();
    let knobs = knobs.map(|knob| (knob.name, end(knob)));
    (description.name, knobs.collect())
}

fn draw_config(choices: &mut dyn Choices) -> Config {
    let frames = 3 + choices.below(22) as u32;
    if choices.chance(1, 4) {
        return Config {
            is_logging: true,
            ..Config::demand(frames)
        };
    }
    let free_low = choices.below(u64::from(frames / 3) + 1) as u32;
    let reserve = choices.below(2) as u32;
    let free_high = free_low + choices.below(u64::from(frames / 3) + 1) as u32;
    let is_served = free_low >= reserve && free_high > reserve;
    let cluster_pages = 1 << choices.below(4);
    let swap_ahead = match choices.below(6) {
        0 => SwapAhead::Block(cluster_pages),
        1 => SwapAhead::Slots(cluster_pages),
        2 => SwapAhead::Addresses(cluster_pages),
        _ => SwapAhead::Streams,
    };
    Config {
        frames_max: frames,
        frames_limit: frames,
        free_low,
        free_high,
        reserve,
        cluster_pages,
        laundry_max: 1 + choices.below(16) as u32,
        ahead_pages_max: choices.below(17) as u32,
        ahead_part: 1 << choices.below(4),
        zero_ahead_pages_max: choices.below(9) as u32,
        is_scaled: false,
        default_cluster_pages: 1 << choices.below(3),
        is_ahead_mapped: choices.chance(1, 2),
        is_logging: choices.chance(1, 2),
        kernel: Kernel {
            pacing: (is_served && choices.chance(1, 3)).then(|| draw_pacing(choices)),
            placement: match choices.chance(1, 3) {
                true => Placement::InPlace,
                false => Placement::Together,
            },
            swap_ahead,
        },
    }
}

fn draw_pacing(choices: &mut dyn Choices) -> Pacing {
    if choices.chance(1, 3) {
        return Pacing::Controlled(Gains {
            interval_ns: 1 + choices.below(100_000_000),
            ..GAINS
        });
    }
    Pacing::Passes(Passes {
        pass_pages: 1 + choices.below(8) as u32,
        wait_laundry: 1 + choices.below(8) as u32,
        resume_laundry: choices.below(4) as u32,
        wait_ns: choices.below(100_000_000),
        wait_page_ns: choices.below(30_000_000),
        is_pausing: choices.chance(1, 2),
        is_double_paging: choices.chance(1, 2),
    })
}

fn draw_temper(choices: &mut dyn Choices) -> Temper {
    let per_mille = [0, 0, 20, 200];
    Temper {
        latency_ns_min: 1000,
        latency_ns_max: 1000 + choices.below(10_000_000),
        fetch_failures_per_mille: per_mille[choices.below(4) as usize],
        store_failures_per_mille: per_mille[choices.below(4) as usize],
        capacity_pages: usize::MAX,
    }
}

/// Draws a random step of a program. Without forks (`has_forks` is false), pages that the core did
/// not bring appear more often.
fn draw_step(choices: &mut dyn Choices, has_forks: bool) -> Step {
    let spot = draw_spot(choices);
    match choices.below(100) {
        0..26 => Step::Read(spot),
        26..30 => draw_sweep(choices, spot),
        30..60 => Step::Write {
            spot,
            is_new: choices.chance(3, 4),
        },
        60..66 => Step::Map(spot, 1 + choices.below(16), draw_rights(choices)),
        66 => Step::MapShared(spot, 1 + choices.below(8), draw_rights(choices)),
        67 => Step::MapCopy(spot, 1 + choices.below(8), draw_rights(choices)),
        68..70 => Step::Unmap(spot, 1 + choices.below(12)),
        70 => Step::UnmapUnseen(spot, 1 + choices.below(8)),
        71..73 => Step::Discard(spot, 1 + choices.below(8)),
        73..75 => Step::Remap(spot, choices.below(ANONYMOUS_PAGES), 1 + choices.below(8)),
        75..77 => Step::Protect(spot, 1 + choices.below(8), draw_rights(choices)),
        77 if choices.chance(1, 3) => Step::Flush(spot.space),
        77 => Step::Advise(spot, 1 + choices.below(16), draw_advice(choices)),
        78..80 if has_forks => Step::Fork(spot.space),
        78..80 => Step::Appear(spot, 8),
        80 => Step::Create,
        81 => Step::Destroy(spot.space),
        82 => Step::Appear(spot, 1 + choices.below(8)),
        83 => Step::Adopt(spot.space),
        84..87 => Step::Pin(spot),
        87 => Step::UnpinAll,
        88 => Step::Limit(1 + choices.below(8)),
        89..91 => Step::Tick(1 + choices.below(1000)),
        91..98 => Step::Deliver,
        _ => Step::Drain,
    }
}

/// Pages near a few centres, upwards as often as not, so that runs and reuse both occur.
fn draw_spot(choices: &mut dyn Choices) -> Spot {
    let space = choices.below(SPACES_MAX as u64);
    let page = if choices.chance(1, 12) {
        EXTERNAL_AT + choices.below(EXTERNAL_PAGES)
    } else {
        choices.below(ANONYMOUS_PAGES)
    };
    Spot { space, page }
}

fn draw_rights(choices: &mut dyn Choices) -> Rights {
    match choices.below(8) {
        0 => Rights::None,
        1..3 => Rights::Read,
        _ => Rights::Write,
    }
}

fn draw_sweep(choices: &mut dyn Choices, spot: Spot) -> Step {
    let way = if choices.chance(2, 3) {
        Way::Up
    } else {
        Way::Down
    };
    Step::Sweep {
        spot,
        pages: 2 + choices.below(16),
        way,
        is_writing: choices.chance(1, 2),
    }
}

fn draw_advice(choices: &mut dyn Choices) -> Advice {
    let advice = [
        Advice::Normal,
        Advice::Sequential,
        Advice::Reverse,
        Advice::Random,
    ];
    advice[choices.below(advice.len() as u64) as usize]
}

/// A stage on which steps are carried out.
pub struct Actor {
    stage: Stage,
    spaces: Vec<SpaceId>,
    frames_max: u32,
    frames_least: u32,
    next_stamp: u64,
    /// Pages held in place.
    pinned: u32,
    /// As many as there are frames: those that would leave no room are disowned.
    pinned_most: u32,
}

impl Actor {
    /// Sets the stage: one space, with most of its anonymous memory mapped.
    pub fn new(setup: &Setup) -> Actor {
        let mut stage = Stage::new(setup);
        for index in 0..EXTERNAL_PAGES / 2 {
            stage.preset_external(EXTERNAL_PAGER, index, Stamp(1 << 32 | index));
            stage.preset_external(COPIED_PAGER, index, Stamp(1 << 33 | index));
        }
        // Maps the external object for good: its last unmapping would end it.
        let keeper = stage.create_space();
        stage.map(
            keeper,
            VirtPage(EXTERNAL_AT),
            EXTERNAL_PAGES,
            Rights::Write,
            shared(0),
        );
        let space = stage.create_space();
        let pages = ANONYMOUS_PAGES * 3 / 4;
        stage.map(space, VirtPage(0), pages, Rights::Write, Origin::Anonymous);
        Actor {
            stage,
            spaces: vec![space],
            frames_max: setup.config.frames_max,
            frames_least: setup.config.reserve + 2 + (setup.config.frames_max / 4).min(2),
            next_stamp: 1,
            pinned: 0,
            pinned_most: setup.config.frames_max,
        }
    }

    /// Carries out one step, or skips it where it cannot apply.
    pub fn act(&mut self, step: Step) {
        match step {
            Step::Create => self.create(),
            Step::Tick(ms) => self.stage.tick(ms * 1_000_000),
            Step::Deliver => {
                self.stage.deliver();
            }
            Step::Drain => self.stage.drain(),
            Step::UnpinAll => self.unpin_all(),
            Step::Limit(parts) => {
                let frames = (u64::from(self.frames_max) * parts / 8) as u32;
                self.stage
                    .limit(frames.clamp(self.frames_least, self.frames_max));
            }
            Step::Fork(space) | Step::Destroy(space) | Step::Adopt(space) | Step::Flush(space) => {
                if let Some((number, space)) = self.find_space(space) {
                    self.act_on_space(step, number, space);
                }
            }
            Step::Read(spot)
            | Step::Write { spot, .. }
            | Step::Map(spot, ..)
            | Step::MapShared(spot, ..)
            | Step::MapCopy(spot, ..)
            | Step::Unmap(spot, ..)
            | Step::UnmapUnseen(spot, ..)
            | Step::Discard(spot, ..)
            | Step::Remap(spot, ..)
            | Step::Protect(spot, ..)
            | Step::Advise(spot, ..)
            | Step::Appear(spot, ..)
            | Step::Sweep { spot, .. }
            | Step::Pin(spot) => {
                if let Some((_, space)) = self.find_space(spot.space) {
                    self.act_on_page(step, space, VirtPage(spot.page));
                }
            }
        }
    }

    /// Ends all trouble; what waits must come to its end, and what was written must be there.
    /// Answers what has happened.
    pub fn wind_down(mut self) -> Counters {
        self.stage.calm_down();
        self.stage.take_failures();
        self.stage.read_everything();
        let failures = self.stage.take_failures();
        assert!(
            failures.is_empty(),
            "accesses fail in calm weather: {failures:?}"
        );
        let counters = self.stage.vm().counters().clone();
        self.stage.close();
        counters
    }

    /// Gives up spaces until the store has room for what is left. Forked ones go first: objects
    /// that several spaces have shared may keep pages that none of them maps any more.
    pub fn shed_load(&mut self, swap_slots: u32) {
        if self.stage.memory().swappable_pages() + self.stage.slots_used() < swap_slots as usize {
            return;
        }
        let (relatives, others) = self
            .spaces
            .iter()
            .partition(|&&space| self.stage.is_relative(space));
        self.spaces = others;
        let relatives: Vec<SpaceId> = relatives;
        relatives
            .into_iter()
            .for_each(|space| self.stage.destroy_space(space));
        while self.stage.memory().swappable_pages() > swap_slots as usize {
            let space = self.spaces.pop().expect("an empty memory fits everywhere");
            self.stage.destroy_space(space);
        }
    }

    fn find_space(&self, number: u64) -> Option<(usize, SpaceId)> {
        let number = number.checked_rem(self.spaces.len() as u64)? as usize;
        Some((number, self.spaces[number]))
    }

    fn create(&mut self) {
        if self.spaces.len() < SPACES_MAX {
            let space = self.stage.create_space();
            self.spaces.push(space);
        }
    }

    fn unpin_all(&mut self) {
        self.stage.machine_mut().unpin_all();
        self.pinned = 0;
    }

    fn act_on_space(&mut self, step: Step, number: usize, space: SpaceId) {
        match step {
            Step::Fork(_) if self.spaces.len() < SPACES_MAX => {
                self.spaces.extend(self.stage.fork(space));
            }
            Step::Destroy(_) => {
                self.spaces.remove(number);
                self.stage.destroy_space(space);
            }
            Step::Adopt(_) => {
                self.stage.adopt(space);
            }
            Step::Flush(_) => {
                let end = EXTERNAL_AT + EXTERNAL_PAGES;
                self.stage.flush(space, &mut (EXTERNAL_AT..end));
            }
            _ => {}
        }
    }

    fn act_on_page(&mut self, step: Step, space: SpaceId, at: VirtPage) {
        match step {
            Step::Read(_) => {
                self.stage.touch(space, at, Act::Read);
            }
            Step::Write { is_new, .. } => self.write(space, at, is_new),
            Step::Map(_, pages, rights) => {
                self.stage.map(space, at, pages, rights, Origin::Anonymous);
            }
            Step::MapShared(_, pages, rights) => {
                let first = at.0 % EXTERNAL_PAGES;
                let pages = pages.min(EXTERNAL_PAGES - first);
                self.stage.map(space, at, pages, rights, shared(first));
            }
            Step::MapCopy(_, pages, rights) => {
                let first = Origin::Copied(COPIED_PAGER, at.0 % EXTERNAL_PAGES);
                self.stage.map(space, at, pages, rights, first);
            }
            Step::Unmap(_, pages) => self.stage.unmap(space, at, pages),
            Step::UnmapUnseen(_, pages) => self.stage.unmap_unseen(space, at, pages),
            Step::Discard(_, pages) => self.stage.discard(space, at, pages),
            Step::Remap(_, to, pages) => {
                let to = VirtPage(to);
                if at.plus(pages) <= to || to.plus(pages) <= at {
                    self.stage.remap(space, at, to, pages);
                }
            }
            Step::Protect(_, pages, rights) => self.stage.protect(space, at, pages, rights),
            Step::Advise(_, pages, advice) => self.stage.advise(space, at, pages, advice),
            Step::Appear(_, pages) => self.appear(space, at, pages),
            Step::Sweep { .. } => self.sweep(step, space, at),
            Step::Pin(_) => self.pin(space, at),
            _ => unreachable!("the other steps name no page"),
        }
    }

    fn write(&mut self, space: SpaceId, at: VirtPage, is_new: bool) {
        // Writing what was there before must not be mistaken for not having written.
        let stamp = if is_new {
            self.take_stamp()
        } else {
            Stamp(1 + at.0 % 2)
        };
        self.stage.touch(space, at, Act::Write(stamp));
    }

    fn appear(&mut self, space: SpaceId, at: VirtPage, pages: u64) {
        for at in (0..pages).map(|offset| at.plus(offset)) {
            let stamp = self.take_stamp();
            self.stage.appear(space, at, stamp);
        }
    }

    fn sweep(&mut self, step: Step, space: SpaceId, at: VirtPage) {
        let Step::Sweep {
            pages,
            way,
            is_writing,
            ..
        } = step
        else {
            return;
        };
        for offset in 0..pages {
            let page = match way {
                Way::Up => Some(at.0 + offset),
                Way::Down => at.0.checked_sub(offset),
            };
            let Some(page) = page else { return };
            let act = if is_writing {
                Act::Write(self.take_stamp())
            } else {
                Act::Read
            };
            self.stage.touch(space, VirtPage(page), act);
        }
    }

    fn pin(&mut self, space: SpaceId, at: VirtPage) {
        let machine = self.stage.machine_mut();
        let is_fit =
            |mapping: &(SpaceId, VirtPage, FrameId, Rights)| mapping.0 == space && mapping.1 >= at;
        let found = machine.mappings().find(is_fit).map(|mapping| mapping.1);
        let Some(found) = found.filter(|_| self.pinned < self.pinned_most) else {
            return;
        };
        self.pinned += 1;
        machine.pin(space, found);
    }

    fn take_stamp(&mut self) -> Stamp {
        self.next_stamp += 1;
        Stamp(1000 + self.next_stamp)
    }
}

fn shared(index: u64) -> Origin {
    Origin::Shared(EXTERNAL_PAGER, index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lockstep;
    use crate::random::SplitMix64;

    #[test]
    fn bytes_spell_a_plan_that_runs() {
        let mut random = SplitMix64::new(3);
        for length in [0, 1, 20, 400, 4000] {
            let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            let plan = Plan::spell(&bytes);
            assert!(plan.steps.len() <= STEPS_MAX);
            lockstep::run(&plan);
        }
    }
}
