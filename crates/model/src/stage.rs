//! The stage: a [`Vm`] on a simulated machine with simulated pagers, under the eye of the law.
//!
//! Every access of a program is compared with [`Memory`], and after every step the contents of
//! every resident page are, whether they are read or not. The stage is also the driver: it
//! carries requests to the pagers and replies back, and lets programs try again when their faults
//! are over.
//!
//! # Invariants, checked after every step
//! 1. [`Vm::check`] and [`SimMachine::check`] find nothing.
//! 2. What the machine maps is resident, and mapped with no more than the program's rights.
//! 3. A resident page holds what was last written to it.

mod flush;
mod load_control;
mod time;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tidemark_core::driver::Driver;
use tidemark_core::event::{Access, Event, Failure, Fault, Resolution};
use tidemark_core::id::{FrameId, ObjectId, PagerId, SpaceId, VirtPage, Waiter};
use tidemark_core::load;
use tidemark_core::memory::address_space::Advice;
use tidemark_core::memory::frame::State;
use tidemark_core::policies;
use tidemark_core::seams::machine::Rights;
use tidemark_core::seams::pager::Place;
use tidemark_core::time::Time;
use tidemark_core::vm::{Config, Vm};

use crate::conformance::ProgramSide;
use crate::machine::{Kind, SimMachine};
use crate::memory::{Memory, Origin};
use crate::pager::{Address, Ledger, SimPager, SimSlots, Temper};
use crate::physical::{Physical, Stamp};
use crate::witness::Witness;

/// More tries than any access may need, and more rounds than any quiet may take.
const TRIES_MAX: u32 = 200;
const ROUNDS_MAX: u32 = 10_000;
/// Between two rounds of waiting for quiet.
const TICK_NS: u64 = 50_000_000;

/// The setup of a stage.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The core's own settings.
    pub config: Config,
    /// The policy, by its name in the registry.
    pub policy: &'static str,
    /// The load control, by its name in the registry, and its knobs. Programs run on whatever it
    /// says: it changes whose pages leave.
    pub load: (&'static str, Vec<(&'static str, u64)>),
    /// The information that the machine has.
    pub kind: Kind,
    /// The number of slots of the swap store.
    pub swap_slots: u32,
    /// The behaviour of the swap store.
    pub swap: Temper,
    /// The behaviour of external pagers.
    pub outside: Temper,
    /// The seed of the pagers' choices.
    pub seed: u64,
    /// True if events are printed as they happen, for the search of a failure.
    pub is_traced: bool,
}

impl Setup {
    /// Demand paging by FIFO in `frames` frames, with reference bits, calm pagers and much swap.
    pub fn demand(frames: u32) -> Setup {
        Setup {
            config: Config {
                is_logging: true,
                ..Config::demand(frames)
            },
            policy: "fifo",
            load: ("none", Vec::new()),
            kind: Kind::Bits,
            swap_slots: 4096,
            swap: Temper::CALM,
            outside: Temper::CALM,
            seed: 0,
            is_traced: false,
        }
    }
}

/// An access of a program to a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Reads it.
    Read,
    /// Writes this to it.
    Write(Stamp),
}

/// The immediate outcome of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touched {
    /// The access is over.
    Done,
    /// The access waits.
    Waiting(Waiter),
    /// The access is not allowed.
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Touch {
    space: SpaceId,
    at: VirtPage,
    act: Act,
    tries: u32,
}

/// A range whose owner has unmapped it, while the core has not been told yet.
#[derive(Clone, Copy, Debug)]
struct LateNotice {
    space: SpaceId,
    at: VirtPage,
    pages: u64,
}

impl LateNotice {
    fn covers(&self, space: SpaceId, at: VirtPage) -> bool {
        self.space == space && (self.at..self.at.plus(self.pages)).contains(&at)
    }
}

/// A [`Vm`], everything around it, and the law.
pub struct Stage {
    vm: Vm,
    machine: SimMachine,
    swap: SimPager,
    outside: SimPager,
    ledger: Ledger,
    memory: Memory,
    /// The core's name for each external object that is mapped.
    objects: BTreeMap<PagerId, ObjectId>,
    now: Time,
    waiting: BTreeMap<Waiter, Touch>,
    ready: VecDeque<Waiter>,
    next_waiter: u64,
    late: Option<LateNotice>,
    /// Spaces that have been forked, and their children.
    relatives: BTreeSet<SpaceId>,
    /// The places at which pages stand that the core has disowned, or stood.
    disowned: BTreeSet<(SpaceId, VirtPage)>,
    decisions: Vec<String>,
    is_traced: bool,
    failures: Vec<(SpaceId, VirtPage, Failure)>,
    store_events: Vec<Event>,
    load_events: Vec<Event>,
}

impl Stage {
    /// An empty stage: no spaces.
    pub fn new(setup: &Setup) -> Stage {
        let config = setup.config.clone();
        let physical = Physical::new(config.frames_max);
        let ledger = Ledger::default();
        let (frames_max, limit) = (config.frames_max, config.frames_limit);
        let policy = policies::build(setup.policy, frames_max, limit, setup.seed, &[])
            .expect("a test names a policy that exists");
        let slots = Box::new(SimSlots::new(setup.swap_slots, ledger.clone()));
        let mut vm = Vm::new(config, Box::new(Witness::new(policy)), slots);
        let load = load::registry::find(setup.load.0).map(|entry| entry.build(&setup.load.1));
        vm.set_load_control(load.expect("it is known").expect("its knobs are in range"));
        Stage {
            vm,
            machine: SimMachine::new(setup.kind, physical.clone()),
            swap: SimPager::new(physical.clone(), setup.swap, setup.seed),
            outside: SimPager::new(physical, setup.outside, setup.seed ^ 1),
            ledger,
            memory: Memory::new(),
            objects: BTreeMap::new(),
            now: Time(0),
            waiting: BTreeMap::new(),
            ready: VecDeque::new(),
            next_waiter: 0,
            late: None,
            relatives: BTreeSet::new(),
            disowned: BTreeSet::new(),
            decisions: Vec::new(),
            is_traced: setup.is_traced,
            failures: Vec::new(),
            store_events: Vec::new(),
            load_events: Vec::new(),
        }
    }

    /// Adds a space in which nothing is mapped.
    pub fn create_space(&mut self) -> SpaceId {
        let space = self.vm.create_space();
        self.memory.create_space(space);
        space
    }

    /// Ends a space and every access that waits in it.
    pub fn destroy_space(&mut self, space: SpaceId) {
        self.tell_late();
        self.waiting.retain(|_, touch| touch.space != space);
        self.machine.drop_wild(space, VirtPage(0), u64::MAX);
        self.memory.destroy_space(space);
        self.relatives.remove(&space);
        self.vm.destroy_space(&mut self.machine, space);
        self.after_step();
        assert!(
            self.machine.mappings().all(|mapping| mapping.0 != space),
            "{space:?} is mapped"
        );
    }

    /// Says what an external page holds at first.
    pub fn preset_external(&mut self, pager: PagerId, index: u64, stamp: Stamp) {
        self.memory.preset_external(pager, index, stamp);
        self.outside.preset(Address::External(pager, index), stamp);
    }

    /// Maps memory. Answers whether that was possible: only where nothing is.
    pub fn map(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        rights: Rights,
        first: Origin,
    ) -> bool {
        self.tell_late();
        let vm = &mut self.vm;
        let result = match first {
            Origin::Anonymous => vm.map_anonymous(space, at, pages, rights),
            Origin::Copied(pager, index) => vm.map_copy(space, at, pages, pager, index, rights),
            Origin::Shared(pager, index) => match self.objects.get(&pager) {
                Some(&object) => vm.map_object(space, at, pages, object, index, rights),
                None => vm
                    .map_external(space, at, pages, pager, index, rights)
                    .map(|object| {
                        self.objects.insert(pager, object);
                    }),
            },
        };
        let is_vacant = !self.memory.is_any_mapped(space, at, pages);
        assert_eq!(
            result.is_ok(),
            is_vacant,
            "mapping {pages} at {at:?} of {space:?}"
        );
        if is_vacant {
            self.memory.map(space, at, pages, rights, first);
        }
        self.after_step();
        is_vacant
    }

    /// Puts a page into mapped, untouched anonymous memory behind the core's back: as if it had
    /// been written before the core was told of the mapping. Not where a fork's other side might
    /// see it. Answers whether that was possible.
    pub fn appear(&mut self, space: SpaceId, at: VirtPage, stamp: Stamp) -> bool {
        self.tell_late();
        let is_writable = self.memory.rights(space, at) == Some(Rights::Write);
        let is_known = self.vm.frame_at(space, at).is_some() || !self.memory.is_fresh(space, at);
        let is_touched = self
            .waiting
            .values()
            .any(|t| (t.space, t.at) == (space, at));
        let is_shared = self.relatives.contains(&space);
        if !is_writable
            || is_known
            || is_touched
            || is_shared
            || self.machine.is_mapped_at(space, at)
        {
            return false;
        }
        self.memory.write(space, at, stamp);
        self.machine.place(space, at, stamp);
        true
    }

    /// Lets the core take over the pages of a space that it has not heard of, as far as it can
    /// now. Answers how many are left.
    pub fn adopt(&mut self, space: SpaceId) -> usize {
        self.tell_late();
        for at in self.machine.wild_pages(space) {
            let (vm, machine) = (&mut self.vm, &mut self.machine);
            if self.disowned.remove(&(space, at)) {
                if !vm.handle_disowned(self.now, machine, space, at, 1) {
                    self.disowned.insert((space, at));
                }
            } else {
                vm.handle_present(self.now, machine, space, at);
            }
            self.after_step();
        }
        self.machine.wild_pages(space).len()
    }

    /// Unmaps whatever is mapped there.
    pub fn unmap(&mut self, space: SpaceId, at: VirtPage, pages: u64) {
        self.tell_late();
        self.machine.drop_wild(space, at, pages);
        self.memory.unmap(space, at, pages);
        self.vm.unmap(&mut self.machine, space, at, pages);
        self.after_step();
    }

    /// Unmaps whatever is mapped there, and lets the core learn of it only before the next change
    /// to any mapping. The core then meets pages that are gone.
    pub fn unmap_unseen(&mut self, space: SpaceId, at: VirtPage, pages: u64) {
        self.tell_late();
        for at in (0..pages).map(|offset| at.plus(offset)) {
            // A page that others see too does not go when one of them unmaps it.
            if self.memory.is_anonymous(space, at) && !self.relatives.contains(&space) {
                self.machine.vanish(space, at);
            }
        }
        self.memory.unmap(space, at, pages);
        self.late = Some(LateNotice { space, at, pages });
        self.after_step();
    }

    /// Drops the contents of whatever is mapped there.
    pub fn discard(&mut self, space: SpaceId, at: VirtPage, pages: u64) {
        self.tell_late();
        self.machine.drop_wild(space, at, pages);
        self.memory.discard(space, at, pages);
        self.vm.discard(&mut self.machine, space, at, pages);
        self.after_step();
    }

    /// Moves whatever is mapped in one range to another, which is unmapped first. The two may not
    /// overlap.
    pub fn remap(&mut self, space: SpaceId, from: VirtPage, to: VirtPage, pages: u64) {
        assert!(
            from.plus(pages) <= to || to.plus(pages) <= from,
            "the ranges overlap"
        );
        self.unmap(space, to, pages);
        self.machine.move_wild(space, from, to, pages);
        self.memory.remap(space, from, to, pages);
        self.vm.remap(&mut self.machine, space, from, to, pages);
        self.after_step();
    }

    /// Sets the rights of whatever is mapped there.
    pub fn protect(&mut self, space: SpaceId, at: VirtPage, pages: u64, rights: Rights) {
        self.tell_late();
        self.memory.protect(space, at, pages, rights);
        self.vm.protect(&mut self.machine, space, at, pages, rights);
        self.after_step();
    }

    /// Gives the core advice about the use of a range, as `madvise` does.
    pub fn advise(&mut self, space: SpaceId, at: VirtPage, pages: u64, advice: Advice) {
        self.tell_late();
        self.vm.advise(space, at, pages, advice);
        self.after_step();
    }

    /// Copies a space. The core must know all of it: `None` while there are pages to adopt.
    pub fn fork(&mut self, space: SpaceId) -> Option<SpaceId> {
        self.tell_late();
        if !self.machine.wild_pages(space).is_empty() {
            return None;
        }
        let child = self.vm.fork(&mut self.machine, space);
        self.memory.fork(space, child);
        self.relatives.extend([space, child]);
        self.after_step();
        Some(child)
    }

    /// Begins an access. What waits ends when the pagers have answered: see
    /// [`deliver`](Self::deliver).
    pub fn touch(&mut self, space: SpaceId, at: VirtPage, act: Act) -> Touched {
        let waiter = Waiter(self.next_waiter);
        self.next_waiter += 1;
        let touched = self.try_touch(
            waiter,
            Touch {
                space,
                at,
                act,
                tries: 0,
            },
        );
        self.after_step();
        touched
    }

    /// Changes how many frames may be used.
    pub fn limit(&mut self, frames: u32) {
        self.vm.handle_limit(self.now, &mut self.machine, frames);
        self.after_step();
    }

    /// Lets time run to the end of the next transfer, and hands its reply to the core. Answers
    /// whether there was one.
    pub fn deliver(&mut self) -> bool {
        let (swap, outside) = (self.swap.next_due(), self.outside.next_due());
        let Some(due) = swap.into_iter().chain(outside).min() else {
            return false;
        };
        self.now = self.now.max(due);
        self.swap.advance(self.now);
        self.outside.advance(self.now);
        let pager = if swap == Some(due) {
            &mut self.swap
        } else {
            &mut self.outside
        };
        let reply = pager.next_reply().expect("it was due");
        if self.is_traced {
            eprintln!("    {reply:?}");
        }
        self.vm.handle_reply(self.now, &mut self.machine, reply);
        self.after_step();
        true
    }

    /// Hands replies to the core until no transfer is under way that may end.
    pub fn drain(&mut self) {
        for _ in 0..ROUNDS_MAX {
            if !self.deliver() {
                return;
            }
        }
        panic!(
            "transfers go on and on: {} pending",
            self.vm.transfers_pending()
        );
    }

    /// Stops every trouble and expects every program to come to the end of its access.
    pub fn calm_down(&mut self) {
        self.tell_late();
        self.machine.unpin_all();
        self.machine.halt(false);
        for pager in [&mut self.swap, &mut self.outside] {
            pager.set_temper(Temper::CALM);
            pager.cancel_failures();
            pager.release();
        }
        for _ in 0..TRIES_MAX {
            self.drain();
            // The core may also remember faults of spaces that have ended, for a while.
            if self.waiting.is_empty() && self.vm.faults_pending() == 0 {
                return;
            }
            self.tick(TICK_NS);
        }
        panic!("accesses wait for good: {:?}", self.waiting);
    }

    /// Reads every page of every space that may be read, one after the other.
    pub fn read_everything(&mut self) {
        let spaces: Vec<SpaceId> = self.memory.spaces().collect();
        for space in spaces {
            let pages: Vec<(VirtPage, Rights)> = self.memory.pages(space).collect();
            for (at, _) in pages
                .into_iter()
                .filter(|(_, rights)| *rights >= Rights::Read)
            {
                self.touch(space, at, Act::Read);
                self.calm_down();
            }
        }
    }

    /// Ends every space and expects that nothing is left behind: no page, no slot, no fault.
    pub fn close(&mut self) {
        let spaces: Vec<SpaceId> = self.memory.spaces().collect();
        spaces
            .into_iter()
            .for_each(|space| self.destroy_space(space));
        self.calm_down();
        let frames = self.vm.frames();
        assert_eq!(frames.in_use(), 0, "frames hold pages without an owner");
        assert_eq!(
            self.ledger.slots_used(),
            0,
            "slots hold pages without an owner"
        );
        assert_eq!(self.vm.transfers_pending(), 0);
    }

    /// The swap store.
    pub fn swap_mut(&mut self) -> &mut SimPager {
        &mut self.swap
    }

    /// The external pagers.
    pub fn outside_mut(&mut self) -> &mut SimPager {
        &mut self.outside
    }

    /// The machine.
    pub fn machine_mut(&mut self) -> &mut SimMachine {
        &mut self.machine
    }

    /// Hands over the decisions since this was last asked.
    pub fn take_decisions(&mut self) -> Vec<String> {
        std::mem::take(&mut self.decisions)
    }

    /// Hands over the failed accesses since this was last asked.
    pub fn take_failures(&mut self) -> Vec<(SpaceId, VirtPage, Failure)> {
        std::mem::take(&mut self.failures)
    }

    /// Hands over what was said of the store since this was last asked.
    pub fn take_store_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.store_events)
    }

    /// Sets the time of a space's programs, which else runs on by itself.
    pub fn clock(&mut self, space: SpaceId, ticks: u64) {
        self.vm.handle_clock(space, ticks);
    }

    /// The core.
    pub fn vm(&self) -> &Vm {
        &self.vm
    }

    /// The law.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The number of accesses that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if that access waits.
    pub fn is_waiting(&self, waiter: Waiter) -> bool {
        self.waiting.contains_key(&waiter)
    }

    /// Returns true if the space has been forked, or made by a fork.
    pub fn is_relative(&self, space: SpaceId) -> bool {
        self.relatives.contains(&space)
    }

    /// The number of slots of the swap store in use.
    pub fn slots_used(&self) -> usize {
        self.ledger.slots_used()
    }

    /// Tells the core of an unmapping that it has not learnt of.
    fn tell_late(&mut self) {
        if let Some(late) = self.late.take() {
            self.vm
                .unmap(&mut self.machine, late.space, late.at, late.pages);
            self.after_step();
        }
    }

    /// One try of an access: straight on the machine, or after a fault that is served at once.
    fn try_touch(&mut self, waiter: Waiter, mut touch: Touch) -> Touched {
        let Touch { space, at, act, .. } = touch;
        if self.late.is_some_and(|late| late.covers(space, at)) {
            return Touched::Refused;
        }
        if self.reach(&touch) {
            return Touched::Done;
        }
        touch.tries += 1;
        assert!(
            touch.tries < TRIES_MAX,
            "an access faults again and again: {touch:?}"
        );
        let access = if act == Act::Read {
            Access::Read
        } else {
            Access::Write
        };
        let fault = Fault {
            space,
            at,
            access,
            waiter,
        };
        if self.is_traced {
            eprintln!("    {fault:?}");
        }
        let resolution = self.vm.handle_fault(self.now, &mut self.machine, fault);
        match resolution {
            Resolution::Resolved(_) => {
                assert!(self.reach(&touch), "{fault:?} is resolved and faults again");
                Touched::Done
            }
            Resolution::Pending(_) => {
                assert!(
                    self.is_allowed(&touch),
                    "{fault:?} is not allowed, and waits"
                );
                self.waiting.insert(waiter, touch);
                Touched::Waiting(waiter)
            }
            Resolution::Invalid => {
                assert!(
                    !self.is_allowed(&touch),
                    "{fault:?} is allowed, and refused"
                );
                Touched::Refused
            }
        }
    }

    /// Carries out an access if the machine lets it. Compares it with the law.
    fn reach(&mut self, touch: &Touch) -> bool {
        let is_allowed = self.is_allowed(touch);
        let Touch { space, at, act, .. } = *touch;
        if !is_allowed && self.machine.is_wild(space, at) {
            return false;
        }
        let is_done = match act {
            Act::Read => match self.machine.read(space, at) {
                Some(seen) => {
                    assert!(is_allowed, "{touch:?} is not allowed, and goes through");
                    self.memory.expect_read(space, at, seen);
                    true
                }
                None => false,
            },
            Act::Write(stamp) => self.machine.write(space, at, stamp),
        };
        if let (true, Act::Write(stamp)) = (is_done, act) {
            assert!(is_allowed, "{touch:?} is not allowed, and goes through");
            self.memory.write(space, at, stamp);
        }
        is_done
    }

    fn is_allowed(&self, touch: &Touch) -> bool {
        let needed = if touch.act == Act::Read {
            Rights::Read
        } else {
            Rights::Write
        };
        self.memory
            .rights(touch.space, touch.at)
            .is_some_and(|rights| rights >= needed)
    }

    /// Does the work that follows every event: requests go out, programs whose faults are over go
    /// on, and everything is checked.
    fn after_step(&mut self) {
        self.conclude();
        self.check();
        while let Some(waiter) = self.ready.pop_front() {
            let Some(touch) = self.waiting.remove(&waiter) else {
                continue;
            };
            self.try_touch(waiter, touch);
            self.conclude();
            self.check();
        }
    }

    fn note(&mut self, event: Event) {
        if self.is_traced {
            eprintln!("      {event:?}");
        }
        match event {
            Event::Resolved(fault, _) | Event::Retry(fault) => self.ready.push_back(fault.waiter),
            Event::Failed(fault, failure) => {
                // The touch is over: on a live process, the program with it.
                if self.waiting.remove(&fault.waiter).is_some() {
                    self.failures.push((fault.space, fault.at, failure));
                }
            }
            Event::StoreFull | Event::StoreFailed => self.store_events.push(event),
            Event::Disowned { space, at } => {
                assert!(self.machine.is_wild(space, at), "{at:?} does not stand");
                self.disowned.insert((space, at));
            }
            Event::Suspend { .. } | Event::Resume { .. } => self.load_events.push(event),
        }
    }

    fn check(&self) {
        self.vm.check();
        self.machine.check();
        for (space, at, frame, rights) in self.machine.mappings() {
            if self.is_unknown(space, at) {
                continue;
            }
            let allowed = self.memory.rights(space, at);
            assert!(
                allowed >= Some(rights),
                "{at:?} of {space:?}: {rights:?}, not {allowed:?}"
            );
            let held = match rights {
                Rights::Write => self.vm.frame_at(space, at),
                Rights::Read | Rights::None => self.vm.readable_frame_at(space, at),
            };
            assert_eq!(held, Some(frame), "{at:?} of {space:?} is mapped");
        }
        let frames = self.vm.frames();
        for frame in (0..frames.len() as u32).map(FrameId) {
            let is_lent = frames.state(frame) != State::Retired;
            let held = self.machine.physical().contents(frame);
            assert!(
                is_lent || held == Stamp::NOISE,
                "{frame:?} was not given back"
            );
        }
        for space in self.memory.spaces() {
            for (at, _) in self.memory.pages(space) {
                self.check_contents(space, at);
            }
        }
    }

    fn check_contents(&self, space: SpaceId, at: VirtPage) {
        if self.is_unknown(space, at) || self.machine.is_wild(space, at) {
            return;
        }
        let Some(frame) = self.vm.readable_frame_at(space, at) else {
            return;
        };
        let held = self.machine.physical().contents(frame);
        let written = self.memory.contents(space, at).expect("it is mapped");
        let is_zeros_instead = held == Stamp::ZEROS && self.memory.is_free(space, at);
        assert!(
            held == written || is_zeros_instead,
            "{frame:?} shows {held:?} at {at:?} of {space:?}, not {written:?}"
        );
    }

    /// Returns true if the core may be wrong about the page because it has not been told yet.
    fn is_unknown(&self, space: SpaceId, at: VirtPage) -> bool {
        self.late.is_some_and(|late| late.covers(space, at))
    }

    /// The frame that holds the page, if it is resident there.
    pub fn frame_at(&self, space: SpaceId, at: VirtPage) -> Option<FrameId> {
        self.vm.frame_at(space, at)
    }
}

impl Driver for Stage {
    fn start_requests(&mut self) -> bool {
        while let Some(slot) = self.ledger.take_given_back() {
            self.swap.spoil(Address::Slot(slot));
        }
        let mut has_started = false;
        while let Some(request) = self.vm.poll_request() {
            has_started = true;
            let pages = self.vm.pages_of(request.ticket);
            let frames = self.vm.frames_of(request.ticket);
            if self.is_traced {
                eprintln!("      {request:?}: {pages:?} {frames:?}");
            }
            match request.place {
                Place::Swap { .. } => self.swap.start(request, pages, frames),
                Place::External { .. } => self.outside.start(request, pages, frames),
            }
        }
        has_started
    }

    fn pass_event(&mut self) -> bool {
        let event = self.vm.poll_event();
        event.map(|event| self.note(event)).is_some()
    }

    /// Before programs touch what has come: the worst moment for it.
    fn make_room(&mut self) {
        self.check();
        self.vm.handle_idle(self.now, &mut self.machine);
    }

    fn note_decisions(&mut self) {
        while let Some(decision) = self.vm.poll_decision() {
            if self.is_traced {
                eprintln!("      {decision}");
            }
            self.decisions.push(decision.to_string());
        }
    }
}
