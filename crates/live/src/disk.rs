//! The processor that hears from the disk that a file lies on.
//!
//! A disk with one queue interrupts one processor for all requests. A thread that waits on another
//! must be woken from there, and if that processor has halted meanwhile on a virtual machine, two
//! exits to the host lie between the disk's answer and the thread: some 30 us on top of the disk's
//! 45. Disks with a queue for each processor answer where they were asked.
//!
//! Source: `/sys` and `/proc/irq` (Linux, `Documentation/core-api/irq/irq-affinity.rst`;
//! `block/blk-mq-sysfs.c` for `mq`; `drivers/pci/msi` for `msi_irqs`).

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// The most devices that lie between a file system and a disk: partitions, mapped devices.
const LAYERS_MAX: u32 = 8;

/// The one processor that is interrupted when the disk below `file` has finished something.
/// `None` if there are several, or if the host does not tell.
pub fn processor_of(file: impl AsFd) -> Option<u32> {
    let device = rustix::fs::fstat(file).ok()?.st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    find(Path::new("/"), major, minor)
}

fn find(root: &Path, major: u32, minor: u32) -> Option<u32> {
    let device = root.join(format!("sys/dev/block/{major}:{minor}"));
    let disk = find_disk(fs::canonicalize(device).ok()?)?;
    if entries(&disk.join("mq"))?.len() != 1 {
        return None;
    }
    let interrupts = disk
        .ancestors()
        .find_map(|device| entries(&device.join("msi_irqs")))?;
    let counts = fs::read_to_string(root.join("proc/interrupts")).ok()?;
    let interrupt = busiest(&interrupts, &counts)?;
    let processors = root.join(format!("proc/irq/{interrupt}/effective_affinity_list"));
    fs::read_to_string(processors).ok()?.trim().parse().ok()
}

/// The disk below a block device: what a partition is a part of, what a mapped device lies on.
fn find_disk(mut device: PathBuf) -> Option<PathBuf> {
    for _ in 0..LAYERS_MAX {
        if device.join("partition").exists() {
            device.pop();
        } else if let Some([below]) = entries(&device.join("slaves")).as_deref() {
            device = fs::canonicalize(device.join("slaves").join(below)).ok()?;
        } else {
            return Some(device);
        }
    }
    None
}

/// The interrupt that nearly all of these were: others report changes of the device. Each
/// line of `counts` is a number, counts by processor, and names.
fn busiest(interrupts: &[String], counts: &str) -> Option<String> {
    let total_of = |interrupt: &String| -> u64 {
        let line = counts.lines().find_map(|line| {
            let (name, rest) = line.split_once(':')?;
            (name.trim() == interrupt).then_some(rest)
        });
        let words = line.unwrap_or_default().split_ascii_whitespace();
        words.map_while(|word| word.parse::<u64>().ok()).sum()
    };
    let totals: Vec<u64> = interrupts.iter().map(total_of).collect();
    let (most, sum) = (totals.iter().copied().max()?, totals.iter().sum::<u64>());
    let index = totals.iter().position(|&total| total == most)?;
    (most > sum - sum / 16).then(|| interrupts[index].clone())
}

/// The names in a folder; `None` if there is no such folder.
fn entries(folder: &Path) -> Option<Vec<String>> {
    let entries = fs::read_dir(folder).ok()?;
    Some(
        entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with one disk of `queues` queues, which has a partition that device 253:0 lies on.
    struct Host(PathBuf);

    impl Host {
        fn new(name: &str, queues: u32) -> Host {
            let own = format!("tidemark-disk-{}-{name}", std::process::id());
            let host = Host(std::env::temp_dir().join(own));
            let function = "sys/devices/pci0/0000:00:02.0";
            let disk = format!("{function}/virtio1/block/vda");
            for interrupt in ["35", "36"] {
                host.put(&format!("{function}/msi_irqs/{interrupt}"), "msix");
            }
            for queue in 0..queues {
                host.put(&format!("{disk}/mq/{queue}/cpu_list"), "0, 1");
            }
            host.put(&format!("{disk}/vda1/partition"), "1");
            host.link("sys/dev/block/254:0", &disk);
            host.link("sys/dev/block/254:1", &format!("{disk}/vda1"));
            host.link(
                "sys/devices/virtual/block/dm-0/slaves/vda1",
                &format!("{disk}/vda1"),
            );
            host.link("sys/dev/block/253:0", "sys/devices/virtual/block/dm-0");
            host.put(
                "proc/interrupts",
                "      CPU0   CPU1\n 35:  0  1  PCI-MSIX-0 0-edge virtio1-config\n 36: 12 90310  \
                 PCI-MSIX-0 1-edge virtio1-req.0\n",
            );
            host.put("proc/irq/35/effective_affinity_list", "0\n");
            host.put("proc/irq/36/effective_affinity_list", "1\n");
            host
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn link(&self, path: &str, to: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(self.0.join(to), path).unwrap();
        }
    }

    impl Drop for Host {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_disk_with_one_queue_has_one_processor_whatever_lies_on_it() {
        let host = Host::new("one", 1);
        assert_eq!(find(&host.0, 254, 0), Some(1));
        assert_eq!(find(&host.0, 254, 1), Some(1));
        assert_eq!(find(&host.0, 253, 0), Some(1));
        assert_eq!(find(&host.0, 7, 0), None);
    }

    #[test]
    fn queues_or_interrupts_of_several_processors_have_none() {
        let host = Host::new("two", 2);
        assert_eq!(find(&host.0, 254, 0), None);
        let host = Host::new("wide", 1);
        host.put("proc/irq/36/effective_affinity_list", "0-1\n");
        assert_eq!(find(&host.0, 254, 0), None);
        host.put("proc/interrupts", " 35: 50 0 a\n 36: 0 50 b\n");
        host.put("proc/irq/36/effective_affinity_list", "1\n");
        assert_eq!(find(&host.0, 254, 0), None);
    }
}
