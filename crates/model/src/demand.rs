//! Demand: a whole [`Vm`] on a reference string, with pagers that answer at once.
//!
//! The [`stage`](crate::stage) checks everything at every step; this checks next to nothing, and
//! so gets through long traces. With [`Config::demand`] it must count what
//! [`cache`](crate::cache) counts.

use tidemark_core::driver::Driver;
use tidemark_core::event::{Access, Event, Fault, Resolution};
use tidemark_core::id::{FrameId, SpaceId, VirtPage, Waiter};
use tidemark_core::memory::swap_slots::LocalSlots;
use tidemark_core::seams::machine::{Machine, PageBits, Rights};
use tidemark_core::seams::pager::{Direction, Outcome, Reply};
use tidemark_core::seams::policy::{Policy, Sees};
use tidemark_core::time::Time;
use tidemark_core::vm::{Config, Counters, Vm};

use crate::cache::MachineKind;
use crate::opt::collect_next_uses;
use crate::pages::PageMap;

/// Time between two references.
const STEP_NS: u64 = 1000;
/// More faults than one use may take.
const TRIES_MAX: u32 = 10;

/// Runs `trace` through a memory under `config` and says what it counted.
pub fn replay(
    policy: Box<dyn Policy>,
    config: Config,
    kind: MachineKind,
    trace: &[u64],
) -> Counters {
    replay_growing(policy, config, kind, trace, |vm| vm.config().frames_limit)
}

/// Runs `trace` through a memory whose limit is what `limit` says before each use.
pub fn replay_growing(
    policy: Box<dyn Policy>,
    config: Config,
    kind: MachineKind,
    trace: &[u64],
    mut limit: impl FnMut(&Vm) -> u32,
) -> Counters {
    let pages = trace.iter().max().map_or(0, |last| last + 1);
    let frames = config.frames_max as usize;
    let mut machine = OneProgram {
        kind,
        mapped: PageMap::default(),
        holding: vec![None; frames],
        referenced: vec![false; frames],
        modified: vec![false; frames],
    };
    // Every page has a slot, and one that is rewritten needs a second for a while.
    let slots = u32::try_from(2 * pages + 64).expect("the pages fit a store");
    let mut vm = Vm::new(config, policy, Box::new(LocalSlots::new(slots)));
    let space = vm.create_space();
    vm.map_anonymous(space, VirtPage(0), pages.max(1), Rights::Write)
        .expect("nothing else is mapped");
    let sees = vm.policy().describe().sees;
    let next_uses = match sees {
        Sees::Future => collect_next_uses(trace),
        Sees::Faults | Sees::Bits | Sees::References => Vec::new(),
    };
    for (at, &page) in trace.iter().enumerate() {
        let now = Time(at as u64 * STEP_NS);
        let page = VirtPage(page);
        let wanted = limit(&vm);
        if wanted != vm.config().frames_limit {
            vm.handle_limit(now, &mut machine, wanted);
        }
        // A page may be unmapped again while room is made for those that come along with it.
        let mut tries = 0;
        while !is_over(&mut machine, page, tries) {
            tries += 1;
            assert!(tries <= TRIES_MAX, "{page:?} never stays mapped");
            let fault = Fault {
                space,
                at: page,
                access: Access::Write,
                waiter: Waiter(at as u64),
            };
            serve(&mut vm, &mut machine, now, fault);
        }
        let frame = machine.mapped[&page.0];
        if tries == 0 && sees >= Sees::References {
            vm.handle_reference(frame);
        }
        if let Some(&next) = next_uses.get(at) {
            vm.handle_foresight(frame, next);
        }
    }
    vm.check();
    vm.counters().clone()
}

/// Returns true if the page at `at` is mapped, and then uses it. After a fault (`tries` above 0),
/// [`OneProgram::enter`] has decided about the reference bit.
fn is_over(machine: &mut OneProgram, at: VirtPage, tries: u32) -> bool {
    let Some(&frame) = machine.mapped.get(&at.0) else {
        return false;
    };
    machine.modified[frame.index()] = true;
    machine.referenced[frame.index()] |= tries == 0;
    true
}

fn serve(vm: &mut Vm, machine: &mut OneProgram, now: Time, fault: Fault) {
    let is_over = match vm.handle_fault(now, machine, fault) {
        Resolution::Resolved(_) => true,
        Resolution::Pending(_) => false,
        Resolution::Invalid => unreachable!("all pages are mapped for writing"),
    };
    let mut answering = Answering {
        vm,
        machine,
        now,
        fault,
        is_over,
    };
    answering.conclude();
    assert!(answering.is_over, "{fault:?} waits for nothing");
}

/// A fault that is being served, with pagers that answer at once.
struct Answering<'a> {
    vm: &'a mut Vm,
    machine: &'a mut OneProgram,
    now: Time,
    fault: Fault,
    is_over: bool,
}

impl Driver for Answering<'_> {
    fn start_requests(&mut self) -> bool {
        let mut has_started = false;
        while let Some(request) = self.vm.poll_request() {
            has_started = true;
            if request.direction == Direction::Fetch {
                for frame in self.vm.frames_of(request.ticket) {
                    self.machine.holding[frame.index()] = None;
                }
            }
            let reply = Reply {
                ticket: request.ticket,
                outcome: Outcome::Done,
            };
            self.vm.handle_reply(self.now, self.machine, reply);
        }
        has_started
    }

    fn pass_event(&mut self) -> bool {
        let event = self.vm.poll_event();
        match event {
            None => false,
            Some(Event::Resolved(fault, _)) if fault == self.fault => {
                self.is_over = true;
                true
            }
            Some(other) => unreachable!("nothing else can happen: {other:?}"),
        }
    }

    fn make_room(&mut self) {
        self.vm.handle_idle(self.now, self.machine);
    }
}

/// The page tables of one program, with no memory behind them.
struct OneProgram {
    kind: MachineKind,
    mapped: PageMap<FrameId>,
    holding: Vec<Option<VirtPage>>,
    referenced: Vec<bool>,
    modified: Vec<bool>,
}

impl OneProgram {
    fn unmap(&mut self, frame: FrameId) -> bool {
        let held = self.holding[frame.index()];
        held.is_some_and(|at| self.mapped.remove(&at.0).is_some())
    }
}

impl Machine for OneProgram {
    fn enter(&mut self, _: SpaceId, at: VirtPage, frame: FrameId, _: Rights) {
        // A bit is clear when its page comes, and set when its page is rescued: the fault was a
        // use.
        let is_rescue = self.holding[frame.index()].replace(at) == Some(at);
        self.referenced[frame.index()] = is_rescue;
        self.mapped.insert(at.0, frame);
    }

    fn restrict(&mut self, frame: FrameId, rights: Rights) {
        if rights == Rights::None {
            self.unmap(frame);
        }
    }

    fn leave(&mut self, _: SpaceId, at: VirtPage, _: FrameId) {
        self.mapped.remove(&at.0);
    }

    fn discard(&mut self, frame: FrameId) {
        self.unmap(frame);
    }

    fn zero(&mut self, frame: FrameId) {
        self.holding[frame.index()] = None;
    }

    fn copy(&mut self, _: FrameId, _: FrameId) {
        unreachable!("one program copies nothing on write")
    }

    fn adopt(&mut self, _: SpaceId, _: VirtPage, _: FrameId) {
        unreachable!("all pages come through faults")
    }

    fn relocate(&mut self, _: SpaceId, _: VirtPage, _: VirtPage, _: FrameId) {
        unreachable!("the program moves no pages")
    }

    fn retire(&mut self, _: FrameId) {}

    fn settle(&mut self) {}
}

impl PageBits for OneProgram {
    fn take_referenced(&mut self, frame: FrameId) -> bool {
        match self.kind {
            MachineKind::Bits => std::mem::take(&mut self.referenced[frame.index()]),
            MachineKind::SoftFaults => self.unmap(frame),
        }
    }

    fn answers_arrival(&self) -> bool {
        self.kind == MachineKind::SoftFaults
    }

    fn take_modified(&mut self, frame: FrameId) -> bool {
        std::mem::take(&mut self.modified[frame.index()])
    }
}
