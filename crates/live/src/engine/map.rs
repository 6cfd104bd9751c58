//! The map of the program's memory, where the supervisor asks for one.

use tidemark_core::vm::Contents;

use super::Engine;
use crate::parts::units::page_of;
use crate::shared::Cell;

impl Engine {
    /// Draws the map that is wanted, if it is not drawn yet.
    pub(super) fn draw_map(&mut self) {
        let (vm, space, store) = (&self.vm, self.space, &self.store);
        let look_at = |address: usize, cell: &mut Cell| {
            let count = match vm.contents_at(space, page_of(address)) {
                Some(Contents::Frame(_)) => &mut cell.in_memory,
                Some(Contents::Slot(slot)) if store.is_zero(slot) => &mut cell.empty,
                Some(Contents::Slot(slot)) if store.has_in_memory(slot) => &mut cell.compressed,
                Some(Contents::Slot(_)) => &mut cell.on_disk,
                None => &mut cell.empty,
            };
            *count += 1;
        };
        let wanted = self.line.process().wanted_map();
        if let Some(map) = self
            .telemetry
            .draw(wanted, self.addresses.managed(), look_at)
        {
            // Without memory for it there is none.
            let _ = self.line.shared().show_map(self.line.record(), &map);
        }
    }
}
