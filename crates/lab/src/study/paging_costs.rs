//! The costs of paging on a machine: its disk, its faults, and what a page-in takes with both.

use tidemark_results::host::Latency;

use super::run_costs::{FAULT_IN_A_RUN, FAULT_NS};
use crate::world::DiskModel;
use crate::world::disk::table::Table;

/// A page-in where no disk was measured or named, in nanoseconds.
const PAGE_IN_NS: f64 = 100_000.0;
/// `doctor`'s name for a fault that an engine serves for a thread beside it.
const FAULT: &str = "soft fault by a thread, same processor";

/// A disk and what it is called.
#[derive(Clone, Debug)]
pub struct NamedDisk {
    /// The name.
    pub name: String,
    /// The model.
    pub model: DiskModel,
}

/// The costs of paging on a machine.
#[derive(Clone, Debug)]
pub struct PagingCosts {
    /// The disk that is swapped to.
    pub disk: NamedDisk,
    /// The time of a page-in under an ideal policy, in nanoseconds.
    pub page_in_ns: f64,
    /// The cost of a fault, where that was measured.
    pub fault_ns: Option<u64>,
}

impl PagingCosts {
    /// The costs on a machine with this disk.
    pub fn of_disk(disk: NamedDisk) -> PagingCosts {
        PagingCosts {
            page_in_ns: (read_ns(&disk.model) + FAULT_NS) as f64,
            disk,
            fault_ns: None,
        }
    }

    /// The costs where nothing was measured, with a disk to stand for the unknown one.
    pub fn assumed(disk: NamedDisk) -> PagingCosts {
        PagingCosts {
            page_in_ns: PAGE_IN_NS,
            ..PagingCosts::of_disk(disk)
        }
    }

    /// The costs that `tidemark doctor --calibrate` has measured, if there is a disk in it.
    pub fn of_latencies(latencies: &[Latency]) -> Option<PagingCosts> {
        let disk = NamedDisk {
            name: "measured".into(),
            model: DiskModel::Table(Table::from_latencies(latencies)?),
        };
        let fault = latencies.iter().find(|latency| latency.name == FAULT);
        let fault_ns = fault.map(|fault| (fault.p50_us * 1000.0 * FAULT_IN_A_RUN) as u64);
        Some(PagingCosts {
            page_in_ns: (read_ns(&disk.model) + fault_ns.unwrap_or(FAULT_NS)) as f64,
            disk,
            fault_ns,
        })
    }
}

/// The usual time in which a disk reads a page from anywhere.
fn read_ns(model: &DiskModel) -> u64 {
    match model {
        DiskModel::Fixed {
            request_ns,
            page_ns,
            ..
        } => request_ns + page_ns,
        // A third of the longest way, and half a turn.
        DiskModel::Hdd(hdd) => {
            let seek_ns = hdd.seek_min_ns + (hdd.seek_max_ns - hdd.seek_min_ns) / 3;
            hdd.overhead_ns + seek_ns + hdd.turn_ns / 2
        }
        DiskModel::Ssd(ssd) => ssd.read_ns + ssd.link_page_ns,
        DiskModel::Table(table) => table.reads.first().map_or(0, |point| point.p50_ns),
    }
}
