//! Disks with names.

use super::DiskModel;
use super::hdd::Hdd;
use super::ssd::Ssd;

/// A disk with a name.
#[derive(Clone, Debug)]
pub struct Preset {
    /// The name on the command line and in reports.
    pub name: &'static str,
    /// One line of meaning.
    pub summary: &'static str,
    /// The model.
    pub model: DiskModel,
}

/// Writes are over when they are on the platter.
const UNCACHED: Hdd = Hdd {
    // 4 TB at 7200 turns a minute, 180 MB/s: data sheets of the 2010s.
    cylinders: 330_000,
    track_pages: 366,
    heads: 8,
    turn_ns: 8_333_333,
    seek_min_ns: 600_000,
    seek_max_ns: 16_000_000,
    overhead_ns: 100_000,
    cache_pages: 0,
    cache_page_ns: 7_000,
};

/// All disks with names, the usual first.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "hdd",
        summary: "7200 turns a minute, 180 MB/s, no write cache",
        model: DiskModel::Hdd(UNCACHED),
    },
    Preset {
        name: "hdd-cached",
        summary: "the same with 16 MiB of write cache",
        model: DiskModel::Hdd(Hdd {
            cache_pages: 4096,
            ..UNCACHED
        }),
    },
    Preset {
        name: "hdd-1995",
        summary: "5400 turns a minute, 1 GB, 3.7 MB/s, no write cache",
        model: DiskModel::Hdd(Hdd {
            cylinders: 2700,
            track_pages: 10,
            heads: 9,
            turn_ns: 11_111_111,
            seek_min_ns: 2_500_000,
            seek_max_ns: 21_000_000,
            overhead_ns: 1_000_000,
            cache_pages: 0,
            cache_page_ns: 400_000,
        }),
    },
    Preset {
        name: "hdd-2002",
        summary: "7200 turns a minute, 40 GB, 40 MB/s, 2 MiB of write cache",
        model: DiskModel::Hdd(Hdd {
            cylinders: 58_000,
            track_pages: 81,
            heads: 2,
            turn_ns: 8_333_333,
            seek_min_ns: 1_200_000,
            seek_max_ns: 18_000_000,
            overhead_ns: 300_000,
            cache_pages: 512,
            cache_page_ns: 41_000,
        }),
    },
    Preset {
        name: "ssd",
        summary: "flash over SATA: 80 us to read, 500 MB/s, 32 requests at a time",
        model: DiskModel::Ssd(Ssd {
            channels: 32,
            read_ns: 80_000,
            write_ns: 50_000,
            link_page_ns: 8_200,
        }),
    },
    Preset {
        name: "nvme",
        summary: "flash on the bus: 70 us to read, 3 GB/s, 64 requests at a time",
        model: DiskModel::Ssd(Ssd {
            channels: 64,
            read_ns: 70_000,
            write_ns: 20_000,
            link_page_ns: 1_370,
        }),
    },
    Preset {
        name: "instant",
        summary: "takes no time: for counting",
        model: DiskModel::INSTANT,
    },
];

/// The disk of that name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
