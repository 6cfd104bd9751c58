//! Windows: pages of files that system calls copy bytes to and from, without a mapping.
//!
//! A window is a region that no program sees. A fault there is served as any other, by
//! [`fault`](crate::vm::faults), up to where a mapping would be made: none is, and the policy
//! learns of the copy instead.

use crate::event::{Fault, Resolution, Service};
use crate::id::FrameId;
use crate::paging::attempt::{Need, Scene, Step};
use crate::seams::arrival::{Cause, KernelUse};
use crate::seams::machine::Machine;
use crate::time::Time;
use crate::vm::Vm;

impl Vm {
    /// Brings a page of a file into memory whose bytes a system call copies: `at` lies in a
    /// [window](Self::map_window) of `space`. Where that has to wait, the copy counts as made when
    /// the [`Event`](crate::event::Event) says that it is over. It is no fault of a program, and is
    /// not counted as one.
    ///
    /// Work: as [`handle_fault`](Self::handle_fault).
    pub fn handle_copy(&mut self, now: Time, machine: &mut dyn Machine, copy: Fault) -> Resolution {
        self.attend(now, machine, copy, |_| {})
    }

    /// The kernel copies bytes to or from a page of a file, and maps it nowhere.
    pub(super) fn serve_window(
        &mut self,
        machine: &mut dyn Machine,
        scene: Scene,
        frame: FrameId,
    ) -> Step {
        let Scene {
            fault, is_retry, ..
        } = scene;
        let was_ahead = self.meet_ahead(machine, scene, frame);
        self.memory.frames_mut().set_owner(frame, fault.space);
        self.memory.frames_mut().set_deactivated(frame, false);
        if fault.access.is_store() {
            self.memory.frames_mut().set_dirty(frame, true);
        }
        let kernel_use = match is_retry && !was_ahead {
            true => KernelUse::First,
            false => KernelUse::Again,
        };
        if !self.policy.page_copied(frame, kernel_use) && kernel_use == KernelUse::Again {
            self.memory.frames_mut().force_reference(frame);
        }
        Step::Resolved(Service::Buffer)
    }

    /// A page of a file is about to be written whole: it needs a frame, and no contents.
    pub(super) fn begin_page(&mut self, machine: &mut dyn Machine, scene: Scene) -> Step {
        let Some(frame) = self.take_frame(machine, Need::Awaited) else {
            return Step::Stall;
        };
        self.occupy(frame, scene.found.page, scene.fault.space, Cause::Fetched);
        self.memory.frames_mut().set_dirty(frame, true);
        self.policy.page_copied(frame, KernelUse::First);
        Step::Resolved(Service::Buffer)
    }
}
