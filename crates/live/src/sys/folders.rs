//! Folders, gone through without the C library, whose functions for that take memory of the
//! program's: it may be out, and an engine that touched it would wait for itself.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RawDir, openat, unlinkat};

use super::Errno;

/// The deepest folder in a folder that is removed with it.
const DEPTH_MAX: usize = 4;

/// Removes a folder and all that is in it. What is a link goes, and not what it leads to.
pub fn remove(folder: &Path) -> Result<(), Errno> {
    empty(open(rustix::fs::CWD, folder)?, DEPTH_MAX)?;
    rustix::fs::rmdir(folder)
}

/// Visits the entries of a folder until one fails. Allocates nothing.
pub fn visit(
    folder: &OwnedFd,
    mut visit: impl FnMut(&CStr) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::<u8>::uninit(); 2048];
    let mut entries = RawDir::new(folder, &mut space);
    while let Some(entry) = entries.next() {
        visit(entry?.file_name())?;
    }
    Ok(())
}

fn empty(folder: OwnedFd, depth: usize) -> Result<(), Errno> {
    visit(&folder, |name| {
        if name == c"." || name == c".." {
            return Ok(());
        }
        match unlinkat(&folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) if depth > 0 => {
                empty(open(folder.as_fd(), name)?, depth - 1)?;
                unlinkat(&folder, name, AtFlags::REMOVEDIR)
            }
            removed => removed,
        }
    })
}

fn open(parent: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_all_that_is_in_it_and_nothing_else() {
        let scratch = std::env::temp_dir().join(format!("folders-{}", std::process::id()));
        let (kept, gone) = (scratch.join("kept"), scratch.join("gone"));
        std::fs::create_dir_all(gone.join("a/b")).unwrap();
        std::fs::create_dir_all(&kept).unwrap();
        for number in 0..300 {
            let name = format!("a file with a name that is not short {number}");
            std::fs::write(gone.join("a/b").join(name), "").unwrap();
        }
        std::fs::write(kept.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&kept, gone.join("a/link")).unwrap();
        remove(&gone).unwrap();
        assert!(!gone.exists() && kept.join("file").exists());
        assert_eq!(remove(&gone), Err(Errno::NOENT));
        std::fs::remove_dir_all(&scratch).unwrap();
    }
}
