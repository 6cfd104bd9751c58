//! The swap file: made for one run, without a name, freed with its last user.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FallocateFlags, MemfdFlags, OFlags, StatVfs};
use rustix::io::Errno;

use tidemark_live::shared;
use tidemark_live::store::file;
use tidemark_results::Refusal;
use tidemark_results::text::bytes;

/// The least swap file that is worth having.
const SWAP_BYTES_MIN: u64 = 1 << 20;

/// The least space left free on the file system, unless a size is asked for.
const MARGIN_BYTES: u64 = 64 << 20;

/// The extension of a swap file that is not there yet.
const EXTENSION: &str = "swap";

/// The unit of transfers, which direct input and output must be aligned to.
const PAGE_BYTES: u64 = 4096;

/// The bytes that follow the slots: never written, see [`wait_for_transfers`].
const TAIL_BYTES: u64 = PAGE_BYTES;

/// A swap file, open and without a name.
#[derive(Debug)]
pub struct Swap {
    /// The file.
    pub file: OwnedFd,
    /// Its size.
    pub size_bytes: u64,
    /// The folder it was made in.
    pub folder: PathBuf,
    /// True if transfers bypass the page cache.
    pub is_direct: bool,
    /// True if its blocks are set aside, so that a write can't run out of room.
    pub is_preallocated: bool,
}

/// The reason why there is no swap.
#[derive(Debug)]
pub enum NoSwap {
    /// The swap file can't be at the place that was named.
    Place {
        /// The place.
        path: PathBuf,
        /// The reason, and a remedy.
        told: String,
    },
    /// None was named, and no usual one will do.
    NoFolder,
    /// The size asked for is less than is worth having.
    TooSmall {
        /// That size.
        size_bytes: u64,
    },
    /// Files may not be so large.
    Limited {
        /// The limit of files.
        limit_bytes: u64,
        /// The size of swap.
        size_bytes: u64,
    },
    /// There is no room for the size asked for.
    NoRoomForSize {
        /// The folder.
        folder: PathBuf,
        /// That size.
        size_bytes: u64,
        /// The room there.
        free_bytes: u64,
    },
    /// There is no room for a size that would do.
    NoRoom {
        /// The folder.
        folder: PathBuf,
        /// The room there.
        free_bytes: u64,
        /// The least that would do.
        needed_bytes: u64,
        /// The room that is left to others.
        margin_bytes: u64,
    },
    /// The system failed to make it: in one line.
    Failed(String),
}

/// Makes a swap file in `path`, or where swap files go, for `memory_bytes` of memory. If `path`
/// names a file to be made, `*.swap`, its folder is used.
pub fn create(
    path: Option<&Path>,
    size_bytes: Option<u64>,
    memory_bytes: u64,
) -> Result<Swap, NoSwap> {
    let folder = match path {
        Some(path) => folder_of(path)?,
        None => default_folder()?,
    };
    let shown = folder.display();
    let file_system = match rustix::fs::statvfs(&folder) {
        Ok(file_system) => file_system,
        Err(error) => return Err(NoSwap::at(&folder, plain(error))),
    };
    let (file, is_direct) = open(&folder)?;
    let size_bytes = plan_size(&folder, &file_system, size_bytes, memory_bytes)?;
    check_limit(size_bytes)?;
    let failed = |error| {
        let size = bytes(size_bytes);
        NoSwap::Failed(format!("swap of {size} in `{shown}`: {}", plain(error)))
    };
    let is_preallocated = match file::reserve(&file, size_bytes) {
        Ok(is_reserved) => is_reserved,
        Err(error) => return Err(failed(error)),
    };
    rustix::fs::ftruncate(&file, size_bytes + TAIL_BYTES).map_err(failed)?;
    let mut swap = Swap {
        file,
        size_bytes,
        folder,
        is_direct,
        is_preallocated,
    };
    swap.try_transfer()?;
    Ok(swap)
}

/// Stands for a swap file where all pages stay in memory: a file in memory to which nothing is
/// written. It has room for as many pages as `memory_bytes` of memory can come to.
pub fn without_file(memory_bytes: u64) -> Result<Swap, NoSwap> {
    let size_bytes = wanted_size(memory_bytes);
    check_limit(size_bytes)?;
    let file = rustix::fs::memfd_create("tidemark-no-swap", MemfdFlags::CLOEXEC)
        .and_then(|file| rustix::fs::ftruncate(&file, size_bytes + TAIL_BYTES).map(|()| file));
    match file {
        Ok(file) => Ok(Swap {
            file,
            size_bytes,
            folder: PathBuf::new(),
            is_direct: true,
            is_preallocated: true,
        }),
        Err(error) => {
            let told = format!("memory for no swap file can't be had: {}", plain(error));
            Err(NoSwap::Failed(told))
        }
    }
}

/// Stands for a swap file on a server: `lend` gets the size of the store and that of its file, and
/// makes the file. It has `size_bytes`, or what suits so much memory: room is taken as it is
/// written.
pub fn on_server(
    size_bytes: Option<u64>,
    memory_bytes: u64,
    lend: impl FnOnce((u64, u64)) -> Result<OwnedFd, Refusal>,
) -> Result<Swap, NoSwap> {
    let size_bytes = size_bytes.unwrap_or_else(|| wanted_size(memory_bytes));
    check_least(size_bytes)?;
    // A slot's number is 32 bits wide.
    let most = u64::from(u32::MAX) * PAGE_BYTES;
    let size_bytes = size_bytes.min(most).next_multiple_of(PAGE_BYTES);
    check_limit(size_bytes)?;
    Ok(Swap {
        file: lend((size_bytes, size_bytes + TAIL_BYTES))
            .map_err(|refusal| NoSwap::Failed(refusal.to_string()))?,
        size_bytes,
        folder: PathBuf::new(),
        is_direct: true,
        is_preallocated: true,
    })
}

fn check_least(size_bytes: u64) -> Result<(), NoSwap> {
    match size_bytes {
        SWAP_BYTES_MIN.. => Ok(()),
        _ => Err(NoSwap::TooSmall { size_bytes }),
    }
}

/// Refuses a limit of the size of files that swap of `bytes` exceeds, or the table that
/// engines share: the kernel would end this process with a signal, or a program.
fn check_limit(size_bytes: u64) -> Result<(), NoSwap> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    let table = shared::bytes_for((size_bytes / PAGE_BYTES) as usize) as u64;
    match limit {
        Some(limit_bytes) if limit_bytes < table.max(size_bytes + TAIL_BYTES) => {
            Err(NoSwap::Limited {
                limit_bytes,
                size_bytes,
            })
        }
        _ => Ok(()),
    }
}

/// Waits until every transfer that is under way on a swap file has ended, also those of processes
/// that are gone: no other call shows the end of a killed process's writes.
pub fn wait_for_transfers(file: &OwnedFd) {
    // Punching a hole waits for direct transfers on the whole file (ext4, XFS, Btrfs, F2FS), and
    // the tail holds nothing.
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let length = rustix::fs::fstat(file).map_or(0, |found| found.st_size as u64);
    let tail = length.saturating_sub(TAIL_BYTES);
    if rustix::fs::fallocate(file, flags, tail, TAIL_BYTES).is_err() {
        // A file system without holes: far longer than a disk takes.
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The folder swap files go to if none is named: the first of `$TIDEMARK_SWAP_DIR`, `/var/tmp` and
/// the working directory that is on a disk and may be written to.
fn default_folder() -> Result<PathBuf, NoSwap> {
    if let Some(folder) = std::env::var_os("TIDEMARK_SWAP_DIR") {
        return folder_of(Path::new(&folder));
    }
    for folder in ["/var/tmp", "."] {
        let folder = Path::new(folder);
        let may_write = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok();
        if may_write && !is_in_memory(folder) {
            return Ok(folder.into());
        }
    }
    Err(NoSwap::NoFolder)
}

impl NoSwap {
    fn at(path: &Path, told: String) -> NoSwap {
        NoSwap::Place {
            path: path.into(),
            told,
        }
    }
}

impl fmt::Display for NoSwap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSwap::Place { path, told } => write!(formatter, "`{}`: {told}", path.display()),
            NoSwap::NoFolder => formatter.write_str(
                "no folder for the swap file: `/var/tmp` and `.` are not on a disk or not \
                 writable; name one",
            ),
            NoSwap::TooSmall { size_bytes } => write!(
                formatter,
                "swap of {} is too little; needs at least {}",
                bytes(*size_bytes),
                bytes(SWAP_BYTES_MIN)
            ),
            NoSwap::Limited {
                limit_bytes,
                size_bytes,
            } => write!(
                formatter,
                "a file may have {} at most (`ulimit -f`), and swap of {} takes more; raise that, \
                 or give swap a smaller size",
                bytes(*limit_bytes),
                bytes(*size_bytes)
            ),
            NoSwap::NoRoomForSize {
                folder,
                size_bytes,
                free_bytes,
            } => write!(
                formatter,
                "no room for {} of swap in `{}`: {} free; name another folder or a smaller size",
                bytes(*size_bytes),
                folder.display(),
                bytes(*free_bytes)
            ),
            NoSwap::NoRoom {
                folder,
                free_bytes,
                needed_bytes,
                margin_bytes,
            } => write!(
                formatter,
                "no room for swap in `{}`: {} free, {} needed beside {} of margin; name another \
                 folder",
                folder.display(),
                bytes(*free_bytes),
                bytes(*needed_bytes),
                bytes(*margin_bytes)
            ),
            NoSwap::Failed(told) => formatter.write_str(told),
        }
    }
}

impl Swap {
    /// Remarks on the file that a reader of the run's numbers may need.
    pub fn notes(&self) -> Vec<String> {
        let shown = self.folder.display();
        let mut notes = vec![];
        if !self.is_direct {
            notes.push(format!(
                "`{shown}` is on a file system without direct transfers: swap uses the page cache"
            ));
        }
        if !self.is_preallocated {
            notes.push(format!(
                "the file system of `{shown}` can't set blocks aside: swap may run out early"
            ));
        }
        notes
    }

    /// Reads a page the way the engine will. Some file systems take `O_DIRECT` and refuse the
    /// transfer; those are used through the page cache.
    fn try_transfer(&mut self) -> Result<(), NoSwap> {
        #[repr(align(4096))]
        struct Page([u8; PAGE_BYTES as usize]);
        let mut page = Box::new(Page([0; PAGE_BYTES as usize]));
        let file = File::from(self.file.as_fd().try_clone_to_owned().map_err(|error| {
            NoSwap::Failed(format!("swap in `{}`: {error}", self.folder.display()))
        })?);
        if file.read_exact_at(&mut page.0, 0).is_ok() {
            return Ok(());
        }
        if self.is_direct {
            let flags = rustix::fs::fcntl_getfl(&self.file).unwrap_or(OFlags::empty());
            if rustix::fs::fcntl_setfl(&self.file, flags - OFlags::DIRECT).is_ok() {
                self.is_direct = false;
                return self.try_transfer();
            }
        }
        let shown = self.folder.display();
        let told = format!("swap in `{shown}`: the file can't be read back");
        Err(NoSwap::Failed(told))
    }
}

/// The folder `path` stands for: itself, or that of the file to be made.
fn folder_of(path: &Path) -> Result<PathBuf, NoSwap> {
    let refused = |told: &str| Err(NoSwap::at(path, told.to_owned()));
    let folder = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => path.to_path_buf(),
        Ok(found) if found.file_type().is_block_device() => {
            return refused("is a block device; name a folder on a file system");
        }
        Ok(_) => {
            let told = "is there already; name a folder, or a new file that ends in `.swap`";
            return refused(told);
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match path.parent() {
            // Any other name may be that of a folder, mistyped.
            _ if path.extension() != Some(OsStr::new(EXTENSION)) => {
                return refused(
                    "no such folder; make it, or name another, or a new file that ends in `.swap`",
                );
            }
            Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
            Some(parent) if parent.is_dir() => parent.to_path_buf(),
            Some(_) | None => return refused("no such folder; make it or name another"),
        },
        Err(error) => return refused(&crate::program::plain(&error)),
    };
    if is_in_memory(&folder) {
        return refused(
            "is kept in memory (tmpfs), which swap is to save; name a folder on a disk",
        );
    }
    Ok(folder)
}

fn is_in_memory(folder: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    rustix::fs::statfs(folder).is_ok_and(|found| [TMPFS, RAMFS].contains(&found.f_type))
}

/// The size that suits so much memory.
fn wanted_size(memory_bytes: u64) -> u64 {
    memory_bytes.saturating_mul(8).max(4 << 30)
}

/// The size of the file: what is asked for, or eight times the memory as far as there is room.
fn plan_size(
    folder: &Path,
    file_system: &StatVfs,
    asked_bytes: Option<u64>,
    memory_bytes: u64,
) -> Result<u64, NoSwap> {
    let free_bytes = file_system.f_bavail.saturating_mul(file_system.f_frsize);
    if let Some(asked) = asked_bytes {
        check_least(asked)?;
        if asked > free_bytes {
            return Err(NoSwap::NoRoomForSize {
                folder: folder.into(),
                size_bytes: asked,
                free_bytes,
            });
        }
        return Ok(asked.next_multiple_of(PAGE_BYTES));
    }
    let margin = MARGIN_BYTES.max(free_bytes / 20);
    let room_bytes = free_bytes.saturating_sub(margin);
    let wanted = wanted_size(memory_bytes).min(room_bytes);
    let least = memory_bytes.clamp(SWAP_BYTES_MIN, 256 << 20);
    if wanted < least {
        return Err(NoSwap::NoRoom {
            folder: folder.into(),
            free_bytes,
            needed_bytes: least,
            margin_bytes: margin,
        });
    }
    // A slot's number is 32 bits wide.
    Ok((wanted - wanted % PAGE_BYTES).min(u64::from(u32::MAX) * PAGE_BYTES))
}

/// Opens a new file without a name, bypassing the page cache if the file system can.
fn open(folder: &Path) -> Result<(OwnedFd, bool), NoSwap> {
    match file::open(folder) {
        Ok(opened) => Ok(opened),
        Err(error) => {
            let told = format!("{}; name a folder you may write to", plain(error));
            Err(NoSwap::at(folder, told))
        }
    }
}

fn plain(error: Errno) -> String {
    crate::program::plain(&error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_system(free_bytes: u64) -> StatVfs {
        let mut found = rustix::fs::statvfs("/").unwrap();
        found.f_bavail = free_bytes / 4096;
        found.f_frsize = 4096;
        found
    }

    fn size(free: u64, asked: Option<u64>, memory: u64) -> Result<u64, String> {
        plan_size(Path::new("/swap"), &file_system(free), asked, memory)
            .map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn the_size_is_eight_times_the_memory_and_at_least_four_gibibytes() {
        assert_eq!(size(100 << 30, None, 1 << 30), Ok(8 << 30));
        assert_eq!(size(100 << 30, None, 1 << 20), Ok(4 << 30));
    }

    #[test]
    fn a_twentieth_of_the_free_room_is_left() {
        let given = size(2 << 30, None, 1 << 30).unwrap();
        assert!(
            given <= (2 << 30) / 20 * 19 && given > (2 << 30) / 20 * 18,
            "{given}"
        );
    }

    #[test]
    fn too_little_room_is_refused_with_what_is_there() {
        let told = size(70 << 20, None, 1 << 30).unwrap_err();
        assert!(told.starts_with("no room for swap in `/swap`: 70 MiB free, 256 MiB needed"));
        let told = size(70 << 20, Some(1 << 30), 1 << 20).unwrap_err();
        assert!(
            told.starts_with("no room for 1 GiB of swap in `/swap`: 70 MiB free"),
            "{told}"
        );
    }

    #[test]
    fn a_size_that_is_asked_for_is_taken_in_whole_pages() {
        assert_eq!(
            size(70 << 20, Some((2 << 20) + 1), 1 << 20),
            Ok((2 << 20) + 4096)
        );
        assert!(
            size(70 << 20, Some(4096), 1 << 20)
                .unwrap_err()
                .contains("at least 1 MiB")
        );
    }

    #[test]
    fn memory_is_no_place_for_swap() {
        let told = folder_of(Path::new("/dev/shm")).unwrap_err().to_string();
        assert!(told.contains("tmpfs"), "{told}");
    }

    #[test]
    fn a_swap_file_has_its_size_and_no_name() {
        let folder =
            std::env::temp_dir().join(format!("tidemark-swap-test-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let swap = create(Some(&folder), Some(1 << 20), 1 << 20);
        let names = std::fs::read_dir(&folder).unwrap().count();
        std::fs::remove_dir(&folder).unwrap();
        assert_eq!(names, 0);
        let length = rustix::fs::fstat(&swap.unwrap().file).unwrap().st_size as u64;
        assert_eq!(length, (1 << 20) + TAIL_BYTES);
    }
}
