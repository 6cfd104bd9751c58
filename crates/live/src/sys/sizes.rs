//! The sizes of this process, as the kernel keeps them in `/proc/self/statm`.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};

use super::Errno;

/// The sizes of a process.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sizes {
    /// Its address space.
    pub space_pages: u64,
    /// The pages that it has in memory and that are of no file: also what is not managed, and the
    /// engine's own.
    pub anonymous_pages: u64,
}

/// The file of this process's sizes, which is cheap to read again.
#[derive(Debug)]
pub struct OwnSizes(OwnedFd);

impl OwnSizes {
    /// Opens the file. In a forked child it still shows the parent's.
    ///
    /// # Errors
    /// `/proc` is not mounted, or there are no more descriptors.
    pub fn open() -> Result<OwnSizes, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::open("/proc/self/statm", flags, Mode::empty()).map(OwnSizes)
    }

    /// The sizes now; none if the file can't be read.
    pub fn read(&self) -> Option<Sizes> {
        let mut text = [0u8; 128];
        let count = rustix::io::pread(&self.0, &mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..count]).ok()?;
        let mut fields = text.split(' ').map_while(|field| field.parse::<u64>().ok());
        let (space, resident, of_files) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Sizes {
            space_pages: space,
            anonymous_pages: resident.saturating_sub(of_files),
        })
    }
}
