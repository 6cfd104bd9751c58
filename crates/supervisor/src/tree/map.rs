//! Maps of tasks' memory, for those who ask: engines draw them.

use std::os::fd::AsFd;

use tidemark_live::control;
use tidemark_live::shared::Wanted;
use tidemark_results::control::{CELLS_MAX, CELLS_USUAL, Cell, MemoryMap};
use tidemark_results::{Refusal, refuse};

use super::Tree;
use crate::program::plain;
use crate::time::now_ns;

// Both say it, as neither knows the other.
const _: () = assert!(CELLS_MAX as usize == tidemark_live::shared::CELLS_MAX);

impl Tree {
    /// The map of a task that was drawn last for those who want as many cells. Has its engine draw
    /// another.
    pub(super) fn map(&mut self, pid: u32, cells: Option<u32>) -> Result<MemoryMap, Refusal> {
        let cells = cells.unwrap_or(CELLS_USUAL);
        if !(1..=CELLS_MAX).contains(&cells) {
            refuse!("`cells` is {cells}; a map has 1 to {CELLS_MAX}");
        }
        let member = &self.members[self.find_task(pid)?];
        let Some(index) = member.record else {
            refuse!("task {pid} has no memory yet");
        };
        let drawn = match self.shared.drawn_map(index) {
            Ok(drawn) => drawn,
            Err(error) => refuse!("there is no memory for a map: {}", plain(&error)),
        };
        let process = self.shared.process(index);
        // The record may have been another's before.
        let drawn = drawn.filter(|drawn| drawn.drawn_ns >= process.start_ns());
        let (number, drawn) = self.maps.exchange((pid, cells), process.start_ns(), drawn);
        process.want_map(Wanted { number, cells });
        // One that is gone is found out when it is listened to.
        let _ = control::poke(member.connection.as_fd());
        let mut map = MemoryMap {
            pid,
            program: process.name(),
            ..MemoryMap::default()
        };
        if let Some(drawn) = drawn {
            let age_ns = now_ns().saturating_sub(drawn.drawn_ns);
            map.age_s = Some(age_ns as f64 / 1e9);
            map.pages = drawn.pages;
            let cells = drawn.cells.iter().map(|cell| Cell {
                address: cell.address,
                in_memory: cell.in_memory.into(),
                compressed: cell.compressed.into(),
                on_disk: cell.on_disk.into(),
                empty: cell.empty.into(),
            });
            map.cells = cells.collect();
        }
        Ok(map)
    }
}
