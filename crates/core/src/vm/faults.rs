//! Faults: bringing pages in.
//!
//! A fault is answered at once when its page is in memory or reads as zeros; else it waits for a
//! transfer, or for a free frame, and is served again when that has come. Serving again is always
//! right: nothing about a waiting fault is remembered but the fault itself.
//!
//! What system calls copy through windows is in `kernels::buffered_io`;
//! [`fetch`](crate::vm::page_in) says which pages come along,
//! [`reclaim`](crate::vm::reclaim) makes room, [`transfer`](crate::vm::transfer) ends what
//! is started here.

use crate::decision::Decision;
use crate::event::{Delay, Fault, Resolution, Service};
use crate::id::{FrameId, PageId, SpaceId, Ticket, VirtPage};
use crate::memory::frame::State;
use crate::memory::page_run::PageRun;
use crate::paging::attempt::{Group, Need, Scene, Step};
use crate::readahead::streams::Heading;
use crate::seams::arrival::Cause;
use crate::seams::machine::{Machine, Rights, Setback};
use crate::seams::pager::Direction;
use crate::time::Time;
use crate::vm::Vm;
use crate::vm::served::Served;

impl Vm {
    /// Serves a fault, or notes who waits.
    ///
    /// Work: one region look-up, one walk down the shadow chain, at most one round of reclaim,
    /// and the start of at most 16 requests.
    pub fn handle_fault(
        &mut self,
        now: Time,
        machine: &mut dyn Machine,
        fault: Fault,
    ) -> Resolution {
        self.attend(now, machine, fault, |vm| {
            vm.counters.faults += 1;
            if let Some(space) = vm.memory.space_mut(fault.space) {
                space.faults += 1;
            }
        })
    }

    /// Serves a fault for the first time, once `count` has counted it.
    pub(crate) fn attend(
        &mut self,
        now: Time,
        machine: &mut dyn Machine,
        fault: Fault,
        count: impl FnOnce(&mut Vm),
    ) -> Resolution {
        let step = self.handle(now, Served::Released, machine, |vm, machine| {
            count(vm);
            vm.pass_clock(fault.space);
            vm.serve(machine, fault, false)
        });
        self.note_page_ins(machine);
        match step {
            Step::Resolved(service) => {
                self.keep_served(fault);
                Resolution::Resolved(service)
            }
            Step::Invalid => Resolution::Invalid,
            Step::Wait(ticket) => {
                self.transfers.wait_for(ticket, fault);
                let direction = self.transfers.get(ticket).request().direction;
                Resolution::Pending(match direction {
                    Direction::Fetch => Delay::PageIn,
                    Direction::Store => Delay::Writeback,
                })
            }
            Step::Stall => {
                self.counters.stalls += 1;
                self.waiting.stall(fault);
                self.hold_page(fault);
                self.fail_if_stuck();
                Resolution::Pending(Delay::Frame)
            }
        }
    }

    /// Takes over a page that already stands at `at`, which the core knew nothing of. Answers
    /// false if there is no frame for it now, or no region: try again later.
    ///
    /// Work: at most one round of reclaim.
    pub fn handle_present(
        &mut self,
        now: Time,
        machine: &mut dyn Machine,
        space: SpaceId,
        at: VirtPage,
    ) -> bool {
        self.handle(now, Served::Kept, machine, |vm, machine| {
            vm.take_over(machine, space, at)
        })
    }

    fn take_over(&mut self, machine: &mut dyn Machine, space: SpaceId, at: VirtPage) -> bool {
        let Some(region) = self
            .memory
            .spaces()
            .get(space)
            .and_then(|s| s.find(at))
            .copied()
        else {
            return false;
        };
        let page = PageId {
            object: region.object,
            index: region.index_at(at),
        };
        if self.memory.objects().entry(page).frame().is_some() {
            return true;
        }
        let Some(frame) = self.take_frame(machine, Need::Standing) else {
            return false;
        };
        self.memory.drop_slot(page);
        self.occupy(frame, page, space, Cause::Adopted);
        self.stand_in(machine, space, at, frame);
        self.counters.adopted_pages += 1;
        self.outbox.log(Decision::Adopt(page));
        true
    }

    /// Makes `frame` the one of the page that stands at `at` already.
    pub(crate) fn stand_in(
        &mut self,
        machine: &mut dyn Machine,
        space: SpaceId,
        at: VirtPage,
        frame: FrameId,
    ) {
        self.memory.frames_mut().set_dirty(frame, true);
        machine.adopt(space, at, frame);
        let region = self
            .memory
            .spaces()
            .get(space)
            .and_then(|space| space.find(at));
        match region.map_or(Rights::None, |region| region.rights) {
            Rights::None => machine.leave(space, at, frame),
            Rights::Read => machine.restrict(frame, Rights::Read),
            Rights::Write => {}
        }
        self.memory.map(frame, space, at);
    }

    /// One attempt to serve `fault`.
    pub(crate) fn serve(&mut self, machine: &mut dyn Machine, fault: Fault, retry: bool) -> Step {
        let is_retry = retry;
        let Some(region) = self
            .memory
            .spaces()
            .get(fault.space)
            .and_then(|s| s.find(fault.at))
            .copied()
        else {
            return Step::Invalid;
        };
        if region.rights < fault.access.needed() {
            return Step::Invalid;
        }
        let mut region = region;
        if region.needs_copy && fault.access.is_store() {
            region = self.memory.shadow_region(fault.space, region);
        }
        let found = self
            .memory
            .find_page(region.object, region.index_at(fault.at));
        let scene = Scene {
            fault,
            region,
            found,
            is_retry,
        };
        if found.entry.frame().is_none() {
            self.policy.page_missed(found.page);
        }
        if let Some(step) = self.serve_as_kernel(machine, scene) {
            return step;
        }
        match (found.entry.frame(), found.entry.slot()) {
            (Some(frame), _) => match self.memory.frames().state(frame) {
                State::Resident => self.serve_resident(machine, scene, frame),
                State::Filling => {
                    self.advance_stream(machine, scene);
                    Step::Wait(self.memory.frames().ticket(frame))
                }
                State::Leaving => {
                    self.note_touch(frame);
                    self.memory.frames_mut().set_wanted(frame);
                    Step::Wait(self.memory.frames().ticket(frame))
                }
                State::Free | State::Retired => unreachable!("a page table names frames in use"),
            },
            (None, Some(_)) => self.start_page_in(machine, scene),
            (None, None) if self.memory.objects().get(found.page.object).has_pager() => {
                self.start_page_in(machine, scene)
            }
            (None, None) => self.zero_fill(machine, scene),
        }
    }

    /// Takes in the operations that the machine could not carry out.
    pub(crate) fn absorb_setbacks(&mut self, machine: &mut dyn Machine) {
        while let Some((frame, setback)) = machine.take_setback() {
            self.absorb_setback(machine, frame, setback);
        }
    }

    /// Takes in that the machine could not unmap `frame`, or found it gone.
    pub(crate) fn absorb_setback(
        &mut self,
        machine: &mut dyn Machine,
        frame: FrameId,
        setback: Setback,
    ) {
        let state = self.memory.frames().state(frame);
        match setback {
            Setback::Busy if state == State::Leaving && self.is_undecided(frame) => {
                self.counters.busy += 1;
                self.pin(frame);
            }
            Setback::Later if state == State::Leaving && self.is_undecided(frame) => {
                self.counters.busy += 1;
                self.is_halted = true;
                self.keep(frame);
            }
            Setback::Busy if self.pins.contains(frame) => self.note_pinned(machine, frame),
            Setback::Later if self.pins.contains(frame) => self.put_off_pinned(frame),
            Setback::Busy | Setback::Later => {
                if state == State::Resident {
                    self.memory.frames_mut().set_deactivated(frame, false);
                }
            }
            Setback::Gone if state == State::Resident => {
                let page = self
                    .memory
                    .frames()
                    .page(frame)
                    .expect("a resident frame has a page");
                self.remove_page(machine, page);
            }
            Setback::Gone if state == State::Leaving && self.is_undecided(frame) => {
                let page = self
                    .memory
                    .frames()
                    .page(frame)
                    .expect("a leaving frame has a page");
                self.remove_page(machine, page);
            }
            Setback::Gone => {}
        }
    }

    /// Puts a taken frame to `page`, resident at once, and tells the policy.
    pub(crate) fn occupy(&mut self, frame: FrameId, page: PageId, space: SpaceId, cause: Cause) {
        self.memory.fill(frame, page, Ticket(0));
        self.memory.frames_mut().set_owner(frame, space);
        self.memory.frames_mut().settle(frame);
        self.tell_arrival(frame, cause);
    }

    fn serve_resident(&mut self, machine: &mut dyn Machine, scene: Scene, frame: FrameId) -> Step {
        let Scene {
            fault,
            region,
            found,
            is_retry,
        } = scene;
        if found.is_below && fault.access.is_store() {
            return self.copy_up(machine, scene, frame);
        }
        let was_ahead = self.meet_ahead(machine, scene, frame);
        let may_write = !found.is_below && !region.needs_copy;
        let rights = if may_write {
            region.rights
        } else {
            Rights::Read
        };
        machine.enter(fault.space, fault.at, frame, rights);
        self.memory.map(frame, fault.space, fault.at);
        self.memory.frames_mut().set_owner(frame, fault.space);
        let was_deactivated = self.memory.frames().is_deactivated(frame);
        self.memory.frames_mut().set_deactivated(frame, false);
        if !is_retry {
            self.counters.soft_faults += 1;
            self.outbox.log(Decision::Soft(found.page));
        }
        let is_told = !is_retry || was_ahead || was_deactivated;
        if is_told && !self.pins.contains(frame) {
            self.policy.page_rescued(frame);
        }
        Step::Resolved(match is_retry {
            true => Service::Major,
            false => Service::Minor,
        })
    }

    /// Returns true if a page that is being served came ahead of its use; its reader is followed.
    pub(crate) fn meet_ahead(
        &mut self,
        machine: &mut dyn Machine,
        scene: Scene,
        frame: FrameId,
    ) -> bool {
        self.note_touch(frame);
        let was_marker = self.memory.frames().is_marker(frame);
        let was_ahead = self.memory.frames_mut().take_ahead(frame);
        let is_followed = !self.note_swap_hit(&scene, was_ahead);
        if is_followed && (was_marker || was_ahead) {
            // Read-ahead may make room: not with the page that is being served, and not by looking
            // for its use before there was any.
            self.memory.frames_mut().wire(frame);
            self.advance_stream(machine, scene);
            self.memory.frames_mut().unwire(frame);
        }
        was_ahead
    }

    /// A write to a page that shows through from below: gives the writer a copy of its own.
    fn copy_up(&mut self, machine: &mut dyn Machine, scene: Scene, from: FrameId) -> Step {
        let Scene { fault, region, .. } = scene;
        self.memory.frames_mut().wire(from);
        let taken = self.take_frame(machine, Need::Awaited);
        self.memory.frames_mut().unwire(from);
        let Some(to) = taken else { return Step::Stall };
        let page = PageId {
            object: region.object,
            index: region.index_at(fault.at),
        };
        self.note_touch(from);
        machine.copy(from, to);
        if self.memory.unmap(from, fault.space, fault.at) {
            machine.leave(fault.space, fault.at, from);
        }
        self.occupy(to, page, fault.space, Cause::Copied);
        self.memory.frames_mut().set_dirty(to, true);
        machine.enter(fault.space, fault.at, to, region.rights);
        self.memory.map(to, fault.space, fault.at);
        self.counters.cow_faults += 1;
        self.outbox.log(Decision::Copy(page));
        Step::Resolved(Service::Copy)
    }

    /// A touch of anonymous memory that has no contents yet.
    fn zero_fill(&mut self, machine: &mut dyn Machine, scene: Scene) -> Step {
        let (fault, region, found) = (scene.fault, scene.region, scene.found);
        let (object, index) = (found.page.object, found.page.index);
        let room = self.config.zero_ahead_pages_max;
        let stream = self.follow(found.page, region.advice, room.max(1));
        let ahead = stream.map_or(1, |number| self.streams.get(number).window);
        let is_up = stream.is_none_or(|s| self.streams.get(s).heading == Heading::Forward);
        let is_plain = self.memory.objects().get(object).shadow().is_none() && !region.needs_copy;
        let want = if is_plain { ahead } else { 1 };
        let group = self.measure_absent(&scene, want, is_up);
        let frames = self.take_frames(machine, group.pages, Need::Awaited);
        if frames.is_empty() {
            return Step::Stall;
        }
        // With fewer frames than asked for, the wanted page must be among those served.
        let got = frames.len() as u64;
        let first = if is_up {
            index
        } else {
            group.first + u64::from(group.pages) - got
        };
        for (number, &frame) in frames.iter().enumerate() {
            let page = PageId {
                object,
                index: first + number as u64,
            };
            let cause = if page.index == index {
                Cause::ZeroFill
            } else {
                Cause::ZeroAhead
            };
            let at = VirtPage(fault.at.0 + page.index - index);
            machine.zero(frame);
            self.occupy(frame, page, fault.space, cause);
            let rights = if region.needs_copy {
                Rights::Read
            } else {
                region.rights
            };
            machine.enter(fault.space, at, frame, rights);
            self.memory.map(frame, fault.space, at);
        }
        if let Some(number) = stream {
            self.streams.get_mut(number).cover(first, first + got);
        }
        self.counters.zero_fills += 1;
        self.counters.zero_aheads += got - 1;
        self.outbox.log(Decision::Zero(PageRun {
            object,
            first,
            pages: got as u32,
        }));
        Step::Resolved(Service::ZeroFill)
    }

    /// The absent pages next to the wanted one, itself included: up to `want` of them.
    fn measure_absent(&self, scene: &Scene, want: u32, is_up: bool) -> Group {
        let PageId { object, index } = scene.found.page;
        let (low, high) = scene.reach();
        let object = self.memory.objects().get(object);
        let mut pages = 1;
        while pages < want {
            let next = u64::from(pages);
            let Some(next) = (if is_up {
                Some(index + next)
            } else {
                index.checked_sub(next)
            }) else {
                break;
            };
            if !(low..high).contains(&next) || !object.is_absent(next) {
                break;
            }
            pages += 1;
        }
        let first = if is_up {
            index
        } else {
            index + 1 - u64::from(pages)
        };
        Group { first, pages }
    }
}
