//! The memory of one task over the core itself, on a simulated machine.

use tidemark_core::event::{Access, Fault};
use tidemark_core::id::{SpaceId, VirtPage, Waiter};
use tidemark_core::memory::swap_slots::LocalSlots;
use tidemark_core::policies;
use tidemark_core::seams::machine::Rights;
use tidemark_core::time::Time;
use tidemark_core::vm::{Config, Vm};
use tidemark_model::conformance::ProgramSide;
use tidemark_model::machine::{Kind, SimMachine};
use tidemark_model::pager::{SimPager, Temper};
use tidemark_model::physical::{Physical, Stamp};
use tidemark_tasks::TaskMemory;

const PAGES: u64 = 60;
const FRAMES_MAX: u32 = 1024;

/// A task with one space.
struct Task {
    memory: TaskMemory,
    vm: Vm,
    machine: SimMachine,
    swap: SimPager,
    space: SpaceId,
    now: Time,
}

impl Task {
    /// One that may use `frames`, and has compressed pages if it `is_compressed`.
    fn new(frames: u32, is_compressed: bool) -> Task {
        let physical = Physical::new(FRAMES_MAX);
        let policy = policies::build("fifo", FRAMES_MAX, frames, 1, &[]).unwrap();
        let slots = Box::new(LocalSlots::new(2 * FRAMES_MAX));
        let config = Config::demand(FRAMES_MAX).limited(frames);
        let mut vm = Vm::new(config, policy, slots);
        let space = vm.create_space();
        vm.map_anonymous(space, VirtPage(0), FRAMES_MAX.into(), Rights::Write)
            .unwrap();
        Task {
            memory: TaskMemory::new(frames, 0, is_compressed),
            vm,
            machine: SimMachine::new(Kind::Bits, physical.clone()),
            swap: SimPager::new(physical, Temper::CALM, 1),
            space,
            now: Time(1),
        }
    }

    /// Has transfers end.
    fn drain(&mut self) {
        for _ in 0..10_000 {
            while self.vm.poll_event().is_some() {}
            self.vm.handle_idle(self.now, &mut self.machine);
            while let Some(request) = self.vm.poll_request() {
                let pages = self.vm.pages_of(request.ticket);
                let frames = self.vm.frames_of(request.ticket);
                self.swap.start(request, pages, frames);
            }
            let Some(due) = self.swap.next_due() else {
                return;
            };
            self.now = self.now.max(due);
            self.swap.advance(self.now);
            let reply = self.swap.next_reply().unwrap();
            self.vm.handle_reply(self.now, &mut self.machine, reply);
        }
        panic!("transfers go on and on");
    }

    fn write(&mut self, page: u64) {
        let (space, at) = (self.space, VirtPage(page));
        for _ in 0..10 {
            if self.machine.write(space, at, Stamp(page + 1)) {
                return;
            }
            let fault = Fault {
                space,
                at,
                access: Access::Write,
                waiter: Waiter(page),
            };
            self.vm.handle_fault(self.now, &mut self.machine, fault);
            self.drain();
        }
        panic!("page {page} does not come");
    }

    fn suspend(&mut self, needed: u64) {
        let (vm, machine) = (&mut self.vm, &mut self.machine);
        self.memory
            .handle_suspend((self.now, needed), vm, machine, &[self.space]);
        self.drain();
    }

    fn handle_arrivals(&mut self) -> bool {
        let (vm, machine) = (&mut self.vm, &mut self.machine);
        let memory = &mut self.memory;
        let is_new = memory.handle_arrivals(self.now, vm, machine, &[self.space]);
        self.drain();
        is_new
    }

    fn resume(&mut self) {
        self.memory
            .handle_resume(self.now, &mut self.vm, &mut self.machine);
    }

    fn handle_room(&mut self) {
        self.memory
            .handle_room(self.now, &mut self.vm, &mut self.machine);
        self.drain();
    }

    fn budget(&mut self, frames: u32) {
        let (vm, machine) = (&mut self.vm, &mut self.machine);
        self.memory.handle_budget(self.now, frames, vm, machine);
        self.drain();
    }

    fn resident(&self) -> Vec<u64> {
        let resident = self.vm.resident_pages(self.space);
        resident.into_iter().map(|at| at.0).collect()
    }
}

#[test]
fn a_suspended_task_leaves_memory_and_gets_back_what_it_had_there() {
    let mut task = Task::new(40, false);
    (0..PAGES).for_each(|page| task.write(page));
    let had = task.resident();
    assert!(had.len() > 20 && had.len() < PAGES as usize, "{had:?}");
    task.suspend(10);
    assert_eq!((task.resident(), task.memory.is_parked()), (vec![], true));
    assert!(!task.memory.is_busy(&task.vm));
    // A page that was on its way leaves, too, and is looked at once.
    task.write(0);
    assert!(task.memory.is_busy(&task.vm));
    assert_eq!((task.handle_arrivals(), task.resident()), (true, vec![]));
    assert!(!task.handle_arrivals());
    task.resume();
    while task.memory.is_busy(&task.vm) {
        task.handle_room();
    }
    assert_eq!(task.resident(), had);
}

#[test]
fn a_task_that_is_suspended_again_has_what_had_not_come_back_brought_back_later() {
    let mut task = Task::new(40, false);
    (0..PAGES).for_each(|page| task.write(page));
    let had = task.resident();
    task.suspend(10);
    task.budget(16);
    task.resume();
    task.handle_room();
    let part = task.resident();
    assert!(!part.is_empty() && part.len() < had.len(), "{part:?}");
    task.suspend(10);
    task.budget(40);
    task.resume();
    task.handle_room();
    task.handle_room();
    assert_eq!(task.resident(), had);
}

#[test]
fn what_does_not_come_back_in_time_is_left_to_faults() {
    let mut task = Task::new(40, false);
    (0..PAGES).for_each(|page| task.write(page));
    task.suspend(10);
    task.budget(16);
    task.resume();
    task.handle_room();
    assert!(task.memory.is_busy(&task.vm));
    task.now = task.now.after_ns(5_000_000_000);
    task.handle_room();
    assert!(!task.memory.is_busy(&task.vm));
}

#[test]
fn the_core_has_what_is_beside_it_and_compressed_pages_leave() {
    let mut task = Task::new(60, true);
    let limit = |task: &Task| task.vm.frames().limit();
    let (vm, machine) = (&mut task.vm, &mut task.machine);
    task.memory.handle_beside(task.now, 10, vm, machine);
    assert_eq!((task.memory.shared_pages(), limit(&task)), (50, 50));
    // It counts up to a quarter of the budget.
    task.budget(20);
    let counted = (task.memory.beside(), task.memory.shared_pages());
    assert_eq!((counted, limit(&task)), ((5, 15), 15));
    task.budget(60);
    assert_eq!(task.memory.log_pages(&task.vm, 0, false), (50, false));
    // Nothing has been sent away: no room is needed for that.
    let (vm, machine) = (&mut task.vm, &mut task.machine);
    assert!(!task.memory.handle_held(task.now, 0, vm, machine));
    assert!(task.memory.handle_held(task.now, 8, vm, machine));
    assert_eq!(limit(&task), 50 - (8 + 16));
    task.suspend(10);
    assert_eq!(task.memory.log_pages(&task.vm, 8, false), (0, false));
}

#[test]
fn frames_are_given_up_in_steps_where_pages_are_compressed_unless_the_task_is_suspended() {
    let mut task = Task::new(600, true);
    (0..600).for_each(|page| task.write(page));
    task.budget(60);
    let mut limits = vec![task.vm.frames().limit()];
    loop {
        let (vm, machine) = (&mut task.vm, &mut task.machine);
        if !task.memory.handle_held(task.now, 0, vm, machine) {
            break;
        }
        task.drain();
        limits.push(task.vm.frames().limit());
    }
    assert!(limits[0] > 300 && limits.len() > 4, "{limits:?}");
    assert!(limits.is_sorted_by(|one, next| one > next), "{limits:?}");
    let ceded = task.memory.shared_pages() - limits[limits.len() - 1];
    assert!(ceded < 60, "{limits:?}");
    let mut task = Task::new(600, true);
    (0..600).for_each(|page| task.write(page));
    let (vm, machine) = (&mut task.vm, &mut task.machine);
    let spaces = [task.space];
    task.memory
        .handle_suspend((task.now, 10), vm, machine, &spaces);
    task.budget(60);
    assert_eq!(task.vm.frames().limit(), 60);
}

#[test]
fn a_task_asks_while_it_is_short_and_says_what_it_has_given_up_and_is_silent_while_suspended() {
    let mut task = Task::new(40, false);
    (0..20).for_each(|page| task.write(page));
    let news = |task: &mut Task| {
        let in_use = task.vm.frames().in_use();
        let news = task.memory.poll_news(&task.vm, in_use);
        (news.asks, news.has_given_up)
    };
    assert_eq!(news(&mut task), (Some(80), false));
    assert_eq!(news(&mut task), (None, false), "nothing has come since");
    task.budget(16);
    assert_eq!(news(&mut task), (None, true));
    task.write(30);
    assert_eq!(news(&mut task), (Some(32), false));
    task.suspend(10);
    task.write(31);
    assert_eq!(news(&mut task), (None, false));
}
