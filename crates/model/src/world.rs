//! The world of scripted scenarios: one program after another touches pages, and things go wrong
//! on purpose.
//!
//! ```
//! # use tidemark_model::world::World;
//! let mut world = World::new();
//! world.frames(2).policy("fifo").write(10).touch(11).disk_fails_next_store().touch(12).run();
//! world.expect_log("zero 0:10; zero 0:11; out 0:10; keep 0:10; drop 0:11; zero 0:12");
//! world.expect_resident([10, 12]);
//! ```
//!
//! Every word acts at once, and an access is waited for unless the disk is held. Contents need no
//! expectations: the [`stage`](crate::stage) compares them with the law at every step.

use tidemark_core::event::{Event, Failure};
use tidemark_core::id::{PagerId, SlotId, SpaceId, VirtPage};
use tidemark_core::load::Turn;
use tidemark_core::memory::address_space::Advice;
use tidemark_core::memory::frame::State;
use tidemark_core::seams::machine::Rights;
use tidemark_core::vm::Config;

use crate::machine::Kind;
use crate::memory::Origin;
use crate::physical::Stamp;
use crate::stage::{Act, Setup, Stage, Touched};

/// The number of pages of anonymous memory that the first space starts with.
pub const PAGES: u64 = 1024;
/// The address at which [`World::map_file`] maps its pages.
pub const FILE: u64 = 100_000;
/// The pager of those pages.
pub const FILE_PAGER: PagerId = PagerId(7);

/// A stage, a setup that can be changed until something happens, and a script.
pub struct World {
    setup: Setup,
    stage: Option<Stage>,
    spaces: Vec<SpaceId>,
    current: usize,
    next_stamp: u64,
    is_disk_held: bool,
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

/// Before anything happens.
impl World {
    /// Four frames, FIFO, demand paging, reference bits, a calm disk, and a program with
    /// [`PAGES`] pages of anonymous memory from page 0 on.
    pub fn new() -> World {
        World {
            setup: Setup::demand(4),
            stage: None,
            spaces: Vec::new(),
            current: 0,
            next_stamp: 1,
            is_disk_held: false,
        }
    }

    /// Sets how many frames there are.
    pub fn frames(&mut self, frames: u32) -> &mut World {
        self.config(|config| (config.frames_max, config.frames_limit) = (frames, frames))
    }

    /// Sets the policy, by its name in the registry.
    pub fn policy(&mut self, name: &'static str) -> &mut World {
        self.setup_mut().policy = name;
        self
    }

    /// Sets the load control, by its name in the registry, and its knobs.
    pub fn load(&mut self, name: &'static str, knobs: &[(&'static str, u64)]) -> &mut World {
        self.setup_mut().load = (name, knobs.to_vec());
        self
    }

    /// Sets what the machine can tell.
    pub fn machine(&mut self, kind: Kind) -> &mut World {
        self.setup_mut().kind = kind;
        self
    }

    /// Sets how many slots the swap store has.
    pub fn swap_slots(&mut self, slots: u32) -> &mut World {
        self.setup_mut().swap_slots = slots;
        self
    }

    /// Changes the core's settings.
    pub fn config(&mut self, change: impl FnOnce(&mut Config)) -> &mut World {
        change(&mut self.setup_mut().config);
        self
    }

    fn setup_mut(&mut self) -> &mut Setup {
        assert!(self.stage.is_none(), "settings come before the first event");
        &mut self.setup
    }
}

/// The actions of programs.
impl World {
    /// Writes something new to a page.
    pub fn write(&mut self, page: u64) -> &mut World {
        let stamp = Stamp(self.next_stamp);
        self.next_stamp += 1;
        self.access(page, Act::Write(stamp))
    }

    /// Reads a page.
    pub fn touch(&mut self, page: u64) -> &mut World {
        self.access(page, Act::Read)
    }

    /// Writes to each of those pages, in order.
    pub fn write_all(&mut self, pages: impl IntoIterator<Item = u64>) -> &mut World {
        pages.into_iter().for_each(|page| {
            self.write(page);
        });
        self
    }

    /// Reads each of those pages, in order.
    pub fn touch_all(&mut self, pages: impl IntoIterator<Item = u64>) -> &mut World {
        pages.into_iter().for_each(|page| {
            self.touch(page);
        });
        self
    }

    /// Maps `pages` pages of anonymous memory.
    pub fn map(&mut self, at: u64, pages: u64) -> &mut World {
        let space = self.space();
        let is_mapped =
            self.stage()
                .map(space, VirtPage(at), pages, Rights::Write, Origin::Anonymous);
        assert!(is_mapped, "something is mapped at {at} already");
        self
    }

    /// Maps the first `pages` pages of a file, which hold something, from [`FILE`] on.
    pub fn map_file(&mut self, pages: u64) -> &mut World {
        self.map_from_file(pages, Origin::Shared(FILE_PAGER, 0))
    }

    /// Maps private memory that has what the first `pages` pages of a file hold, likewise.
    pub fn map_copy_of_file(&mut self, pages: u64) -> &mut World {
        self.map_from_file(pages, Origin::Copied(FILE_PAGER, 0))
    }

    fn map_from_file(&mut self, pages: u64, origin: Origin) -> &mut World {
        let space = self.space();
        for index in 0..pages {
            self.stage()
                .preset_external(FILE_PAGER, index, Stamp(900_000 + index));
        }
        let is_mapped = self
            .stage()
            .map(space, VirtPage(FILE), pages, Rights::Write, origin);
        assert!(is_mapped, "the file is mapped already");
        self
    }

    /// Unmaps pages.
    pub fn unmap(&mut self, at: u64, pages: u64) -> &mut World {
        let space = self.space();
        self.stage().unmap(space, VirtPage(at), pages);
        self
    }

    /// Unmaps pages so that the core learns of it only before the next change to any mapping.
    pub fn unmap_unseen(&mut self, at: u64, pages: u64) -> &mut World {
        let space = self.space();
        self.stage().unmap_unseen(space, VirtPage(at), pages);
        self
    }

    /// Drops the contents of pages.
    pub fn discard(&mut self, at: u64, pages: u64) -> &mut World {
        let space = self.space();
        self.stage().discard(space, VirtPage(at), pages);
        self
    }

    /// Moves pages.
    pub fn remap(&mut self, from: u64, to: u64, pages: u64) -> &mut World {
        let space = self.space();
        self.stage()
            .remap(space, VirtPage(from), VirtPage(to), pages);
        self
    }

    /// Changes the rights of pages.
    pub fn protect(&mut self, at: u64, pages: u64, rights: Rights) -> &mut World {
        let space = self.space();
        self.stage().protect(space, VirtPage(at), pages, rights);
        self
    }

    /// Says how pages will be used.
    pub fn advise(&mut self, at: u64, pages: u64, advice: Advice) -> &mut World {
        let space = self.space();
        self.stage().advise(space, VirtPage(at), pages, advice);
        self
    }

    /// Writes the modified pages of a range that are with a pager outside. Answers the number of
    /// pages that were held meanwhile.
    pub fn flush(&mut self, at: u64, pages: u64) -> u32 {
        let space = self.space();
        let (mut due, mut busy) = (at..at + pages, 0);
        loop {
            let first = due.start;
            busy += self.stage().flush(space, &mut due);
            if due.is_empty() {
                break;
            }
            if due.start > first {
                continue;
            }
            let goes_on = self.stage().deliver() || self.stage().pass_to_deadline();
            assert!(goes_on, "nothing is written of {due:?}");
        }
        if !self.is_disk_held {
            self.stage().drain();
        }
        busy
    }

    /// Lets a page stand that the core has not heard of.
    pub fn appear(&mut self, at: u64) -> &mut World {
        let space = self.space();
        let stamp = Stamp(self.next_stamp);
        self.next_stamp += 1;
        assert!(
            self.stage().appear(space, VirtPage(at), stamp),
            "{at} is known to the core"
        );
        self
    }

    /// Lets the core take over what it has not heard of; `left` pages find no frame.
    pub fn adopt(&mut self, left: usize) -> &mut World {
        let space = self.space();
        assert_eq!(self.stage().adopt(space), left, "pages left to adopt");
        self
    }

    /// Forks the current program. The child is the next space; the parent stays current.
    pub fn fork(&mut self) -> &mut World {
        let space = self.space();
        let child = self.stage().fork(space).expect("nothing is left to adopt");
        self.spaces.push(child);
        self
    }

    /// Makes that space current: 0 is the first program, 1 the first child, and so on.
    pub fn in_space(&mut self, number: usize) -> &mut World {
        self.stage();
        assert!(number < self.spaces.len(), "there is no space {number} yet");
        self.current = number;
        self
    }

    /// Ends the current program.
    pub fn exit(&mut self) -> &mut World {
        let space = self.space();
        self.stage().destroy_space(space);
        self
    }

    /// Holds a page so that it cannot be unmapped.
    pub fn pin(&mut self, page: u64) -> &mut World {
        let space = self.space();
        self.stage().machine_mut().pin(space, VirtPage(page));
        self
    }

    /// Lets go of every pinned page.
    pub fn unpin(&mut self) -> &mut World {
        self.stage().machine_mut().unpin_all();
        self
    }

    /// Changes how many frames may be used.
    pub fn limit(&mut self, frames: u32) -> &mut World {
        self.stage().limit(frames);
        self
    }

    /// Lets a second pass.
    pub fn tick(&mut self) -> &mut World {
        self.stage().tick(1_000_000_000);
        self
    }

    /// Has no page be unmapped.
    pub fn machine_halts(&mut self) -> &mut World {
        self.stage().machine_mut().halt(true);
        self
    }

    /// Lets pages be unmapped again.
    pub fn machine_goes_on(&mut self) -> &mut World {
        self.stage().machine_mut().halt(false);
        self
    }

    /// Lets time pass until a page that could not be unmapped has been tried `times` times again.
    pub fn retry_pinned(&mut self, times: u32) -> &mut World {
        for _ in 0..times {
            assert!(self.stage().pass_to_deadline(), "nothing is to be tried");
        }
        self
    }

    /// Passes the current space's place in the scheduler's order.
    pub fn turn(&mut self, order: u64, is_active: bool) -> &mut World {
        let space = self.space();
        let turn = Turn {
            order,
            is_active,
            ..Turn::default()
        };
        self.stage().take_turn(space, turn);
        self
    }

    /// Brings everything under way to its end.
    pub fn run(&mut self) -> &mut World {
        self.is_disk_held = false;
        self.stage().calm_down();
        self
    }

    fn access(&mut self, page: u64, act: Act) -> &mut World {
        let space = self.space();
        let touched = self.stage().touch(space, VirtPage(page), act);
        match touched {
            Touched::Done => {}
            Touched::Refused => panic!("page {page} is not there, or may not be used so"),
            Touched::Waiting(waiter) => {
                while !self.is_disk_held && self.stage().is_waiting(waiter) {
                    let goes_on = self.stage().deliver() || self.stage().pass_to_deadline();
                    assert!(goes_on, "page {page} waits for nothing");
                }
            }
        }
        self
    }
}

/// The actions of the disk.
impl World {
    /// Holds the disk: transfers start and do not end.
    pub fn disk_holds(&mut self) -> &mut World {
        self.is_disk_held = true;
        self.stage().swap_mut().hold();
        self.stage().outside_mut().hold();
        self
    }

    /// Lets the disk go on and brings what is under way to its end.
    pub fn disk_goes_on(&mut self) -> &mut World {
        self.is_disk_held = false;
        self.stage().swap_mut().release();
        self.stage().outside_mut().release();
        self.stage().drain();
        self
    }

    /// Makes the next store fail.
    pub fn disk_fails_next_store(&mut self) -> &mut World {
        self.disk_fails_stores(1)
    }

    /// Makes the next stores fail, that many.
    pub fn disk_fails_stores(&mut self, count: u32) -> &mut World {
        self.stage().swap_mut().fail_next_stores(count);
        self
    }

    /// Makes the next fetch fail.
    pub fn disk_fails_next_fetch(&mut self) -> &mut World {
        self.stage().swap_mut().fail_next_fetches(1);
        self
    }

    /// Makes the next fetch from the file fail.
    pub fn file_fails_next_fetch(&mut self) -> &mut World {
        self.stage().outside_mut().fail_next_fetches(1);
        self
    }

    /// Makes the next store to the file fail.
    pub fn file_fails_next_store(&mut self) -> &mut World {
        self.stage().outside_mut().fail_next_stores(1);
        self
    }
}

/// The expectations.
impl World {
    /// Expects exactly these pages of the current space to be resident.
    pub fn expect_resident(&mut self, pages: impl IntoIterator<Item = u64>) -> &mut World {
        let space = self.space();
        let expected: Vec<u64> = pages.into_iter().collect();
        let stage = self.stage();
        let all: Vec<VirtPage> = stage.memory().pages(space).map(|(at, _)| at).collect();
        let resident = all
            .into_iter()
            .filter(|at| stage.vm().frame_at(space, *at).is_some());
        assert_eq!(
            resident.map(|at| at.0).collect::<Vec<u64>>(),
            expected,
            "resident pages"
        );
        self
    }

    /// Expects these decisions, separated by semicolons, since the last time.
    pub fn expect_log(&mut self, expected: &str) -> &mut World {
        let decisions = self.stage().take_decisions();
        assert_eq!(decisions.join("; "), expected, "decisions");
        self
    }

    /// Forgets the decisions so far.
    pub fn forget_log(&mut self) -> &mut World {
        self.stage().take_decisions();
        self
    }

    /// Expects that many frames to be in `state`.
    pub fn expect_frames(&mut self, state: State, count: u32) -> &mut World {
        assert_eq!(
            self.stage().vm().frames().count(state),
            count,
            "frames that are {state:?}"
        );
        self
    }

    /// Expects that many accesses to wait.
    pub fn expect_waiting(&mut self, count: usize) -> &mut World {
        assert_eq!(self.stage().waiting(), count, "accesses that wait");
        self
    }

    /// Expects exactly these accesses to have failed since the last time.
    pub fn expect_failed(
        &mut self,
        expected: impl IntoIterator<Item = (u64, Failure)>,
    ) -> &mut World {
        let failed: Vec<_> = self
            .stage()
            .take_failures()
            .into_iter()
            .map(|(_, at, why)| (at.0, why))
            .collect();
        assert_eq!(
            failed,
            expected.into_iter().collect::<Vec<_>>(),
            "failed accesses"
        );
        self
    }

    /// Expects load control to have stopped (`false`) and resumed (`true`) exactly these spaces, in
    /// this order, since the last time.
    pub fn expect_verdicts(
        &mut self,
        expected: impl IntoIterator<Item = (u32, bool)>,
    ) -> &mut World {
        let events = self.stage().take_load_events();
        let expected = expected.into_iter().map(|(space, is_resumed)| {
            let space = SpaceId(space);
            match is_resumed {
                true => Event::Resume { space },
                false => Event::Suspend { space },
            }
        });
        assert_eq!(events, expected.collect::<Vec<_>>(), "verdicts");
        self
    }

    /// Expects exactly these words on the store since the last time.
    pub fn expect_store_events(&mut self, expected: impl IntoIterator<Item = Event>) -> &mut World {
        let events = self.stage().take_store_events();
        assert_eq!(
            events,
            expected.into_iter().collect::<Vec<_>>(),
            "events of the store"
        );
        self
    }

    /// Expects that many slots of the swap store to be in use.
    pub fn expect_slots_used(&mut self, count: usize) -> &mut World {
        assert_eq!(self.stage().slots_used(), count, "slots in use");
        self
    }

    /// Expects pages that are not in memory to be in these slots of the swap store.
    pub fn expect_slots(&mut self, placed: impl IntoIterator<Item = (u64, u32)>) -> &mut World {
        let space = self.space();
        let vm = self.stage().vm();
        for (page, slot) in placed {
            let found = vm.slot_at(space, VirtPage(page));
            assert_eq!(found, Some(SlotId(slot)), "the slot of page {page}");
        }
        self
    }

    /// Expects an access to be refused.
    pub fn expect_refused(&mut self, page: u64, act: Act) -> &mut World {
        let space = self.space();
        let touched = self.stage().touch(space, VirtPage(page), act);
        assert_eq!(touched, Touched::Refused, "{act:?} of page {page}");
        self
    }

    /// Expects these pages of the file to have been written as they are, or never.
    pub fn expect_flushed(&mut self, pages: impl IntoIterator<Item = u64>) -> &mut World {
        let space = self.space();
        for page in pages {
            let kept = (FILE_PAGER, page - FILE);
            self.stage().expect_flushed(space, VirtPage(page), kept);
        }
        self
    }

    /// Expects a counter of the core to have that value.
    pub fn expect_count(
        &mut self,
        counter: impl FnOnce(&tidemark_core::vm::Counters) -> u64,
        expected: u64,
    ) -> &mut World {
        let counters = self.stage().vm().counters().clone();
        assert_eq!(counter(&counters), expected, "of {counters:?}");
        self
    }

    /// Ends everything, and expects that nothing is left behind.
    pub fn close(&mut self) {
        self.run();
        self.stage().read_everything();
        self.stage().close();
    }

    /// The stage itself. Asking for it ends the time for settings.
    pub fn stage(&mut self) -> &mut Stage {
        if self.stage.is_none() {
            let mut stage = Stage::new(&self.setup);
            let space = stage.create_space();
            let is_mapped = stage.map(space, VirtPage(0), PAGES, Rights::Write, Origin::Anonymous);
            assert!(is_mapped);
            self.spaces.push(space);
            self.stage = Some(stage);
        }
        self.stage.as_mut().expect("made above")
    }

    fn space(&mut self) -> SpaceId {
        self.stage();
        self.spaces[self.current]
    }
}
