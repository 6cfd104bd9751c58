//! Events: all that happens between the references of a trace.
//!
//! An event is about the mappings of a process, about the life of its threads and programs, about
//! files that system calls read and write, or about the trace itself. Those who follow mappings, or
//! lives, match that part alone.

use crate::model::{Block, Flaw, Rights};
use crate::regions::{HEAP, STACK};

const INNER: &str = "[inner]";
const HEAP_PIECE: &str = "[heap piece]";

/// An event between references. Ranges are in pages of the header's size, threads in numbers
/// of their own that begin anew in each process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The mappings of the process change.
    Mapping(MappingEvent),
    /// The process, its program or one of its threads begins, waits or ends.
    Life(LifeEvent),
    /// A system call reads or changes a file.
    File(FileEvent),
    /// The program or its user names the phase that begins here.
    Mark {
        /// The name.
        name: String,
    },
    /// The windows of this process are so long from now on, that which goes on included:
    /// [`Granularity::Window`](crate::model::Granularity::Window) tells how long they are at first.
    Windows {
        /// The length of a window in nanoseconds of processor time.
        ns: u64,
    },
    /// A visit begins: all pages of the records up to the process's next such event are wanted at
    /// once, in no order, and each once. In traces of caches, where a page is an object.
    Visit,
    /// The size of an object of a cache, in bytes. Comes before its first record, once.
    Size {
        /// The page that stands for the object.
        page: u64,
        /// Its size in bytes, 1 at least.
        bytes: u64,
    },
}

/// A change of the mappings of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MappingEvent {
    /// A range is mapped.
    Map {
        /// Its first page.
        start: u64,
        /// Its length in pages.
        pages: u64,
        /// The rights of the mapping.
        rights: Rights,
        /// True if stores reach the file, or other processes.
        is_shared: bool,
        /// The memory that it shows.
        memory: Memory,
        /// The offset in the file at which it begins, in bytes.
        offset: u64,
    },
    /// A range is unmapped.
    Unmap {
        /// Its first page.
        start: u64,
        /// Its length in pages.
        pages: u64,
    },
    /// A range moves, and may change its length.
    Remap {
        /// Its first page before.
        from: u64,
        /// Its length before, in pages.
        from_pages: u64,
        /// Its first page now.
        to: u64,
        /// Its length now, in pages.
        to_pages: u64,
    },
    /// A range gets other rights.
    Protect {
        /// Its first page.
        start: u64,
        /// Its length in pages.
        pages: u64,
        /// The new rights of the mapping.
        rights: Rights,
    },
    /// The heap ends elsewhere.
    Break {
        /// The first page behind the heap.
        end: u64,
    },
    /// A stack grew down.
    StackGrowth {
        /// The first of the new pages.
        start: u64,
        /// The number of pages.
        pages: u64,
    },
}

/// The memory that a mapping shows.
///
/// In a trace file it is a name: that of a file, the kernel's in brackets, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Memory of no file, which the program maps by itself.
    Anonymous,
    /// Memory of no file that a library maps for itself, as `malloc` does by the C library's own
    /// `mmap`: interposed functions do not see that.
    Inner,
    /// The heap that ends at the program's break.
    Heap,
    /// A mapping that the C library makes in place of more heap. Where recordings are made a heap
    /// may grow to 8 MiB (Valgrind's `brk`), and a live one goes on.
    HeapPiece,
    /// The first thread's stack.
    Stack,
    /// Other memory with a name in brackets in the kernel's list of mappings, such as `[vdso]`.
    Special(String),
    /// A file, by its path.
    File(String),
}

impl Memory {
    /// The name that it has in a trace file.
    pub fn name(&self) -> &str {
        match self {
            Memory::Anonymous => "",
            Memory::Inner => INNER,
            Memory::Heap => HEAP,
            Memory::HeapPiece => HEAP_PIECE,
            Memory::Stack => STACK,
            Memory::Special(name) | Memory::File(name) => name,
        }
    }

    /// The path of the file that is mapped; `None` for other memory.
    pub fn file(&self) -> Option<&str> {
        match self {
            Memory::File(path) => Some(path),
            _ => None,
        }
    }
}

impl From<String> for Memory {
    fn from(name: String) -> Memory {
        match name.as_str() {
            "" => Memory::Anonymous,
            INNER => Memory::Inner,
            HEAP => Memory::Heap,
            HEAP_PIECE => Memory::HeapPiece,
            STACK => Memory::Stack,
            _ if name.starts_with('[') => Memory::Special(name),
            _ => Memory::File(name),
        }
    }
}

impl From<&str> for Memory {
    fn from(name: &str) -> Memory {
        Memory::from(name.to_owned())
    }
}

/// A change in the life of a process or of one of its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifeEvent {
    /// A process begins.
    Start {
        /// Its number in the system.
        pid: u32,
        /// Its parent's number in the system; 0 if that is not in the trace.
        parent: u32,
        /// The path of its program.
        program: String,
    },
    /// A thread begins.
    ThreadStart {
        /// Its number.
        thread: u32,
    },
    /// A thread ends.
    ThreadExit {
        /// Its number.
        thread: u32,
    },
    /// The records that follow are this thread's.
    ThreadSwitch {
        /// Its number.
        thread: u32,
    },
    /// The process forked.
    Fork {
        /// The child's number in the system.
        child: u32,
    },
    /// The process runs another program from here on; its mappings are gone.
    Exec {
        /// The path of the program.
        program: String,
    },
    /// The process waited for the world: think time.
    Wait {
        /// The number of the system call it waited in.
        call: u32,
        /// For how long, in nanoseconds.
        ns: u64,
    },
    /// The process ended by itself.
    Exit {
        /// Its exit status.
        status: u32,
    },
    /// The process was ended by a signal.
    Killed {
        /// The signal's number.
        signal: u32,
    },
}

/// A system call that reads or changes a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEvent {
    /// System calls gave the process bytes of a file: through the system's cache of files, not
    /// through a mapping. Calls that go on where the one before ended may be one event.
    Read {
        /// The file, by its path.
        file: String,
        /// The offset in the file at which the bytes begin.
        offset: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// System calls put bytes of the process into a file, in the same way.
    Write {
        /// The file, by its path.
        file: String,
        /// The offset in the file at which the bytes begin.
        offset: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// A file was cut to a length; to 0 also where its last name was removed.
    Cut {
        /// The file, by its path.
        file: String,
        /// Its length now, in bytes.
        bytes: u64,
    },
}

/// Bytes of a file that system calls copied: what [`FileEvent::Read`] and [`FileEvent::Write`]
/// tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied<'a> {
    /// The file.
    pub file: &'a str,
    /// The offset in the file at which the bytes begin.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// True if they went to the file.
    pub is_write: bool,
}

impl FileEvent {
    /// The file, the offset in it of what was copied if the event copies, and the bytes.
    pub fn parts(&self) -> (&str, Option<u64>, u64) {
        match self {
            FileEvent::Read {
                file,
                offset,
                bytes,
            }
            | FileEvent::Write {
                file,
                offset,
                bytes,
            } => (file, Some(*offset), *bytes),
            FileEvent::Cut { file, bytes } => (file, None, *bytes),
        }
    }
}

impl Event {
    /// Returns true if the memory of the process's program ends with it: the process is over, or
    /// runs another program.
    pub fn ends_program(&self) -> bool {
        matches!(
            self,
            Event::Life(LifeEvent::Exec { .. } | LifeEvent::Exit { .. } | LifeEvent::Killed { .. })
        )
    }

    /// The bytes of a file that it is about, if any.
    pub fn copied(&self) -> Option<Copied<'_>> {
        let Event::File(event) = self else {
            return None;
        };
        let (file, offset, bytes) = event.parts();
        Some(Copied {
            file,
            offset: offset?,
            bytes,
            is_write: matches!(event, FileEvent::Write { .. }),
        })
    }

    /// The event's own share of [`Block::check`]; `event` is its place in the block.
    pub(crate) fn check(&self, event: usize) -> Result<(), Flaw> {
        if self.text().len() > Block::TEXT_BYTES_MAX {
            return Err(Flaw::TextTooLong { event });
        }
        let is_bounded = |(start, length): (u64, u64)| start.checked_add(length).is_some();
        if !self.ranges().into_iter().all(is_bounded) || self.rights().0 > Rights::ALL.0 {
            return Err(Flaw::RangeTooLarge { event });
        }
        Ok(())
    }

    /// The text that it has, or none.
    fn text(&self) -> &str {
        match self {
            Event::Life(LifeEvent::Start { program, .. } | LifeEvent::Exec { program }) => program,
            Event::Mark { name } => name,
            Event::Mapping(MappingEvent::Map { memory, .. }) => memory.name(),
            Event::File(
                FileEvent::Read { file, .. }
                | FileEvent::Write { file, .. }
                | FileEvent::Cut { file, .. },
            ) => file,
            _ => "",
        }
    }

    /// The ranges that it is about, each with its length; an empty one in place of none.
    fn ranges(&self) -> [(u64, u64); 2] {
        match self {
            Event::Mapping(event) => event.ranges(),
            Event::File(
                FileEvent::Read { offset, bytes, .. } | FileEvent::Write { offset, bytes, .. },
            ) => [(*offset, *bytes), (0, 0)],
            _ => [(0, 0); 2],
        }
    }

    /// The rights that it gives, or none.
    fn rights(&self) -> Rights {
        match self {
            Event::Mapping(
                MappingEvent::Map { rights, .. } | MappingEvent::Protect { rights, .. },
            ) => *rights,
            _ => Rights::default(),
        }
    }
}

impl MappingEvent {
    fn ranges(&self) -> [(u64, u64); 2] {
        match *self {
            MappingEvent::Map { start, pages, .. }
            | MappingEvent::Unmap { start, pages }
            | MappingEvent::Protect { start, pages, .. }
            | MappingEvent::StackGrowth { start, pages } => [(start, pages), (0, 0)],
            MappingEvent::Remap {
                from,
                from_pages,
                to,
                to_pages,
            } => [(from, from_pages), (to, to_pages)],
            MappingEvent::Break { .. } => [(0, 0); 2],
        }
    }
}
