//! The messages between an engine and the supervisor: environment variables and one small exchange.
//!
//! The supervisor listens on a Unix stream socket and names it in [`CONTROL`]. An engine connects,
//! sends a [`Hello`], and gets a [`Grant`] with the run's files attached. After that the two speak
//! through [`shared`](crate::shared) memory; the connection stays open so that the supervisor sees
//! its end when the process ends (or calls exec: the program that follows says hello by itself),
//! and so that a byte sent down it wakes the other side.
//!
//! If the supervisor ends, the engines continue with the budgets they have.
//!
//! Every message has a fixed length, and integers are little endian.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg,
    sendmsg, socket_with,
};

use crate::shared::ProcessIndex;
use crate::sys::calls::{CALL_BYTES, Call};
use crate::sys::folders;

/// The path of the supervisor's socket. Without it the engine runs alone: it makes its own
/// shared memory, and needs [`MEMORY`] and [`SWAP_PATH`].
pub const CONTROL: &str = "TIDEMARK_CONTROL";
/// The memory budget in bytes, of the whole run. It sizes the frame pool.
pub const MEMORY: &str = "TIDEMARK_MEMORY_BYTES";
/// The swap file, used only where there is no supervisor to hand it over.
pub const SWAP_PATH: &str = "TIDEMARK_SWAP_PATH";
/// The swap store's size in bytes, used only without a supervisor. 4 GiB if absent.
pub const SWAP_BYTES: &str = "TIDEMARK_SWAP_BYTES";
/// The name of the replacement policy, or of a file with one. The engine's default if absent.
pub const POLICY: &str = "TIDEMARK_POLICY";
/// The path of the module of a [`POLICY`] that is the name of a file, in binary form. The file
/// of that name if absent.
pub const POLICY_FILE: &str = "TIDEMARK_POLICY_FILE";
/// The way faults are served: [`MODE_THREAD`] (the default) or [`MODE_IN_THREAD`].
pub const MODE: &str = "TIDEMARK_MODE";
/// Faults are served by the engine's thread.
pub const MODE_THREAD: &str = "thread";
/// Faults are served by the faulting thread, in its signal handler.
pub const MODE_IN_THREAD: &str = "in-thread";
/// The [store](Store) of pages that leave, by name. Without it: the swap file.
pub const STORE: &str = "TIDEMARK_STORE";
/// If set, what is written to the swap file is not encrypted.
pub const PLAIN_SWAP: &str = "TIDEMARK_PLAIN_SWAP";
/// The pattern of the paths of mapped files that are managed ([`glob`](crate::glob)): empty for all
/// files. Absent: none.
pub const FILES: &str = "TIDEMARK_FILES";
/// If set, shared mappings of these files that are written to are managed as well.
pub const FILES_WRITE: &str = "TIDEMARK_FILES_WRITE";
/// If set, the program waits at each fault until all that follows from it is over, time is counted
/// in faults, and only large mappings are managed: `engine/step.rs`.
pub const IN_STEP: &str = "TIDEMARK_IN_STEP";
/// The address space that the pool of `--malloc pool` takes, in bytes. Read by the library that
/// brings that allocator; absent without it.
pub const POOL: &str = "TIDEMARK_POOL_BYTES";
/// Faults for the store to inject, for tests: `read:N` or `write:N` fails the Nth request.
pub const FAULT: &str = "TIDEMARK_FAULT";
/// The file that decisions are appended to, used only without a supervisor.
pub const DECISIONS: &str = "TIDEMARK_DECISIONS";
/// If set, faults are served in user mode alone, all managed memory lies in one
/// [range](crate::sys::calls::RANGE), and the supervisor sends system calls that need it.
pub const CALLS: &str = "TIDEMARK_CALLS";
/// The length of a window in nanoseconds, if references are to be recorded (`record --live`). The
/// last file of the grant is then not for decisions, but the process's log of references
/// ([`reference_log`](crate::reference_log)).
pub const WINDOW: &str = "TIDEMARK_WINDOW_NS";
/// The most that a window may grow to, in nanoseconds; without it they do not grow.
pub const WINDOW_MOST: &str = "TIDEMARK_WINDOW_MOST_NS";
/// If set, a few pages of each region are sampled, and not all (`record --live --sample regions`).
pub const REGIONS: &str = "TIDEMARK_REGIONS";
/// If set, locks are [measured](crate::meters).
pub const LOCKS: &str = "TIDEMARK_LOCKS";
/// If set, the engine says on the program's standard error what it does at start and end.
pub const VERBOSE: &str = "TIDEMARK_VERBOSE";
/// The file that the counters are written to, as `name value` lines, when the process ends
/// normally. For tests without a supervisor.
pub const COUNTERS: &str = "TIDEMARK_COUNTERS";

/// The file that a program in step writes at its end where its libraries lie, for [`LAYOUT`].
pub const LAYOUT_WANTED: &str = "TIDEMARK_LAYOUT_WANTED";
/// The file that tells the recorder where to put libraries: `recorder/place.c`.
pub const LAYOUT: &str = "TIDEMARK_LAYOUT";

/// The length of a [`Hello`] on the wire.
pub const HELLO_BYTES: usize = 32;
/// The length of a [`Grant`] on the wire.
pub const GRANT_BYTES: usize = 32;

const HELLO_MAGIC: u32 = u32::from_le_bytes(*b"TMhi");
const EXEC_MAGIC: u32 = u32::from_le_bytes(*b"TMex");
/// The byte of an engine, after the hello, that says that it [leaves](leave).
const LEAVES: u8 = 2;
/// The byte that says that a file comes with it.
const SHARES: u8 = 3;
/// The byte that says that a file with a line to write comes with it.
const SAYS: u8 = 4;
/// The byte of the supervisor before a system call that is held up.
const CALL: u8 = 5;
const GRANT_MAGIC: u32 = u32::from_le_bytes(*b"TMgo");
const VERSION: u32 = 1;
const NO_INDEX: u32 = u32::MAX;

/// The store of pages that leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Store {
    /// The swap file.
    File,
    /// Compressed memory inside the budget; there is no file.
    Compressed,
    /// Compressed memory, and the swap file when that is full.
    CompressedAndFile,
}

impl Store {
    /// All stores.
    pub const ALL: [Store; 3] = [Store::File, Store::Compressed, Store::CompressedAndFile];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Store::File => "file",
            Store::Compressed => "compressed",
            Store::CompressedAndFile => "compressed+file",
        }
    }

    /// The store that has this name.
    pub fn find(name: &str) -> Option<Store> {
        Store::ALL.into_iter().find(|store| store.name() == name)
    }

    /// Returns true if pages are compressed.
    pub fn is_compressed(self) -> bool {
        self != Store::File
    }

    /// Returns true if it has a swap file.
    pub fn has_file(self) -> bool {
        self != Store::Compressed
    }
}

/// The first message of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The process it runs in.
    pub pid: u32,
    /// The parent process.
    pub parent: u32,
    /// A forked child brings the record its parent claimed for it
    /// ([`claim_child`](crate::shared::Shared::claim_child)). A process that starts afresh brings
    /// none: the supervisor claims one.
    pub record: Option<ProcessIndex>,
}

impl Hello {
    /// Writes the message down.
    pub fn to_bytes(self) -> [u8; HELLO_BYTES] {
        let record = self.record.map_or(NO_INDEX, |index| index.0);
        pack([HELLO_MAGIC, VERSION, self.pid, self.parent, record, 0, 0, 0])
    }

    /// Reads a message; `None` if it is not one of this version.
    pub fn from_bytes(bytes: &[u8; HELLO_BYTES]) -> Option<Hello> {
        let [magic, version, pid, parent, record, ..] = unpack(bytes);
        (magic == HELLO_MAGIC && version == VERSION).then_some(Hello {
            pid,
            parent,
            record: (record != NO_INDEX).then_some(ProcessIndex(record)),
        })
    }
}

/// The first message on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// An engine introduces its process.
    Hello(Hello),
    /// A process without an engine is about to execute another program: the connection ends when
    /// it has. Or the child with this number has just executed one.
    Exec {
        /// The child, as its parent calls it; `None`: the process itself.
        child: Option<u32>,
    },
}

/// The answer of the supervisor. With it come, in this order: the shared memory, the swap store,
/// and the decision log if there is one ([`GrantFiles`]). A refusal brings none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The process's record in the shared memory; `None` refuses: the program runs unmanaged.
    pub record: Option<ProcessIndex>,
    /// The number of frames it may use at first. Later budgets come through its record.
    pub frames_budget: u32,
    /// The most frames it may ever be given: the size of its pool.
    pub frames_max: u32,
    /// The number of the namespace of processes that the supervisor is in, if system calls are held
    /// up; zero if they are not.
    pub namespace: u32,
}

impl Grant {
    /// Writes the message down.
    pub fn to_bytes(self) -> [u8; GRANT_BYTES] {
        let record = self.record.map_or(NO_INDEX, |index| index.0);
        pack([
            GRANT_MAGIC,
            VERSION,
            record,
            self.frames_budget,
            self.frames_max,
            self.namespace,
            0,
            0,
        ])
    }

    /// Reads a message; `None` if it is not one of this version.
    pub fn from_bytes(bytes: &[u8; GRANT_BYTES]) -> Option<Grant> {
        let [
            magic,
            version,
            record,
            frames_budget,
            frames_max,
            namespace,
            ..,
        ] = unpack(bytes);
        (magic == GRANT_MAGIC && version == VERSION).then_some(Grant {
            record: (record != NO_INDEX).then_some(ProcessIndex(record)),
            frames_budget,
            frames_max,
            namespace,
        })
    }
}

/// The files that come with a [`Grant`].
#[derive(Debug)]
pub struct GrantFiles {
    /// The shared memory. See [`Shared::open`](crate::shared::Shared::open).
    pub shared: OwnedFd,
    /// The swap store, open for reading and writing.
    pub swap: OwnedFd,
    /// The file to which decisions are logged, open for appending; or where references are
    /// ([`WINDOW`]).
    pub decisions: Option<OwnedFd>,
    /// The listener by which system calls are answered that are held up.
    pub calls: Option<OwnedFd>,
}

/// Connects to the supervisor and introduces this process. What it answers is to be
/// [awaited](await_grant).
pub fn greet(socket: &Path, hello: Hello) -> io::Result<OwnedFd> {
    let connection = open_connection(socket)?;
    introduce(connection.as_fd(), hello)?;
    Ok(connection)
}

/// Introduces the program at a connection that it has opened.
pub fn introduce(connection: BorrowedFd<'_>, hello: Hello) -> io::Result<()> {
    send(connection, &hello.to_bytes(), &[])
}

/// Connects the calling process to the supervisor, to whom the kernel tells its number.
pub fn open_connection(socket: &Path) -> io::Result<OwnedFd> {
    let connection = new_socket()?;
    connect(&connection, &SocketAddrUnix::new(socket)?)?;
    Ok(connection)
}

/// Tells the supervisor of a program that is executed where no engine is to say so: that the
/// calling process is about to, until which the connection is to stay open; or that its `child`
/// has. Allocates nothing.
pub fn announce_exec(socket: &Path, child: Option<u32>) -> io::Result<OwnedFd> {
    let connection = new_socket()?;
    connect(&connection, &SocketAddrUnix::new(socket)?)?;
    let message = pack([EXEC_MAGIC, VERSION, child.unwrap_or(0), 0, 0, 0, 0, 0]);
    send(connection.as_fd(), &message, &[])?;
    Ok(connection)
}

fn new_socket() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC, None)?)
}

/// Blocks until the supervisor answers to a [greeting](greet), or has gone: on a busy machine it
/// may take its time, and a forked child can't do without an answer.
///
/// A refusal is `Ok` with no files.
pub fn await_grant(connection: BorrowedFd<'_>) -> io::Result<(Grant, Option<GrantFiles>)> {
    let mut bytes = [0; GRANT_BYTES];
    let mut files = receive(connection, &mut bytes)?;
    let grant = Grant::from_bytes(&bytes).ok_or(io::ErrorKind::InvalidData)?;
    let calls = match grant.namespace {
        0 => None,
        _ => files.pop(),
    };
    let mut files = files.into_iter();
    let files = match (files.next(), files.next(), files.next()) {
        (Some(shared), Some(swap), decisions) => Some(GrantFiles {
            shared,
            swap,
            decisions,
            calls,
        }),
        _ => None,
    };
    if grant.record.is_some() && files.is_none() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the grant came without files",
        ));
    }
    Ok((grant, files))
}

/// Answers a [`Hello`] that was read from `connection`. Supervisor only.
pub fn answer(
    connection: BorrowedFd<'_>,
    grant: Grant,
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    send(connection, &grant.to_bytes(), files)
}

/// Answers a [`Hello`] with a refusal: the engine leaves its program alone, whether it hears this
/// or not. Supervisor only.
pub fn refuse(connection: BorrowedFd<'_>) {
    let grant = Grant {
        record: None,
        frames_budget: 0,
        frames_max: 0,
        namespace: 0,
    };
    // One that has gone needs no answer.
    let _ = answer(connection, grant, &[]);
}

/// Reads what a fresh connection begins with. Supervisor only. `UnexpectedEof` if the peer left,
/// and `WouldBlock` if the connection does not block and nothing has come.
pub fn read_opening(connection: BorrowedFd<'_>) -> io::Result<Opening> {
    let mut bytes = [0; HELLO_BYTES];
    receive(connection, &mut bytes)?;
    if let [EXEC_MAGIC, VERSION, child, ..] = unpack(&bytes) {
        let child = (child != 0).then_some(child);
        return Ok(Opening::Exec { child });
    }
    let hello = Hello::from_bytes(&bytes);
    Ok(Opening::Hello(hello.ok_or(io::ErrorKind::InvalidData)?))
}

/// Removes the private folder of a run whose supervisor was killed: the one in which `socket` lies,
/// if it has the name of one and no process listens there. Best effort: the next run would do it.
pub fn remove_deserted(socket: &Path) {
    let Some(folder) = socket.parent() else {
        return;
    };
    let name = folder.file_name().and_then(|name| name.to_str());
    let numbers = name.and_then(|name| name.strip_prefix("tidemark-")?.split_once('-'));
    let is_private = numbers.is_some_and(|(maker, _)| maker.parse::<u32>().is_ok());
    let answer = std::os::unix::net::UnixStream::connect(socket);
    let is_deserted = answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_private && is_deserted {
        // Another engine may be quicker.
        let _ = folders::remove(folder);
    }
}

/// Wakes the other end, to look at the process's record now: an engine, whose budget
/// has changed, or the supervisor, which an engine asks for frames or has given some up to. Never
/// blocks.
pub fn poke(connection: BorrowedFd<'_>) -> io::Result<()> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match rustix::net::send(connection, &[1], flags) {
        // A full buffer holds pokes enough to wake it.
        Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sends an engine a system call that is held up. `WouldBlock`: it has too much to read. Never
/// blocks. Supervisor only.
pub fn send_call(connection: BorrowedFd<'_>, call: Call) -> io::Result<()> {
    let mut message = [CALL; 1 + CALL_BYTES];
    message[1..].copy_from_slice(&call.to_bytes());
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match rustix::net::send(connection, &message, flags)? {
        sent if sent == message.len() => Ok(()),
        // The kernel takes so little as a whole or not at all.
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// The words of the supervisor, as they come: pokes and calls.
#[derive(Debug, Default)]
pub struct Words {
    /// The beginning of a call whose end has not come.
    rest: Vec<u8>,
    calls: VecDeque<Call>,
}

impl Words {
    /// Takes in what has been read. Returns true if a poke is among it.
    pub fn take_in(&mut self, mut bytes: &[u8]) -> bool {
        let mut is_poked = false;
        while let Some((&first, others)) = bytes.split_first() {
            if self.rest.is_empty() && first != CALL {
                is_poked = true;
                bytes = others;
                continue;
            }
            let due = (1 + CALL_BYTES - self.rest.len()).min(bytes.len());
            self.rest.extend_from_slice(&bytes[..due]);
            bytes = &bytes[due..];
            if let Ok(call) = <&[u8; CALL_BYTES]>::try_from(&self.rest[1..]) {
                self.calls.push_back(Call::from_bytes(call));
                self.rest.clear();
            }
        }
        is_poked
    }

    /// Takes the first call that has come and was not taken.
    pub fn take_call(&mut self) -> Option<Call> {
        self.calls.pop_front()
    }
}

/// Says that the engine leaves since its program has left its memory, and so may go on without it.
/// Engine only.
pub fn leave(connection: BorrowedFd<'_>) {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    // A supervisor that does not hear it has gone, or ends a program that has ended.
    let _ = rustix::net::send(connection, &[LEAVES], flags);
}

/// Gives the supervisor a reference to the program's userfaultfd: as long as one is there, pages
/// that are missing are waited for, and do not read as zeros. Engine only.
pub fn share_memory(connection: BorrowedFd<'_>, memory: BorrowedFd<'_>) -> io::Result<()> {
    send(connection, &[SHARES], &[memory])
}

/// Has the supervisor write a line for an engine that can't reach its program's standard error:
/// the kernel may protect the program from other processes. Engine only.
pub fn say(connection: BorrowedFd<'_>, line: &[u8]) -> io::Result<()> {
    let file = rustix::fs::memfd_create(c"line", rustix::fs::MemfdFlags::CLOEXEC)?;
    rustix::io::write(&file, line)?;
    send(connection, &[SAYS], &[file.as_fd()])
}

/// Takes in what an engine says after its hello. Supervisor only.
pub fn hear(connection: BorrowedFd<'_>) -> io::Result<Heard> {
    let mut bytes = [0; 64];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let read = recvmsg(
        connection,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut ancillary,
        flags,
    )?;
    let mut heard = Heard {
        is_over: read.bytes == 0,
        leaves: bytes[..read.bytes].contains(&LEAVES),
        memory: None,
        line: None,
    };
    // What comes with a file is not read together with what follows it.
    let is_line = bytes[..read.bytes].contains(&SAYS);
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            match is_line {
                true => heard.line = files.last(),
                false => heard.memory = files.last(),
            }
        }
    }
    Ok(heard)
}

/// The message of an engine after its hello, beside that its record is worth a look.
#[derive(Debug, Default)]
pub struct Heard {
    /// The other end has gone.
    pub is_over: bool,
    /// The engine [leaves](leave).
    pub leaves: bool,
    /// A reference to the program's userfaultfd.
    pub memory: Option<OwnedFd>,
    /// A file with a line that the engine [says](say).
    pub line: Option<OwnedFd>,
}

impl Heard {
    /// The line that the engine says.
    pub fn line(&self) -> Option<String> {
        let mut text = [0; 1024];
        let count = rustix::io::pread(self.line.as_ref()?, &mut text, 0).ok()?;
        Some(String::from_utf8_lossy(&text[..count]).into_owned())
    }
}

fn send(connection: BorrowedFd<'_>, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "too many files in a message",
        ));
    }
    let sent = sendmsg(
        connection,
        &[IoSlice::new(bytes)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    if sent != bytes.len() {
        Err(io::ErrorKind::WriteZero.into())
    } else {
        Ok(())
    }
}

fn receive(connection: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<Vec<OwnedFd>> {
    let mut files = Vec::new();
    let mut filled = 0;
    while filled < bytes.len() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes[filled..])];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let read =
            rustix::io::retry_on_intr(|| recvmsg(connection, &mut parts, &mut ancillary, flags))?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = message {
                files.extend(more);
            }
        }
        if read.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += read.bytes;
    }
    Ok(files)
}

fn pack(words: [u32; 8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn unpack(bytes: &[u8; 32]) -> [u32; 8] {
    std::array::from_fn(|word| {
        let at = word * 4;
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Shared;
    use std::os::unix::net::UnixListener;

    #[test]
    fn messages_survive_the_wire() {
        let hello = Hello {
            pid: 7,
            parent: 3,
            record: None,
        };
        assert_eq!(Hello::from_bytes(&hello.to_bytes()), Some(hello));
        let hello = Hello {
            record: Some(ProcessIndex(4)),
            ..hello
        };
        assert_eq!(Hello::from_bytes(&hello.to_bytes()), Some(hello));
        let grant = Grant {
            record: Some(ProcessIndex(1)),
            frames_budget: 10,
            frames_max: 20,
            namespace: 77,
        };
        assert_eq!(Grant::from_bytes(&grant.to_bytes()), Some(grant));
        assert_eq!(Grant::from_bytes(&hello.to_bytes()), None);
    }

    #[test]
    fn an_engine_is_introduced_and_gets_its_files() {
        let directory =
            std::env::temp_dir().join(format!("tidemark-control-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let supervisor = std::thread::spawn(move || {
            let shared = Shared::create(10, 4).unwrap();
            let swap = std::fs::File::open("/dev/null").unwrap();
            let (connection, _) = listener.accept().unwrap();
            let Opening::Hello(hello) = read_opening(connection.as_fd()).unwrap() else {
                panic!("a program is executed?");
            };
            let record = shared.claim();
            let grant = Grant {
                record,
                frames_budget: 4,
                frames_max: 4,
                namespace: 0,
            };
            answer(connection.as_fd(), grant, &[shared.as_fd(), swap.as_fd()]).unwrap();
            poke(connection.as_fd()).unwrap();
            hello
        });
        let hello = Hello {
            pid: 9,
            parent: 1,
            record: None,
        };
        let connection = greet(&path, hello).unwrap();
        let (grant, files) = await_grant(connection.as_fd()).unwrap();
        assert_eq!(supervisor.join().unwrap(), hello);
        let files = files.unwrap();
        assert_eq!(Shared::open(files.shared).unwrap().swap_slots(), 10);
        assert_eq!((grant.frames_budget, files.decisions.is_some()), (4, false));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn calls_come_whole_whatever_is_read_at_a_time() {
        let call = |thread| Call {
            id: 1 << 40 | u64::from(thread),
            thread,
            number: 7,
            arguments: [u64::from(CALL); 6],
        };
        let (here, there) = std::os::unix::net::UnixStream::pair().unwrap();
        for thread in 1..4 {
            send_call(here.as_fd(), call(thread)).unwrap();
            poke(here.as_fd()).unwrap();
        }
        drop(here);
        let mut sent = Vec::new();
        io::Read::read_to_end(&mut &there, &mut sent).unwrap();
        for step in [1, 3, 64, 65, 66, 67, 200] {
            let mut words = Words::default();
            let poked = sent.chunks(step).filter(|part| words.take_in(part));
            assert!((1..4).contains(&poked.count()));
            let heard: Vec<Call> = std::iter::from_fn(|| words.take_call()).collect();
            assert_eq!(heard, [call(1), call(2), call(3)], "{step} at a time");
        }
    }

    #[test]
    fn a_deserted_folder_goes_and_any_other_stays() {
        let scratch = std::env::temp_dir().join(format!("deserted-{}", std::process::id()));
        let make = |name: &str| {
            let folder = scratch.join(name);
            std::fs::create_dir_all(folder.join("requests")).unwrap();
            let socket = folder.join("control");
            let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
            (socket, listener)
        };
        let (killed, listener) = make("tidemark-1-2");
        // As a killed process leaves it, even if a child of another test has a copy.
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
        let (others, listener) = make("sockets");
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
        let (kept, _listener) = make("tidemark-1-3");
        for socket in [&killed, &others, &kept] {
            remove_deserted(socket);
        }
        let there = [killed, others, kept].map(|socket| socket.parent().unwrap().exists());
        assert_eq!(there, [false, true, true]);
        std::fs::remove_dir_all(&scratch).unwrap();
    }
}
