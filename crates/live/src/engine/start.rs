//! Starting: from the environment to an engine at work, and again in a forked child.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use tidemark_core::vm::Vm;
use tidemark_tasks::TaskMemory;

use super::Engine;
use crate::control;
use crate::hand::Hand;
use crate::parts::addresses::AddressSpace;
use crate::parts::calls::Calls;
use crate::parts::ending::Ending;
use crate::parts::intake::Intake;
use crate::parts::line::{Again, Lent, Line, Parent};
use crate::parts::place::{self, Place};
use crate::parts::setup::Setup;
use crate::parts::traced::Traced;
use crate::parts::trouble::{Trouble, call, pid};
use crate::parts::turns::Turns;
use crate::parts::units::now;
use crate::parts::written::Written;
use crate::ranges::Ranges;
use crate::shared::ProcessIndex;
use crate::slots::SharedSlots;
use crate::sys::lifeline::Lifeline;
use crate::sys::program;
use crate::sys::uffd::Uffd;

impl Engine {
    /// Starts an engine on the calling thread, which has a file table of its own with nothing in
    /// it. `leader` is held by the process's first thread. `Ok(None)`: the supervisor wants this
    /// program left alone.
    pub fn start(
        setup: Setup,
        hand: &'static Hand,
        leader: &'static Lifeline,
    ) -> Result<Option<Engine>, Trouble> {
        let Some(mut lent) = setup.borrow()? else {
            return Ok(None);
        };
        let (frames_max, budget) = (lent.frames_max, lent.budget.clamp(1, lent.frames_max));
        let machine = setup.open_machine(frames_max, hand)?;
        let record = Arc::new(AtomicU32::new(lent.record.0));
        let slots = SharedSlots::new(Arc::clone(&lent.shared), Arc::clone(&record))
            .note_released_if(setup.store.is_compressed());
        let telemetry = setup.begin_telemetry(&mut lent)?;
        let config = Setup::config((frames_max, budget), &telemetry);
        let policy = tidemark_plugin::build(&setup.policy, frames_max, budget, 1, &[]);
        let policy = policy.expect("the name was looked up when the environment was read");
        let mut vm = Vm::new(config, policy, Box::new(slots));
        let space = vm.create_space();
        let swap_file = lent.swap.as_raw_fd();
        enter(&lent, &setup);
        let store = setup.open_store(lent.swap, lent.shared.swap_slots(), frames_max)?;
        let place = Place::new(setup.cpu_finder, lent.shared.disk_processor());
        let line = Line::new(lent.shared, record, lent.control, swap_file, setup.mode)?;
        let engine = Engine {
            vm,
            space,
            machine,
            store,
            addresses: AddressSpace::new(&setup)
                .map_err(call("reading this process's mappings"))?,
            written: Written::default(),
            intake: Intake::new().map_err(call("mapping the engine's memory"))?,
            calls: Calls::new(lent.calls, lent.is_near),
            place,
            ending: Ending::new(leader),
            traced: Traced::default(),
            telemetry,
            line,
            now: now(),
            turns: Turns::new(setup.first_tick()),
            task: TaskMemory::new(budget, 0, setup.store.is_compressed()),
            setup,
        };
        engine.report_if_verbose("is managed");
        Ok(Some(engine))
    }

    /// Ends the start. Has the supervisor keep the program's pages waited for, should this engine
    /// end before the program. From then on it ends a program whose engine has gone.
    pub fn share_memory(&self) {
        use std::os::fd::AsFd;
        let supervisor = self.line.supervisor();
        program::end_start(supervisor);
        if program::is_engine()
            && let Some(supervisor) = supervisor
        {
            // Without it the program would be none the worse, but for that case.
            let _ = control::share_memory(supervisor, self.machine.program().as_fd());
        }
    }

    /// Takes over what is present already, before the program goes on.
    pub fn take_first_look(&mut self) {
        self.now = now();
        if self.setup.mode.looks_for_memory() {
            self.scan();
        }
        self.measure_own();
        self.publish();
    }

    /// Opens in a forked child what its parent's engine had open, and introduces the child.
    pub(super) fn open_in_child(
        &mut self,
        record: ProcessIndex,
        is_at_socket: bool,
    ) -> Result<(), Trouble> {
        let parent = self.line.begin_in_child();
        self.calls.begin_in_child();
        self.written.begin_in_child();
        self.machine.keep(Ranges::new());
        // First of all: what its parent keeps for it would be in the way of whatever comes.
        let inherited = self.take_userfaultfd(record, parent.engine);
        // The supervisor answers while all else is done.
        let socket = self.setup.control.as_deref();
        let connection = self
            .line
            .greet_from_child(socket, parent.process, is_at_socket)?;
        let mut is_open = self.open_memory_in_child(inherited);
        self.apply_held();
        // What is recorded goes to a log of the child's own, which comes with the answer.
        let is_recorded = self.telemetry.is_recording();
        if !is_recorded {
            is_open = is_open.and_then(|()| self.register_again());
        }
        // With the store, a child that gets nothing else can still have its pages back.
        let granted = match connection {
            Some(connection) => self.take_grant_in_child(connection),
            None => self.go_on_alone_in_child(parent),
        };
        if let Err(trouble) = &granted {
            is_open = Err(trouble.clone());
        }
        // A child that gets nothing else has its pages back by way of its parent.
        let swap = granted.or_else(|trouble| parent.reopen_swap().map_err(|_| trouble))?;
        self.line.note_swap_file(swap.as_raw_fd());
        self.store
            .reopen(swap, self.setup.means_in_child())
            .map_err(call("going on with the swap store"))?;
        self.line.note_store();
        self.reopen_files(parent.engine)?;
        is_open?;
        self.machine.close_again();
        if is_recorded {
            self.register_again()?;
        }
        self.line
            .process()
            .start(pid(), parent.process, &self.setup.name, now().0);
        Ok(())
    }

    /// Opens what has to do with the child's memory.
    fn open_memory_in_child(&mut self, inherited: Option<Uffd>) -> Result<(), Trouble> {
        self.line.reopen_doorbell(self.setup.mode)?;
        self.machine
            .reopen(self.setup.features(), inherited)
            .map_err(Trouble::Machine)?;
        let is_in_step = self.setup.mode.ends_work_at_each_fault();
        self.machine.keep_step_if(is_in_step);
        self.addresses
            .scanner_mut()
            .reopen()
            .map_err(call("reading the child's mappings"))?;
        self.ending.reopen();
        Ok(())
    }

    /// Waits for the supervisor's answer. Answers the swap file.
    fn take_grant_in_child(&mut self, connection: OwnedFd) -> Result<OwnedFd, Trouble> {
        let Again {
            swap,
            decisions: file,
            calls,
            is_near,
        } = self.line.take_grant_in_child(connection)?;
        self.calls.listen(calls, is_near);
        let supervisor = self.line.supervisor().expect("the grant came by it");
        self.telemetry
            .go_on_logging(file, supervisor, &self.setup.name)?;
        Ok(swap)
    }

    /// Goes on without a supervisor. Answers the swap file.
    fn go_on_alone_in_child(&mut self, parent: Parent) -> Result<OwnedFd, Trouble> {
        self.telemetry.go_on_deciding(self.setup.open_decisions()?);
        self.line.process().set_budget(self.task.budget());
        parent.reopen_swap()
    }
}

/// Says in the record who runs here.
fn enter(lent: &Lent, setup: &Setup) {
    let process = lent.shared.process(lent.record);
    process.start(pid(), program::parent(), &setup.name, now().0);
    place::undo_inherited(&lent.shared, pid(), program::parent());
}
