//! Tables of pages: the kernel's own, and one a program.
//!
//! | addresses | what is there |
//! | --- | --- |
//! | the lower half | the program |
//! | from [`DIRECT`] on | all memory behind the kernel's image: its heap, and the frames |
//! | from [`DEVICES`] on | the registers of devices |
//! | the last 2 GiB | the kernel's image: text, constants and variables, each with its rights |
//!
//! The upper half is the same in every table. What is writable is never executable, and ring 0
//! respects write protection.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::ops::Range;

use tidemark_core::id::FrameId;

use super::frames::Frames;
use super::processor;

/// The address at which all memory is mapped for the kernel.
pub const DIRECT: u64 = 0xffff_8000_0000_0000;
/// The address at which the registers of devices are mapped.
pub(super) const DEVICES: u64 = 0xffff_8080_0000_0000;
/// Physical addresses of the devices this kernel knows, in pages of 2 MiB: disks, and the
/// processor's own interrupt controller.
const DEVICE_AREAS: [u64; 2] = [0xfea0_0000, 0xfee0_0000];
/// The address at which the image is linked, less the one at which it is loaded.
const KERNEL_BASE: u64 = 0xffff_ffff_8000_0000;
/// The bytes of a page of memory.
pub const PAGE_BYTES: usize = 4096;
/// Programs' addresses end here.
pub const USER_END: u64 = 0x0000_8000_0000_0000;

const LARGE_BYTES: u64 = 2 << 20;
const ENTRIES: usize = 512;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const UNCACHED: u64 = 3 << 3;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// The address at which the kernel sees physical address `address`.
pub(super) fn direct(address: u64) -> u64 {
    DIRECT + address
}

/// The physical address of what the kernel sees at `address`, on its heap.
fn physical(address: u64) -> u64 {
    assert!((DIRECT..DEVICES).contains(&address));
    address - DIRECT
}

/// A page of memory on the kernel's heap.
#[repr(C, align(4096))]
pub struct Page(pub [u8; PAGE_BYTES]);

impl Page {
    /// A page of zeros.
    pub fn zeroed() -> Box<Page> {
        Box::new(Page([0; PAGE_BYTES]))
    }

    pub(super) fn physical(&self) -> u64 {
        physical(self.0.as_ptr() as u64)
    }
}

#[repr(C, align(4096))]
struct Table([u64; ENTRIES]);

impl Table {
    fn allocate() -> &'static mut Table {
        Box::leak(Box::new(Table([0; ENTRIES])))
    }

    fn physical(&self) -> u64 {
        physical(self.0.as_ptr() as u64)
    }
}

/// The table at physical address `address`.
///
/// # Safety
/// A table that was allocated here stands there, and no other reference to it is used meanwhile.
unsafe fn table_at<'a>(address: u64) -> &'a mut Table {
    // SAFETY: the caller's promise; the heap is mapped for writing.
    unsafe { &mut *(direct(address & ADDRESS) as *mut Table) }
}

/// The rights that an entry gives programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allow {
    /// To read.
    Read,
    /// To read and to execute.
    Execute,
    /// To read and to write.
    Write,
}

/// The lowest entry of a page: which frame, what is allowed, and what the processor has noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry(u64);

impl Entry {
    /// Nothing is there.
    pub const NONE: Entry = Entry(0);

    /// An entry for `frame` that has not been used.
    pub fn new(frames: &Frames, frame: FrameId, allow: Allow) -> Entry {
        Entry(frames.physical(frame) | Entry::allowing(allow))
    }

    fn allowing(allow: Allow) -> u64 {
        PRESENT
            | USER
            | match allow {
                Allow::Read => NO_EXECUTE,
                Allow::Execute => 0,
                Allow::Write => WRITABLE | NO_EXECUTE,
            }
    }

    /// Returns true if the page is there.
    pub fn is_present(self) -> bool {
        self.0 & PRESENT != 0
    }

    /// Returns true if it may be written to.
    pub fn is_writable(self) -> bool {
        self.is_present() && self.0 & WRITABLE != 0
    }

    /// Returns true if the processor has used it since that was last forgotten.
    pub fn is_accessed(self) -> bool {
        self.0 & ACCESSED != 0
    }

    /// Returns true if the processor has written through it.
    pub fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }

    /// The frame it leads to, if it leads to one.
    pub fn frame(self, frames: &Frames) -> Option<FrameId> {
        self.is_present()
            .then(|| frames.frame_at(self.0 & ADDRESS))?
    }

    /// This entry, marked as not used.
    pub fn without_accessed(self) -> Entry {
        Entry(self.0 & !ACCESSED)
    }

    /// This entry, for reading only.
    pub fn read_only(self) -> Entry {
        Entry(self.0 & !WRITABLE)
    }

    /// This entry, with the marks of use of `other` added.
    pub fn with_use_of(self, other: Entry) -> Entry {
        Entry(self.0 | other.0 & (ACCESSED | DIRTY))
    }

    /// This entry, marked as used by the kernel on behalf of a program.
    pub fn used(self, is_write: bool) -> Entry {
        Entry(self.0 | ACCESSED | if is_write { DIRTY } else { 0 })
    }
}

/// The kernel's half.
pub struct KernelTable {
    root: &'static mut Table,
}

unsafe extern "C" {
    static kernel_text: u8;
    static kernel_constants: u8;
    static kernel_variables: u8;
    static kernel_end: u8;
    static kernel_stack_guard: u8;
}

/// The first physical address behind the kernel's image that begins a large page.
pub(super) fn image_end() -> u64 {
    let end = &raw const kernel_end as u64;
    (end - KERNEL_BASE).next_multiple_of(LARGE_BYTES)
}

impl KernelTable {
    /// Makes the table and uses it. Memory ends at `memory_end`.
    pub(super) fn build(memory_end: u64) -> KernelTable {
        let mut table = KernelTable {
            root: Table::allocate(),
        };
        for address in (image_end()..memory_end).step_by(LARGE_BYTES as usize) {
            let entry = address | PRESENT | WRITABLE | NO_EXECUTE;
            table.map_large(direct(address), entry);
        }
        for area in DEVICE_AREAS {
            let entry = area | PRESENT | WRITABLE | NO_EXECUTE | UNCACHED;
            table.map_large(DEVICES + area, entry);
        }
        let bounds = [
            &raw const kernel_text as u64,
            &raw const kernel_constants as u64,
            &raw const kernel_variables as u64,
            &raw const kernel_end as u64,
        ];
        let rights = [0, NO_EXECUTE, NO_EXECUTE | WRITABLE];
        for (part, rights) in bounds.windows(2).zip(rights) {
            table.map_image(part[0]..part[1], rights);
        }
        // Each program's table takes over these entries: what they lead to must be there by now.
        // SAFETY: the new table maps the image, the stack and the heap as the old one does.
        unsafe { processor::set_root(table.root.physical()) };
        table
    }

    /// Uses no program's table.
    pub fn activate(&self) {
        // SAFETY: it maps the kernel, and is never freed.
        unsafe { processor::set_root(self.root.physical()) };
    }

    fn map_image(&mut self, addresses: Range<u64>, rights: u64) {
        let guard = &raw const kernel_stack_guard as u64;
        let pages = addresses.step_by(PAGE_BYTES);
        for address in pages.filter(|&address| address != guard) {
            let lowest = descend(self.root, address, 1, 0);
            lowest.0[index(address, 0)] = (address - KERNEL_BASE) | PRESENT | rights;
        }
    }

    fn map_large(&mut self, address: u64, entry: u64) {
        let above = descend(self.root, address, 2, 0);
        above.0[index(address, 1)] = entry | LARGE;
    }
}

/// The place of `address` in a table of `level`, counted from the lowest.
fn index(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * level)) as usize % ENTRIES
}

/// Goes down from the root to the table below `levels_above` others, making what is missing.
fn descend(root: &mut Table, address: u64, stop: u32, rights: u64) -> &mut Table {
    let mut table = root;
    for level in (stop..4).rev() {
        let entry = &mut table.0[index(address, level)];
        if *entry & PRESENT == 0 {
            *entry = Table::allocate().physical() | PRESENT | WRITABLE | rights;
        }
        // SAFETY: entries above the lowest lead to tables allocated here, and the borrow of the
        // root keeps others away.
        table = unsafe { table_at(*entry) };
    }
    table
}

/// The table of one program, and the pages of the kernel's heap that it was given for good.
pub struct UserTable {
    root: &'static mut Table,
    pinned: BTreeMap<u64, Box<Page>>,
}

impl UserTable {
    /// A table that maps the kernel, and nothing for the program.
    pub fn new(kernel: &KernelTable) -> UserTable {
        let root = Table::allocate();
        root.0[ENTRIES / 2..].copy_from_slice(&kernel.root.0[ENTRIES / 2..]);
        UserTable {
            root,
            pinned: BTreeMap::new(),
        }
    }

    /// Uses this table, if it is not in use already. Answers whether it was not.
    pub fn activate(&self) -> bool {
        let root = self.root.physical();
        if processor::root() == root {
            return false;
        }
        // SAFETY: it maps the kernel as every table does; `drop` sees to it that it is not in use.
        unsafe { processor::set_root(root) };
        true
    }

    /// Returns true if this table is in use.
    pub fn is_active(&self) -> bool {
        processor::root() == self.root.physical()
    }

    /// The entry of `page`, a number of a page in the lower half.
    pub fn entry(&self, page: u64) -> Entry {
        let address = page * PAGE_BYTES as u64;
        let mut table: &Table = self.root;
        for level in (1..4).rev() {
            let entry = table.0[index(address, level)];
            if entry & PRESENT == 0 {
                return Entry::NONE;
            }
            // SAFETY: entries above the lowest lead to tables allocated here, which only this
            // value changes.
            table = unsafe { table_at(entry) };
        }
        Entry(table.0[index(address, 0)])
    }

    /// Sets the entry of `page`.
    pub fn set_entry(&mut self, page: u64, entry: Entry) {
        let lowest = self.lowest_of(page);
        lowest.0[index(page * PAGE_BYTES as u64, 0)] = entry.0;
    }

    /// Makes the tables in which the entry of `page` will stand.
    pub fn prepare(&mut self, page: u64) {
        self.lowest_of(page);
    }

    fn lowest_of(&mut self, page: u64) -> &mut Table {
        let address = page * PAGE_BYTES as u64;
        assert!(address < USER_END);
        descend(self.root, address, 1, USER)
    }

    /// Maps a page of the kernel's heap at `page`, for as long as the table lives.
    pub fn pin(&mut self, page: u64, memory: Box<Page>, allow: Allow) {
        let entry = Entry(memory.physical() | Entry::allowing(allow));
        self.set_entry(page, entry);
        self.pinned.insert(page, memory);
    }

    /// Returns true if a pinned page is mapped at `page`.
    pub fn is_pinned(&self, page: u64) -> bool {
        self.pinned.contains_key(&page)
    }

    /// The pinned page that is mapped at `page`.
    pub fn pinned_at(&mut self, page: u64) -> Option<&mut [u8; PAGE_BYTES]> {
        self.pinned.get_mut(&page).map(|memory| &mut memory.0)
    }
}

impl Drop for UserTable {
    fn drop(&mut self) {
        assert!(!self.is_active(), "a table in use is dropped");
        // SAFETY: nothing leads to the tables of the lower half but this one, which ends.
        unsafe { free_below(&mut self.root.0[..ENTRIES / 2], 3) };
        // SAFETY: the root was allocated by `Table::allocate`, and is not used any more.
        drop(unsafe { Box::from_raw(core::ptr::from_mut(self.root)) });
    }
}

/// Frees the tables to which `entries` of a table of `level` lead.
///
/// # Safety
/// They were allocated here, and nothing else leads to them.
unsafe fn free_below(entries: &mut [u64], level: u32) {
    for entry in entries.iter().filter(|&&entry| entry & PRESENT != 0) {
        // SAFETY: the caller's promise.
        let table = unsafe { table_at(*entry) };
        if level > 1 {
            // SAFETY: as above, one level down.
            unsafe { free_below(&mut table.0, level - 1) };
        }
        // SAFETY: as above; it was a box.
        drop(unsafe { Box::from_raw(core::ptr::from_mut(table)) });
    }
}

/// Has the processor forget what it knew of `page` in the table in use.
pub fn forget_page(page: u64) {
    processor::invalidate(page * PAGE_BYTES as u64);
}

/// Has the processor forget all it knew of the lower half.
pub fn forget_all() {
    // SAFETY: the table stays the same.
    unsafe { processor::set_root(processor::root()) };
}
