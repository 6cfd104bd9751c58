//! One memory of a world: a core, and the page tables under it.

use tidemark_core::compressed::tier::Tally;
use tidemark_core::id::SpaceId;
use tidemark_core::load::tasks::TaskControl;
use tidemark_core::load::{self, LoadControl, unlimited};
use tidemark_core::memory::swap_slots::LocalSlots;
use tidemark_core::policies::BuildError;
use tidemark_core::seams::policy::Policy;
use tidemark_core::time::Time;
use tidemark_core::vm::{Counters, Vm};
use tidemark_tasks::{Counts, Reading, TaskId, TaskMemory};

use super::compressed::Compressed;
use super::disk::DiskModel;
use super::error::WorldError;
use super::scenario::Scenario;
use super::system::System;
use super::tables::Tables;

/// More slots than pages, so that a page can be written anew before its old slot is free.
const SLOTS_SPARE: u64 = 1 << 16;
/// The slots of the smallest swap file that a live run is given without being told otherwise.
const SLOTS_IN_STEP: u64 = 1 << 20;

/// A core with its page tables, and who uses it.
pub(super) struct Memory {
    /// The number of it in requests to disks.
    pub(super) number: u32,
    pub(super) vm: Vm,
    pub(super) tables: Tables,
    /// Compressed memory, if pages that leave go there first.
    pub(super) compressed: Option<Compressed>,
    /// The process to which each space belongs.
    pub(super) owners: Vec<Option<usize>>,
    /// Its number with the steward, if it has one.
    pub(super) task: Option<TaskId>,
    /// The counts of processes that use it no more.
    pub(super) past: Counts,
    /// The number of processes that use it.
    pub(super) processes: u32,
    /// Questions whose cost has been booked.
    pub(super) questions: u64,
    /// True if its frames are of the world's, and its counts are kept.
    pub(super) is_managed: bool,
    /// The frames it is given, and what that leaves to the core.
    pub(super) task_memory: TaskMemory,
    /// The frames it asks to have in all; zero if it does not.
    asked: u64,
}

impl Memory {
    /// A memory that may use `frames` now, and `frames_max` at most.
    ///
    /// # Errors
    /// If the policy or the load control can't be built.
    pub(super) fn new(
        system: &System,
        scenario: &Scenario,
        frames: u32,
        frames_max: u32,
    ) -> Result<Memory, WorldError> {
        let mut config = (system.config)(frames_max);
        if let (Some(swap_ahead), DiskModel::Hdd(_)) =
            (system.swap_ahead_seeking, &scenario.disks.swap)
        {
            config.kernel.swap_ahead = swap_ahead;
        }
        let mut config = scenario.clusters.apply(config);
        config.is_logging = scenario.watch.is_logging;
        config.frames_max = config.frames_max.max(frames_max);
        let config = config.limited(frames);
        let (most, limit) = (config.frames_max, config.frames_limit);
        let policy = build_policy(system, scenario, most, limit)?;
        let slot_count = count_slots(scenario);
        let slots = LocalSlots::new(slot_count);
        let (slots, compressed) = match &scenario.compressed {
            None => (slots, None),
            Some(sizes) => {
                let compressed = Compressed::new(sizes.clone(), slot_count, frames_max);
                let compressed = match scenario.is_diskless {
                    true => compressed.without_disk(),
                    false => compressed,
                };
                (slots.note_released(), Some(compressed))
            }
        };
        let is_compressed = compressed.is_some();
        let mut vm = Vm::new(config, policy, Box::new(slots));
        if !scenario.is_divided {
            let name = scenario.load.as_deref().unwrap_or(system.load);
            vm.set_load_control(build_load(name, scenario)?);
        }
        Ok(Memory {
            number: 0,
            vm,
            tables: Tables::new(system.eyes, most, scenario.is_in_step),
            compressed,
            owners: Vec::new(),
            task: None,
            past: Counts::default(),
            processes: 0,
            questions: 0,
            is_managed: true,
            task_memory: TaskMemory::new(frames, scenario.beside_pages, is_compressed),
            asked: 0,
        })
    }

    /// The account of its frames, its core, and the tables under that.
    pub(super) fn parts(&mut self) -> (&mut TaskMemory, &mut Vm, &mut Tables) {
        (&mut self.task_memory, &mut self.vm, &mut self.tables)
    }

    /// Returns true if there is a report to the part that divides frames. That it is short is said
    /// once.
    pub(super) fn has_news(&mut self) -> bool {
        let in_use = self.in_use();
        let news = self.task_memory.poll_news(&self.vm, in_use);
        let asks = news.asks.filter(|_| self.asked == 0);
        self.asked = asks.unwrap_or(self.asked);
        asks.is_some() || news.has_given_up
    }

    /// Forgets that the memory has asked for frames: it asks anew if it is still short.
    pub(super) fn forget_asking(&mut self) {
        self.asked = 0;
    }

    /// The pages that frames and compressed pages have.
    pub(super) fn in_use(&self) -> u32 {
        self.vm.frames().in_use() + self.compressed.as_ref().map_or(0, Compressed::pages_held)
    }

    /// The pages that it has, in memory or with its store, those that are no more included.
    pub(super) fn size(&self) -> u32 {
        let counters = self.vm.counters();
        let came = counters.arrivals() - counters.page_ins;
        self.in_use().max(u32::try_from(came).unwrap_or(u32::MAX))
    }

    /// The spaces of the processes that use it.
    pub(super) fn spaces(&self) -> Vec<SpaceId> {
        let owners = self.owners.iter().enumerate();
        let owned = owners.filter(|(_, owner)| owner.is_some());
        owned.map(|(space, _)| SpaceId(space as u32)).collect()
    }

    /// Lets compressed pages take what no frame has, and forgets those of slots let go of.
    pub(super) fn prepare_compressed(&mut self) {
        if let Some(compressed) = &mut self.compressed {
            compressed.set_emptying(self.task_memory.is_parked());
            let (held, is_alone) = (compressed.pages_held(), compressed.is_alone());
            let (most, is_shrinking) = self.task_memory.log_pages(&self.vm, held, is_alone);
            compressed.prepare(&mut self.vm, most, is_shrinking);
        }
    }

    /// Keeps house in compressed memory, and has the core use what that leaves. Answers whether
    /// anything follows from it.
    pub(super) fn tend_compressed(&mut self, now: Time) -> bool {
        self.prepare_compressed();
        let Some(compressed) = &mut self.compressed else {
            return false;
        };
        let has_started = compressed.tend(&mut self.vm, self.task_memory.shared_pages());
        let held = compressed.pages_held();
        let (task_memory, vm, tables) = self.parts();
        task_memory.handle_held(now, held, vm, tables) || has_started
    }

    /// The time at which its page daemon wants to go on.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.vm.poll_deadline().map(|due| due.0)
    }

    /// The words of its record. It follows them at once.
    pub(super) fn reading(&self) -> Reading {
        let given = self.task_memory.budget().into();
        Reading {
            budget: given,
            understood: given,
            resident: self.in_use().into(),
            beside: self.task_memory.beside().into(),
            asked: self.asked,
        }
    }

    /// Panics if its tables contradict each other.
    pub(super) fn check(&self) {
        self.vm.check();
        self.tables.check();
        self.compressed.iter().for_each(Compressed::check);
    }
}

/// The sums of the counts of memories.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) counters: Counters,
    /// The most that any of them had at one time.
    pub(super) mappings_max: u64,
    pub(super) table_pages_max: u64,
    pub(super) reverse_map_bytes_max: u64,
    pub(super) compressed: Tally,
    pub(super) compressed_peak: u32,
}

impl Sums {
    /// Adds what a memory has come to, if that counts.
    pub(super) fn add(&mut self, memory: &Memory) {
        if !memory.is_managed {
            return;
        }
        self.counters.add(memory.vm.counters());
        if let Some(compressed) = &memory.compressed {
            self.compressed.add(compressed.tally());
            self.compressed_peak += compressed.pages_held_peak();
        }
        self.mappings_max = self.mappings_max.max(memory.tables.mapped_max());
        let table_pages_max = memory.tables.table_pages_max();
        self.table_pages_max = self.table_pages_max.max(table_pages_max);
        let (_, bytes_max) = memory.vm.reverse_map_bytes();
        self.reverse_map_bytes_max = self.reverse_map_bytes_max.max(bytes_max);
    }
}

/// The number of slots that the swap store of each memory has.
pub(super) fn count_slots(scenario: &Scenario) -> u32 {
    let pages: u64 = scenario.programs.iter().map(|p| p.script.pages()).sum();
    let slots = match scenario.is_in_step {
        // As many as there are where a live process begins anew at the first.
        true => SLOTS_IN_STEP.max(2 * pages),
        false => 2 * pages + SLOTS_SPARE,
    };
    u32::try_from(slots).expect("the pages fit a swap store")
}

/// Makes the load control of a scenario whose memory is divided; `None` if it is `none`.
///
/// # Errors
/// There is none of that name, it acts on single pages, or it has not those knobs.
pub(super) fn build_control(scenario: &Scenario) -> Result<Option<TaskControl>, WorldError> {
    let name = scenario.load_of_tasks();
    let entry = load::registry::find(name);
    if entry.is_some_and(|entry| !entry.description.is_live) {
        return Err(WorldError::LoadOfPages { name: name.into() });
    }
    let built = build_load(name, scenario)?;
    Ok((name != unlimited::DESCRIPTION.name).then(|| TaskControl::new(built, scenario.processors)))
}

/// Makes the load control of that name, with the scenario's knobs.
fn build_load(name: &str, scenario: &Scenario) -> Result<Box<dyn LoadControl>, WorldError> {
    let unknown = || WorldError::UnknownLoad { name: name.into() };
    let entry = load::registry::find(name).ok_or_else(unknown)?;
    let knobs = scenario.load_knobs.iter();
    let knobs: Vec<(&str, u64)> = knobs.map(|(name, value)| (name.as_str(), *value)).collect();
    entry.build(&knobs).map_err(refused)
}

fn build_policy(
    system: &System,
    scenario: &Scenario,
    frames_max: u32,
    frames: u32,
) -> Result<Box<dyn Policy>, WorldError> {
    let own = |&(name, value): &(&'static str, u64)| (name, value);
    let (name, knobs): (&str, Vec<(&str, u64)>) = match &scenario.policy {
        Some(choice) => {
            let knobs = choice
                .knobs
                .iter()
                .map(|(name, value)| (name.as_str(), *value));
            (&choice.name, knobs.collect())
        }
        None => (system.policy, system.knobs.iter().map(own).collect()),
    };
    tidemark_plugin::build(name, frames_max, frames, scenario.seed, &knobs).map_err(refused)
}

fn refused(error: BuildError<'_>) -> WorldError {
    match error {
        BuildError::UnknownPolicy { name } => WorldError::UnknownPolicy { name: name.into() },
        BuildError::UnknownKnob { name } => WorldError::UnknownKnob { name: name.into() },
        BuildError::OutOfRange { knob, value } => WorldError::KnobOutOfRange {
            name: knob.name.into(),
            value,
            min: knob.min,
            max: knob.max,
        },
    }
}
