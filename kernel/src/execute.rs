//! Making a process run a program of the volume.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tidemark_core::event::Access;
use tidemark_core::id::{ObjectId, PAGE_BYTES, PagerId, SpaceId, VirtPage};
use tidemark_core::memory::address_space::MapError;
use tidemark_core::seams::machine::Rights;

use crate::arch::paging::{Allow, Page};
use crate::arch::panic::Ending;
use crate::arch::trap::Registers;
use crate::arch::{Purpose, has_room};
use crate::kernel::{FIRST, Kernel, Served};
use crate::parameters::Programs;
use crate::process::{Process, ProcessId};
use crate::program::{self, Program, STACK_END, STACK_PAGES, Unfit};
use crate::say;
use crate::store::Unread;
use crate::volume;

/// The most pages of a file: each has as much room in the space in which they are kept.
const FILE_PAGES_MAX: u64 = 1 << 20;
const NO_ROOM: &str = "finds no room in the kernel's memory";
/// The status of a process whose program can't be run.
const NO_PROGRAM: u8 = 127;

impl Kernel {
    /// Has the process run the program it is to execute. It may have to wait for the first page of
    /// the file; then this is done again when that has come.
    pub(crate) fn execute(&mut self, id: ProcessId) {
        let process = &self.processes[&id];
        let arguments = process
            .to_execute
            .clone()
            .expect("there is something to execute");
        let name = volume::shown(&arguments[0]);
        if !has_room(Purpose::Call) {
            return self.refuse(id, &name, NO_ROOM);
        }
        let Some(file) = self.store.volume().find(&arguments[0]) else {
            return self.refuse(id, &name, "is not on the volume");
        };
        let bytes = self.store.volume()[file].bytes();
        let made = match self.programs {
            Programs::Paged => {
                let Some(program) = self.read_header(id, file) else {
                    return;
                };
                let program = match &program {
                    Some(page) => program::parse(page, bytes),
                    None => Err(Unfit::NoExecutable),
                };
                program.and_then(|program| Ok((self.map_paged(file, &program)?, program.entry)))
            }
            Programs::Pinned => {
                let contents = match self.store.read_file_now(file) {
                    Ok(contents) => contents,
                    Err(Unread::Disk) => return self.refuse(id, &name, "can't be read"),
                    Err(Unread::Room) => return self.refuse(id, &name, NO_ROOM),
                };
                let program = program::parse(&contents[..contents.len().min(4096)], bytes);
                let mapped = program.map(|program| (self.map_pinned(&contents, &program), program));
                match mapped {
                    Err(unfit) => Err(unfit),
                    Ok((Some(space), program)) => Ok((space, program.entry)),
                    Ok((None, _)) => return self.refuse(id, &name, NO_ROOM),
                }
            }
        };
        match made {
            Ok((space, entry)) => self.begin(id, name, arguments, space, entry),
            Err(unfit) => {
                let why = format!("is no program that this kernel runs: {unfit}");
                self.refuse(id, &name, &why);
            }
        }
    }

    /// The object of a file, which is kept once it was used; `None` if the file is empty or too
    /// large.
    pub(crate) fn object_of(&mut self, file: usize) -> Option<ObjectId> {
        if let Some(&object) = self.objects.get(&file) {
            return Some(object);
        }
        let pages = self.store.volume()[file].bytes().div_ceil(PAGE_BYTES);
        if pages == 0 || pages > FILE_PAGES_MAX {
            return None;
        }
        let kept = self
            .vm
            .keep_external(self.kept, window_of(file), pages, PagerId(file as u32));
        let object = kept.expect("each file has a window of its own");
        self.objects.insert(file, object);
        Some(object)
    }

    /// A copy of a page of a file. `None`: the process waits for it. `Some(None)`: there is none.
    pub(crate) fn read_page(
        &mut self,
        id: ProcessId,
        file: usize,
        index: u64,
    ) -> Option<Option<Vec<u8>>> {
        if self.object_of(file).is_none() {
            return Some(None);
        }
        let at = window_of(file).plus(index);
        loop {
            if let Some(frame) = self.vm.readable_frame_at(self.kept, at) {
                return Some(Some(self.machine.frames().bytes(frame).to_vec()));
            }
            match self.serve(id, self.kept, at, Access::Read) {
                Served::Now(_) => {}
                Served::Later => return None,
                Served::Invalid => return Some(None),
            }
        }
    }

    fn read_header(&mut self, id: ProcessId, file: usize) -> Option<Option<Vec<u8>>> {
        self.read_page(id, file, 0)
    }

    fn refuse(&mut self, id: ProcessId, name: &str, why: &str) {
        say!("kernel: `{name}` {why}");
        let is_first = id == FIRST && self.processes[&id].name.is_empty();
        self.end_process(id, NO_PROGRAM);
        if is_first {
            // No program has begun: that is no failure of one.
            self.ending = Some(Ending::Refused);
        }
    }

    /// A space with the program in it, each page of which comes when it is touched.
    fn map_paged(&mut self, file: usize, program: &Program) -> Result<SpaceId, Unfit> {
        let object = self.object_of(file).ok_or(Unfit::NoExecutable)?;
        let space = self.create_space();
        match self.map_segments(space, object, program) {
            Ok(()) => Ok(space),
            Err(_) => {
                self.destroy_space(space);
                Err(Unfit::Unmappable)
            }
        }
    }

    fn map_segments(
        &mut self,
        space: SpaceId,
        object: ObjectId,
        program: &Program,
    ) -> Result<(), MapError> {
        for segment in &program.segments {
            let (at, pages, first) = (segment.at, segment.file_pages, segment.file_first);
            if segment.is_text {
                self.machine.add_text(space, at.0..at.0 + segment.pages);
            }
            match (pages, segment.rights) {
                (0, _) => {}
                (_, Rights::Write) => {
                    self.vm
                        .map_private(space, at, pages, object, first, Rights::Write)?;
                }
                (_, rights) => self
                    .vm
                    .map_object(space, at, pages, object, first, rights)?,
            }
            let rest = segment.pages - pages;
            if rest > 0 {
                self.vm
                    .map_anonymous(space, at.plus(pages), rest, segment.rights)?;
            }
        }
        let stack = VirtPage(STACK_END.0 - STACK_PAGES);
        self.vm
            .map_anonymous(space, stack, STACK_PAGES, Rights::Write)
    }

    /// A space with the program in it, in memory of the kernel's; `None` if that has no room.
    fn map_pinned(&mut self, contents: &[u8], program: &Program) -> Option<SpaceId> {
        let space = self.create_space();
        for segment in &program.segments {
            let allow = match (segment.rights, segment.is_text) {
                (Rights::Write, _) => Allow::Write,
                (_, true) => Allow::Execute,
                (_, false) => Allow::Read,
            };
            for number in 0..segment.pages {
                if !has_room(Purpose::Call) {
                    self.destroy_space(space);
                    return None;
                }
                let mut page = Page::zeroed();
                if number < segment.file_pages {
                    let from = ((segment.file_first + number) * PAGE_BYTES) as usize;
                    let bytes = &contents[from..contents.len().min(from + PAGE_BYTES as usize)];
                    page.0[..bytes.len()].copy_from_slice(bytes);
                }
                self.machine
                    .pin(space, segment.at.plus(number), page, allow);
            }
        }
        for number in 1..=STACK_PAGES {
            let at = VirtPage(STACK_END.0 - number);
            self.machine.pin(space, at, Page::zeroed(), Allow::Write);
        }
        Some(space)
    }

    /// Puts the process into its new space, and ends the old one.
    fn begin(
        &mut self,
        id: ProcessId,
        name: String,
        arguments: Vec<Vec<u8>>,
        space: SpaceId,
        entry: u64,
    ) {
        let Some(process) = self.processes.get_mut(&id) else {
            return self.destroy_space(space);
        };
        let old = process.space;
        *process = Process {
            name,
            arguments,
            files: core::mem::take(&mut process.files),
            ended: core::mem::take(&mut process.ended),
            ran_ns: process.ran_ns,
            registers: Registers {
                rip: entry,
                // As behind a call: functions find the stack aligned so.
                rsp: STACK_END.0 * PAGE_BYTES - 8,
                ..Registers::default()
            },
            ..Process::new(process.parent, space)
        };
        self.destroy_space(old);
    }
}

/// The place at which the pages of a file are kept.
pub(crate) fn window_of(file: usize) -> VirtPage {
    VirtPage(file as u64 * FILE_PAGES_MAX)
}
