//! The pages of this process that are there, by `PAGEMAP_SCAN` (Linux 6.7).

use std::os::fd::OwnedFd;

use linux_raw_sys::general as raw;
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, opcode};

use super::{Errno, PAGE};

/// The most runs of pages that one scan answers.
pub const RUNS_MAX: usize = 256;
const SCAN: Opcode = opcode::read_write::<raw::pm_scan_arg>(b'f', 16);
const BLANK: raw::page_region = raw::page_region {
    start: 0,
    end: 0,
    categories: 0,
};

/// The pages of this process. Keeps its file open.
#[derive(Debug)]
pub struct Pagemap(OwnedFd);

impl Pagemap {
    /// Opens the file of this process. A forked child needs its own.
    pub fn open() -> Result<Pagemap, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Pagemap(rustix::fs::open(
            "/proc/self/pagemap",
            flags,
            Mode::empty(),
        )?))
    }

    /// Finds present pages in `start..end`, as runs in the order of addresses; at most
    /// [`RUNS_MAX`] of them. Answers where to go on: `end` if all was walked.
    pub fn find_present(
        &self,
        start: usize,
        end: usize,
        runs: &mut Vec<(usize, usize)>,
    ) -> Result<usize, Errno> {
        self.find(raw::PAGE_IS_PRESENT, start, end, runs)
    }

    /// Finds pages that are present or that the host has swapped out: those that a touch does not
    /// miss. As runs in the order of addresses.
    pub fn find_there(
        &self,
        start: usize,
        end: usize,
        runs: &mut Vec<(usize, usize)>,
    ) -> Result<usize, Errno> {
        self.find(
            raw::PAGE_IS_PRESENT | raw::PAGE_IS_SWAPPED,
            start,
            end,
            runs,
        )
    }

    /// Finds pages of any of these kinds.
    fn find(
        &self,
        kinds: u32,
        start: usize,
        end: usize,
        runs: &mut Vec<(usize, usize)>,
    ) -> Result<usize, Errno> {
        runs.clear();
        let mut regions = [BLANK; RUNS_MAX];
        let (found, walk_end) = self.scan(start, end, (kinds, 0), &mut regions)?;
        for region in &regions[..found.min(RUNS_MAX)] {
            runs.push((region.start as usize, region.end as usize));
        }
        Ok(walk_end)
    }

    /// Finds in `start..end` the pages of zeros that all processes share (`blank`), and all other
    /// pages there are (`own`), as runs in the order of addresses; at most [`RUNS_MAX`] of both.
    /// Answers where to go on: `end` if all was walked.
    pub fn find_own(
        &self,
        start: usize,
        end: usize,
        blank: &mut Vec<(usize, usize)>,
        own: &mut Vec<(usize, usize)>,
    ) -> Result<usize, Errno> {
        let kinds = raw::PAGE_IS_PRESENT | raw::PAGE_IS_SWAPPED | raw::PAGE_IS_PFNZERO;
        let mut regions = [BLANK; RUNS_MAX];
        let (found, walk_end) = self.scan(start, end, (kinds, 0), &mut regions)?;
        for region in &regions[..found.min(RUNS_MAX)] {
            let is_blank = region.categories & u64::from(raw::PAGE_IS_PFNZERO) != 0;
            let runs = if is_blank { &mut *blank } else { &mut *own };
            runs.push((region.start as usize, region.end as usize));
        }
        Ok(walk_end)
    }

    /// The number of bytes in `start..end` that are present.
    pub fn present_bytes(&self, start: usize, end: usize) -> Result<usize, Errno> {
        self.count_bytes(start, end, 0)
    }

    /// The number of bytes in `start..end` that are present, in pages that no file has (those of
    /// memory that is shared are a file's) and that are this process's own.
    pub fn anonymous_bytes(&self, start: usize, end: usize) -> Result<usize, Errno> {
        self.count_bytes(start, end, raw::PAGE_IS_FILE | raw::PAGE_IS_PFNZERO)
    }

    fn count_bytes(&self, start: usize, end: usize, not: u32) -> Result<usize, Errno> {
        let (mut at, mut bytes) = (start, 0);
        let mut regions = [BLANK; RUNS_MAX];
        while at < end {
            let kinds = (raw::PAGE_IS_PRESENT, not);
            let (found, walk_end) = self.scan(at, end, kinds, &mut regions)?;
            let runs = regions[..found.min(RUNS_MAX)].iter();
            bytes += runs
                .map(|run| (run.end - run.start) as usize)
                .sum::<usize>();
            at = walk_end.max(at + PAGE);
        }
        Ok(bytes)
    }

    /// Returns `true` if the page at `at` is present.
    pub fn is_present(&self, at: usize) -> Result<bool, Errno> {
        self.is_any(at, raw::PAGE_IS_PRESENT)
    }

    /// Returns `true` if there is nothing at `at`: no page, nor one that the host has swapped out.
    pub fn is_hole(&self, at: usize) -> Result<bool, Errno> {
        let kinds = raw::PAGE_IS_PRESENT | raw::PAGE_IS_SWAPPED;
        self.is_any(at, kinds).map(|is_any| !is_any)
    }

    fn is_any(&self, at: usize, kinds: u32) -> Result<bool, Errno> {
        let start = at & !(PAGE - 1);
        let (found, _) = self.scan(start, start + PAGE, (kinds, 0), &mut [BLANK])?;
        Ok(found > 0)
    }

    /// Finds pages of any of `kinds`, and none of `not`; answers how many runs, and where the walk
    /// ended.
    fn scan(
        &self,
        start: usize,
        end: usize,
        (kinds, not): (u32, u32),
        into: &mut [raw::page_region],
    ) -> Result<(usize, usize), Errno> {
        let mut argument = raw::pm_scan_arg {
            size: size_of::<raw::pm_scan_arg>() as u64,
            flags: 0,
            start: start as u64,
            end: end as u64,
            walk_end: 0,
            vec: into.as_mut_ptr() as u64,
            vec_len: into.len() as u64,
            max_pages: 0,
            category_inverted: u64::from(not),
            category_mask: u64::from(not),
            category_anyof_mask: u64::from(kinds),
            return_mask: u64::from(kinds),
        };
        // SAFETY: the argument names `into`, which is live and as long as it says.
        let found = unsafe { rustix::ioctl::ioctl(&self.0, Scan(&mut argument))? };
        Ok((found, argument.walk_end as usize))
    }
}

/// `PAGEMAP_SCAN`, which answers with a count.
struct Scan<'a>(&'a mut raw::pm_scan_arg);

// SAFETY: the opcode updates exactly this struct and answers with a count.
unsafe impl Ioctl for Scan<'_> {
    type Output = usize;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        SCAN
    }

    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        (&raw mut *self.0).cast()
    }

    unsafe fn output_from_ptr(
        out: IoctlOutput,
        _: *mut std::ffi::c_void,
    ) -> rustix::io::Result<usize> {
        Ok(usize::try_from(out).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::Mapping;
    use super::*;

    #[test]
    fn memory_of_files_and_pages_of_zeros_are_not_anonymous() {
        let own = Mapping::anonymous(64 * PAGE).unwrap();
        let shared = crate::sys::shm::Shared::create("test", 8 * PAGE).unwrap();
        let pages = Pagemap::open().unwrap();
        (0..5).for_each(|page| own.set(page * PAGE, 1));
        (10..20).for_each(|page| assert_eq!(own.get(page * PAGE), 0));
        let (start, end) = (own.start(), own.start() + own.bytes());
        assert_eq!(pages.anonymous_bytes(start, end), Ok(5 * PAGE));
        assert_eq!(pages.present_bytes(start, end), Ok(15 * PAGE));
        shared.reach(3 * PAGE, PAGE).unwrap();
        let word: &std::sync::atomic::AtomicU64 = shared.at(3 * PAGE);
        word.store(1, std::sync::atomic::Ordering::Relaxed);
        let (start, end) = shared.range();
        assert_eq!(pages.anonymous_bytes(start, end), Ok(0));
        assert!(pages.present_bytes(start, end).unwrap() >= PAGE);
    }

    #[test]
    fn pages_that_were_read_are_told_from_those_that_were_written() {
        let own = Mapping::anonymous(64 * PAGE).unwrap();
        let pages = Pagemap::open().unwrap();
        [2, 3, 4].iter().for_each(|page| _ = own.get(page * PAGE));
        [3, 9].iter().for_each(|page| own.set(page * PAGE, 1));
        let (mut blank, mut written) = (Vec::new(), Vec::new());
        let end = own.start() + own.bytes();
        let walked = pages.find_own(own.start(), end, &mut blank, &mut written);
        assert_eq!(walked, Ok(end));
        let at = |page: usize| own.start() + page * PAGE;
        assert_eq!(blank, [(at(2), at(3)), (at(4), at(5))]);
        assert_eq!(written, [(at(3), at(4)), (at(9), at(10))]);
    }

    #[test]
    fn pages_that_were_written_to_are_present() {
        let own = Mapping::anonymous(64 * PAGE).unwrap();
        let pages = Pagemap::open().unwrap();
        [3, 4, 9].iter().for_each(|page| own.set(page * PAGE, 1));
        let mut runs = Vec::new();
        let end = own.start() + own.bytes();
        assert_eq!(pages.find_present(own.start(), end, &mut runs), Ok(end));
        let at = |page: usize| own.start() + page * PAGE;
        assert_eq!(runs, [(at(3), at(5)), (at(9), at(10))]);
        let asked = [9, 10].map(|page| (pages.is_present(at(page)), pages.is_hole(at(page))));
        assert_eq!(asked, [(Ok(true), Ok(false)), (Ok(false), Ok(true))]);
    }
}
