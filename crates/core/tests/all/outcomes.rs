//! A resolution and an event say what a fault came to.

use tidemark_core::event::{Access, Delay, Event, Fault, Resolution, Service};
use tidemark_core::id::{PagerId, SpaceId, VirtPage, Waiter};
use tidemark_core::memory::swap_slots::LocalSlots;
use tidemark_core::policies;
use tidemark_core::seams::machine::Rights;
use tidemark_core::seams::pager::{Outcome, Reply, Request};
use tidemark_core::time::Time;
use tidemark_core::vm::{Config, Vm};
use tidemark_model::conformance::ProgramSide;
use tidemark_model::machine::{Kind, SimMachine};
use tidemark_model::physical::{Physical, Stamp};

const NOW: Time = Time(0);

/// A memory of so many frames, with a space of eight pages.
struct Memory {
    vm: Vm,
    machine: SimMachine,
    space: SpaceId,
}

impl Memory {
    fn new(frames: u32) -> Memory {
        let policy = policies::build("fifo", frames, frames, 0, &[]).expect("fifo exists");
        let slots = Box::new(LocalSlots::new(16));
        let mut vm = Vm::new(Config::demand(frames), policy, slots);
        let space = vm.create_space();
        vm.map_anonymous(space, VirtPage(0), 8, Rights::Write)
            .expect("nothing is mapped");
        Memory {
            vm,
            machine: SimMachine::new(Kind::Bits, Physical::new(frames)),
            space,
        }
    }

    fn fault(&self, space: SpaceId, page: u64, access: Access) -> Fault {
        Fault {
            space,
            at: VirtPage(page),
            access,
            waiter: Waiter(page),
        }
    }

    fn touch(&mut self, space: SpaceId, page: u64, access: Access) -> Resolution {
        let fault = self.fault(space, page, access);
        self.vm.handle_fault(NOW, &mut self.machine, fault)
    }

    /// Faults for writing, and writes if that is served at once.
    fn write(&mut self, page: u64) -> Resolution {
        let resolution = self.touch(self.space, page, Access::Write);
        if matches!(resolution, Resolution::Resolved(_)) {
            assert!(self.machine.write(self.space, VirtPage(page), Stamp(1)));
        }
        resolution
    }

    fn next_request(&mut self) -> Request {
        self.vm.poll_request().expect("a request was made")
    }

    fn answer(&mut self, request: Request) {
        let reply = Reply {
            ticket: request.ticket,
            outcome: Outcome::Done,
        };
        self.vm.handle_reply(NOW, &mut self.machine, reply);
    }

    fn expect_event(&mut self, page: u64, service: Service) {
        let fault = self.fault(self.space, page, Access::Write);
        assert_eq!(self.vm.poll_event(), Some(Event::Resolved(fault, service)));
    }
}

#[test]
fn what_is_served_at_once_is_new_or_minor_or_a_copy() {
    let mut memory = Memory::new(4);
    let parent = memory.space;
    assert_eq!(memory.write(0), Resolution::Resolved(Service::ZeroFill));
    let child = memory.vm.fork(&mut memory.machine, parent);
    assert_eq!(
        memory.touch(child, 0, Access::Read),
        Resolution::Resolved(Service::Minor)
    );
    assert_eq!(
        memory.touch(child, 0, Access::Write),
        Resolution::Resolved(Service::Copy)
    );
    assert_eq!(memory.touch(child, 9, Access::Read), Resolution::Invalid);
}

#[test]
fn what_waits_says_for_what_and_ends_as_what_it_was() {
    let mut memory = Memory::new(1);
    let space = memory.space;
    assert_eq!(memory.write(0), Resolution::Resolved(Service::ZeroFill));
    // The only frame has to be written first.
    assert_eq!(memory.write(1), Resolution::Pending(Delay::Frame));
    let store = memory.next_request();
    // The page is wanted again while it is on its way out.
    assert_eq!(memory.write(0), Resolution::Pending(Delay::Writeback));
    memory.answer(store);
    memory.expect_event(0, Service::Major);
    // The store has the page that stayed, and in time its frame is taken after all.
    memory.vm.handle_tick(NOW, &mut memory.machine);
    memory.expect_event(1, Service::ZeroFill);
    memory
        .vm
        .discard(&mut memory.machine, space, VirtPage(1), 1);
    assert_eq!(memory.write(0), Resolution::Pending(Delay::PageIn));
    let fetch = memory.next_request();
    memory.answer(fetch);
    memory.expect_event(0, Service::Major);
}

#[test]
fn a_copy_of_an_external_page_that_is_discarded_is_as_the_page_again() {
    let mut memory = Memory::new(4);
    let (space, at) = (memory.space, VirtPage(100));
    let kept = memory.vm.create_space();
    let object = memory.vm.keep_external(kept, at, 2, PagerId(1));
    let object = object.expect("nothing is mapped");
    let mapped = memory
        .vm
        .map_private(space, at, 2, object, 0, Rights::Write);
    mapped.expect("nothing is mapped");
    assert_eq!(memory.write(100), Resolution::Pending(Delay::PageIn));
    let fetch = memory.next_request();
    memory.answer(fetch);
    memory.expect_event(100, Service::Copy);
    // With one child that has the copy, too, and without.
    for is_shared in [true, false] {
        let child = is_shared.then(|| memory.vm.fork(&mut memory.machine, space));
        memory.vm.discard(&mut memory.machine, space, at, 2);
        assert_eq!(
            memory.touch(space, 100, Access::Read),
            Resolution::Resolved(Service::Minor)
        );
        assert_eq!(memory.write(100), Resolution::Resolved(Service::Copy));
        if let Some(child) = child {
            memory.vm.destroy_space(&mut memory.machine, child);
        }
    }
    memory.vm.check();
}
