//! The virtual memory: it puts all the parts in sequence.
//!
//! # Use
//! The caller lends its [`Machine`] to each `handle_*`. Afterwards it drains
//! [`poll_request`](Vm::poll_request) (work for pagers), [`poll_event`](Vm::poll_event) (what
//! became of faults) and, if it keeps a log, [`poll_decision`](Vm::poll_decision), until each
//! answers `None`. Nothing in here waits, and nothing runs by itself.
//!
//! # Layout
//! The tables and the parts have their state to themselves, in folders beside this one, and know
//! nothing of each other but what they are lent. The sequences stand in this folder, by what they
//! are about, and no other file sees the fields: `faults` brings pages in and `page_in` says which
//! come along, `reclaim`, `trim` and `pinned` send them out, `flush` writes what stays, `transfer`
//! takes in the pagers' replies, `mapping` maps and unmaps, `load_control` carries verdicts out,
//! `served` frames every event, and `check` walks the invariants. What simulated kernels alone turn
//! on is in `kernels`.

use crate::memory::Memory;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

pub use crate::config::Config;
pub use crate::counters::Counters;
use crate::decision::Decision;
use crate::event::{Access, Event};
use crate::id::{FrameId, SlotId, SpaceId, VirtPage};
use crate::load::unlimited::Unlimited;
use crate::memory::address_space::{Region, Space};
use crate::memory::frame::{Frames, State};
use crate::memory::reverse_map::ReverseMap;
use crate::memory::swap_slots::Slots;
use crate::paging::attempt::Need;
use crate::paging::outbox::Outbox;
use crate::paging::pins::Pins;
use crate::paging::transfers::Transfers;
use crate::paging::waiting::Waiting;
use crate::readahead::streams::Streams;
use crate::seams::load_control::LoadControl;
use crate::seams::machine::{Machine, Rights};
use crate::seams::pager::Request;
use crate::seams::policy::Policy;
use crate::time::Time;
use crate::vm::kernels::Mechanisms;
use crate::vm::served::Served;

pub(crate) mod ahead;
pub(crate) mod check;
pub(crate) mod faults;
pub(crate) mod flush;
pub(crate) mod kernels;
pub(crate) mod load_control;
pub(crate) mod mapping;
pub(crate) mod page_in;
pub(crate) mod pinned;
pub mod recall;
pub(crate) mod reclaim;
pub(crate) mod served;
pub(crate) mod transfer;
pub(crate) mod trim;

/// The place of the contents of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// In this frame, mapped or not.
    Frame(FrameId),
    /// In this slot of the swap store.
    Slot(SlotId),
}

/// The virtual memory.
pub struct Vm {
    config: Config,
    now: Time,
    memory: Memory,
    policy: Box<dyn Policy>,
    load: Box<dyn LoadControl>,
    /// The space whose pages load control spares while others may go.
    protected: Option<SpaceId>,
    /// The time at which load control was last asked.
    load_ticked: Time,
    /// The spaces that load control has told to stop.
    suspended: Vec<SpaceId>,
    /// Spaces for which a page is being fetched that load control has not been told of.
    paging_in: Vec<SpaceId>,
    streams: Streams,
    transfers: Transfers,
    waiting: Waiting,
    /// Time has passed since the policy was last asked what to trim.
    is_trim_due: bool,
    /// Stores that failed since one last succeeded.
    stores_failed: u32,
    is_store_full: bool,
    /// Pages that could not be unmapped, and are out of the policy's reach.
    pins: Pins,
    /// Nothing could be unmapped when that was last tried.
    is_halted: bool,
    /// The state of what a simulated kernel has turned on; nothing in a live process.
    kernel: Mechanisms,
    outbox: Outbox,
    counters: Counters,
}

impl Vm {
    /// A memory with no spaces. Panics if `config` contradicts itself.
    pub fn new(config: Config, policy: Box<dyn Policy>, slots: Box<dyn Slots>) -> Vm {
        assert!(config.frames_limit <= config.frames_max);
        assert!(config.free_low <= config.free_high);
        assert!(config.cluster_pages >= 1 && config.default_cluster_pages >= 1);
        assert!(config.reserve < config.frames_limit.max(1));
        let kernel = Mechanisms::new(&config, slots.free());
        let frames = Frames::new(config.frames_max, config.frames_limit);
        let mut reverse = ReverseMap::new(config.frames_max as usize);
        if policy.walks() {
            reverse.keep_standing();
        }
        Vm {
            now: Time(0),
            memory: Memory::new(frames, reverse, slots),
            policy,
            load: Box::new(Unlimited),
            protected: None,
            load_ticked: Time(0),
            suspended: Vec::new(),
            paging_in: Vec::new(),
            streams: Streams::new(),
            transfers: Transfers::new(),
            waiting: Waiting::new(),
            is_trim_due: false,
            stores_failed: 0,
            is_store_full: false,
            pins: Pins::default(),
            is_halted: false,
            kernel,
            outbox: Outbox::new(config.is_logging),
            counters: Counters::default(),
            config,
        }
    }

    /// Puts another load control in place.
    pub fn set_load_control(&mut self, load: Box<dyn LoadControl>) {
        self.load = load;
        self.protected = None;
    }

    /// Hands out the next piece of work for a pager.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.outbox.next_request()
    }

    /// Hands out the next thing a program or its scheduler must know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.outbox.next_event()
    }

    /// Hands out the next decision, if they are kept.
    pub fn poll_decision(&mut self) -> Option<Decision> {
        self.outbox.next_decision()
    }

    /// The slots of the swap store.
    pub fn slots_mut(&mut self) -> &mut dyn Slots {
        self.memory.slots_mut()
    }

    /// Calls `visit` for each slot this memory owns: those behind pages, and those in transit.
    pub fn visit_slots(&self, visit: &mut dyn FnMut(SlotId)) {
        for (_, object) in self.memory.objects().iter() {
            for (_, entry) in object.collect(0, u64::MAX) {
                entry.slot().into_iter().for_each(&mut *visit);
            }
        }
        for transfer in self.transfers.iter() {
            transfer.slots_held().for_each(&mut *visit);
        }
    }

    /// The counts of what has happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The configuration of this memory.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The frame table.
    pub fn frames(&self) -> &Frames {
        self.memory.frames()
    }

    /// The policy in force.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// Bytes that reverse-map chains hold now, and have held at most.
    pub fn reverse_map_bytes(&self) -> (u64, u64) {
        self.memory.reverse().chain_bytes()
    }

    /// The number of faults that wait for a frame or a transfer.
    pub fn faults_pending(&self) -> usize {
        let waiting = self
            .transfers
            .iter()
            .map(|transfer| transfer.waiters().len())
            .sum::<usize>();
        self.waiting.stalled_count() + waiting
    }

    /// The number of pages on their way to their pagers.
    pub fn laundry(&self) -> u32 {
        self.transfers.laundry()
    }

    /// The number of transfers that have no reply yet.
    pub fn transfers_pending(&self) -> usize {
        self.transfers.len()
    }

    /// The frame that holds the page at `at`, if it is resident there.
    pub fn frame_at(&self, space: SpaceId, at: VirtPage) -> Option<FrameId> {
        let region = self.memory.spaces().get(space)?.find(at)?;
        let found = self.memory.find_page(region.object, region.index_at(at));
        let frame = found.entry.frame()?;
        (self.memory.frames().state(frame) == State::Resident).then_some(frame)
    }

    /// The frame that can be read at `at`: the page is resident there, or is being written and
    /// stays.
    pub fn readable_frame_at(&self, space: SpaceId, at: VirtPage) -> Option<FrameId> {
        let region = self.memory.spaces().get(space)?.find(at)?;
        let found = self.memory.find_page(region.object, region.index_at(at));
        let frame = found.entry.frame()?;
        let is_resident = self.memory.frames().state(frame) == State::Resident;
        (is_resident || self.is_readable(frame, Access::Read)).then_some(frame)
    }

    /// The slot that holds the page at `at`, if it is with the store and not resident.
    pub fn slot_at(&self, space: SpaceId, at: VirtPage) -> Option<SlotId> {
        let region = self.memory.spaces().get(space)?.find(at)?;
        let entry = self
            .memory
            .find_page(region.object, region.index_at(at))
            .entry;
        if entry.frame().is_some() {
            None
        } else {
            entry.slot()
        }
    }

    /// Returns true if the page at `at` may be written to and is nowhere yet: not in a frame, not
    /// with a pager, and not on its way. Its contents are zeros.
    pub fn is_blank(&self, space: SpaceId, at: VirtPage) -> bool {
        let Some(region) = self.memory.spaces().get(space).and_then(|it| it.find(at)) else {
            return false;
        };
        let found = self.memory.find_page(region.object, region.index_at(at));
        let is_nowhere = found.entry.frame().is_none() && found.entry.slot().is_none();
        let is_plain = !self.memory.objects().get(found.page.object).has_pager();
        region.rights == Rights::Write && is_plain && is_nowhere
    }

    /// Calls `visit` for every page of `space` that is somewhere, in order of address, with where
    /// its contents are now. A page on its way in is still with the store.
    ///
    /// Work: one step a page.
    pub fn visit_pages(&self, space: SpaceId, visit: &mut dyn FnMut(VirtPage, Contents)) {
        for region in self
            .memory
            .spaces()
            .get(space)
            .into_iter()
            .flat_map(Space::regions)
        {
            for at in self.collect_in(region) {
                if let Some(contents) = self.contents_in(region, at) {
                    visit(at, contents);
                }
            }
        }
    }

    /// The place of the contents of the page at `at`, if it is somewhere. A page on its way in is
    /// still with the store.
    pub fn contents_at(&self, space: SpaceId, at: VirtPage) -> Option<Contents> {
        let region = self.memory.spaces().get(space)?.find(at)?;
        self.contents_in(region, at)
    }

    fn contents_in(&self, region: &Region, at: VirtPage) -> Option<Contents> {
        let found = self.memory.find_page(region.object, region.index_at(at));
        let frame = found.entry.frame();
        let arrived = frame.filter(|frame| self.memory.frames().state(*frame) != State::Filling);
        match arrived {
            Some(frame) => Some(Contents::Frame(frame)),
            None => found.entry.slot().map(Contents::Slot),
        }
    }

    /// The addresses in `region` at which its object, or one that shows through, has something.
    fn collect_in(&self, region: &Region) -> BTreeSet<VirtPage> {
        let (mut object, mut first) = (region.object, region.offset);
        let mut found = BTreeSet::new();
        loop {
            let here = self.memory.objects().get(object);
            let pages = here.collect(first, first + region.pages).into_iter();
            found.extend(pages.map(|(index, _)| VirtPage(region.start + (index - first))));
            match here.shadow() {
                Some((below, offset)) => (object, first) = (below, first + offset),
                None => return found,
            }
        }
    }

    /// Learns of one reference to the page in `frame`, which was resident when the reference came,
    /// on a machine that sees every one: a simulated one.
    ///
    /// Work: the policy's own.
    pub fn handle_reference(&mut self, frame: FrameId) {
        self.policy.page_referenced(frame);
    }

    /// Learns when the page in `frame`, which has just been used, is used next: at the `next`th
    /// reference, or never if that is `u64::MAX`. Only a simulated machine can know.
    ///
    /// Work: the policy's own.
    pub fn handle_foresight(&mut self, frame: FrameId, next: u64) {
        self.policy.page_foreseen(frame, next);
    }

    /// Learns that time has passed: at least once a second, or as often as the policy needs.
    ///
    /// Work: the policy's own, load control's own, one step a frame for each space whose reference
    /// bits load control sets or clears, one round of pinned pages, and at most one of reclaim.
    pub fn handle_tick(&mut self, now: Time, machine: &mut dyn Machine) {
        self.handle(now, Served::Released, machine, |vm, machine| {
            vm.pass_clocks();
            vm.ask_policy(machine, |policy, probe| policy.tick(probe));
            vm.settle(machine);
            vm.tick_load(machine);
            vm.try_due_pins(machine);
            vm.is_trim_due = true;
            vm.make_room(machine, 0, Need::Reserve);
            vm.serve_stalled(machine);
        });
    }

    /// The time at which [`handle_deadline`](Self::handle_deadline) wants to be called next, if
    /// ever. It may be called late.
    pub fn poll_deadline(&self) -> Option<Time> {
        let due = self.daemon_due().into_iter();
        due.chain(self.pins.due()).min()
    }

    /// Learns that a deadline has come.
    ///
    /// Work: at most one round of reclaim and a pass, one round of pinned pages, and the faults it
    /// finds frames for.
    pub fn handle_deadline(&mut self, now: Time, machine: &mut dyn Machine) {
        self.handle(now, Served::Kept, machine, |vm, machine| {
            vm.try_due_pins(machine);
            let need = match vm.waiting.has_stalled() {
                true => Need::Awaited,
                false => Need::Reserve,
            };
            vm.make_room(machine, 0, need);
            vm.serve_stalled(machine);
        });
    }

    /// Reclaims in the background and trims, after every request so far has been started: makes
    /// room for the next faults while transfers run, and gives up the pages that the policy names.
    /// To be called after each fault, reply and tick; until then a fault takes from the frames kept
    /// free.
    ///
    /// Work: at most two rounds of reclaim, the start of one request, and one round of trimming.
    pub fn handle_idle(&mut self, now: Time, machine: &mut dyn Machine) {
        self.handle(now, Served::Kept, machine, |vm, machine| {
            // Faults that wait for a frame are served when something has ended, or in time:
            // programs whose faults are over may then have touched their pages, and three of them
            // can't take each other's for ever.
            vm.note_page_ins(machine);
            vm.make_room(machine, 0, Need::Reserve);
            vm.return_one(machine);
            vm.swap_out_whole(machine);
            if core::mem::take(&mut vm.is_trim_due) || vm.waiting.has_served() {
                vm.trim(machine);
            }
            vm.release_served();
        });
    }

    /// Sets how many frames may be in use: at least one more than the reserve and at most
    /// [`Config::frames_max`]. If more are in use, pages leave until they fit, as fast as they can
    /// be written.
    ///
    /// Work: one step a frame gained or lost and a pinned page, and at most one round of reclaim.
    pub fn handle_limit(&mut self, now: Time, machine: &mut dyn Machine, frames: u32) {
        assert!(frames > self.config.reserve && frames <= self.config.frames_max);
        self.handle(now, Served::Released, machine, |vm, machine| {
            vm.memory.frames_mut().set_limit(frames);
            vm.config = vm.config.clone().limited(frames);
            vm.policy.resize(frames);
            vm.disown_excess(machine);
            while let Some(frame) = vm.memory.frames_mut().retire_one() {
                machine.retire(frame);
            }
            let mut from = 0;
            while let Some(frame) = vm.memory.frames_mut().reinstate_one(from) {
                from = frame.index();
            }
            vm.make_room(machine, 0, Need::Reserve);
            vm.serve_stalled(machine);
        });
    }
}
