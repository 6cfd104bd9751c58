//! The layout of a scenario's disks: swap, and its files.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tidemark_core::vm::Vm;

use super::disk::Disk;
use super::files::Files;
use super::scenario::Scenario;

/// The disks of a scenario, and its files laid out on theirs. On one disk they stand behind swap.
pub(super) fn build_disks(vm: &mut Vm, scenario: &Scenario, slots: u64) -> (Vec<Disk>, Files) {
    let mut sizes: BTreeMap<Cow<'_, str>, u64> = BTreeMap::new();
    for (number, program) in scenario.programs.iter().enumerate() {
        for (path, &pages) in &program.script.files {
            let known = sizes.entry(program.file_key(number, path)).or_insert(0);
            *known = (*known).max(pages);
        }
    }
    let swap = scenario.disks.swap.clone();
    match &scenario.disks.files {
        Some(model) => {
            let disks = vec![
                Disk::new("swap", swap, scenario.seed),
                Disk::new("files", model.clone(), !scenario.seed),
            ];
            (disks, Files::new(vm, &sizes, 0))
        }
        None => {
            let disks = vec![Disk::new("swap and files", swap, scenario.seed)];
            (disks, Files::new(vm, &sizes, slots))
        }
    }
}
