//! Sequences that simulated kernels alone turn on.
//!
//! [`Config::kernel`] says which are on. In a live process none is: the other sequences meet this
//! folder at the steps below alone, and no other file of `vm` asks for a setting of a kernel, which
//! `tidy` checks.
//!
//! | step | asked by | in a live process | setting |
//! | --- | --- | --- | --- |
//! | `pace`, `is_paused` | `make_room`, `take_frames` | false | `Pacing` |
//! | `daemon_due` | `poll_deadline` | never | the same |
//! | `take_neighbours` | `send_out` | none | `Placement` |
//! | `launder_in_place` | `launder` | `None`: slots side by side | the same |
//! | `is_readable` | `readable_frame_at` | false | the same |
//! | `end_reading` | `remove_page` | nothing | the same |
//! | `read_as_kernel` | `start_page_in` | `None`: streams say | the same, and `SwapAhead` |
//! | `reads_as_linux` | `marker_of` | false | `SwapAhead` |
//! | `note_swap_hit` | `meet_ahead` | false | the same |
//! | `note_slot` | `end_store`, `try_collapse_above` | nothing | the same |
//! | `double_page` | `launder` | all of them | `is_double_paging` of `Passes` |
//! | `defer_writeback`, `reclaim_copy`, `end_return` | replies | nothing | the same |
//! | `return_one` | `handle_idle` | nothing | the same |
//! | `serve_as_kernel` | `serve` | `None` | `Placement`, [windows](Vm::map_window) |
//! | `check_kernel` | `check` | | |

use alloc::collections::BTreeMap;

use crate::config::Config;
use crate::event::Access;
use crate::id::{PageId, SpaceId};
use crate::kernels::Placement;
use crate::kernels::page_daemon::Daemon;
use crate::kernels::swap_window::BySlot;
use crate::memory::frame::State;
use crate::paging::attempt::{Scene, Step};
use crate::seams::machine::Machine;
use crate::vm::Vm;

mod buffered_io;
mod double_paging;
mod in_place;
mod pacing;
mod swap_readahead;

/// The state of what a simulated kernel has turned on.
pub(crate) struct Mechanisms {
    daemon: Daemon,
    by_slot: BySlot,
    /// Pages that the swap store has in the place of their own pagers, which are still to get
    /// them, with whose they were.
    owed: BTreeMap<PageId, SpaceId>,
}

impl Mechanisms {
    /// The state at the start, for a store with `slots`. Panics if the settings of `config`
    /// contradict each other.
    pub(crate) fn new(config: &Config, slots: u32) -> Mechanisms {
        let kernel = &config.kernel;
        let most = kernel.swap_ahead.pages_max().unwrap_or(1);
        assert!(most.is_power_of_two() && most <= config.cluster_pages);
        // A fault may wait for the daemon only where that is awake, and leaves it a frame.
        let is_served = config.free_low >= config.reserve && config.free_high > config.reserve;
        assert!(kernel.pacing.is_none() || is_served);
        Mechanisms {
            daemon: Daemon::default(),
            by_slot: BySlot::new(kernel.swap_ahead, slots),
            owed: BTreeMap::new(),
        }
    }
}

impl Vm {
    /// Serves a fault that no program of a live process has: one in a window, or one on a page that
    /// is being written and stays.
    pub(crate) fn serve_as_kernel(
        &mut self,
        machine: &mut dyn Machine,
        scene: Scene,
    ) -> Option<Step> {
        let (access, is_window) = (scene.fault.access, scene.region.is_window);
        let Some(frame) = scene.found.entry.frame() else {
            let is_new = is_window && access == Access::Overwrite;
            let is_new = is_new && scene.found.entry.slot().is_none();
            return is_new.then(|| self.begin_page(machine, scene));
        };
        match (self.memory.frames().state(frame), is_window) {
            (State::Resident, true) => Some(self.serve_window(machine, scene, frame)),
            (State::Leaving, false) if self.is_readable(frame, access) => {
                Some(self.serve_reading(machine, scene))
            }
            _ => None,
        }
    }

    /// Starts reading a page, and those that a kernel reads with it.
    pub(crate) fn read_as_kernel(
        &mut self,
        machine: &mut dyn Machine,
        scene: &Scene,
    ) -> Option<Step> {
        match self.config.kernel.placement {
            Placement::InPlace => Some(self.start_cluster_in(machine, scene)),
            Placement::Together => {
                let object = self.memory.objects().get(scene.found.page.object);
                let is_linux = self.reads_as_linux(object.is_outside(scene.found.page.index));
                is_linux.then(|| self.start_swap_in(machine, scene))
            }
        }
    }

    /// Panics if what a kernel has turned on contradicts the tables.
    pub(crate) fn check_kernel(&self) {
        self.check_copies();
        self.check_clusters();
    }
}
