//! Management: a program, with engines in its processes, from its start to its end.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tidemark_core::id::PAGE_BYTES;
use tidemark_core::load::registry::Entry;
use tidemark_live::shared::Shared;
use tidemark_live::{control, disk};
use tidemark_partition::Divider;
pub use tidemark_partition::Rule;
use tidemark_results::{Refusal, refuse};

use crate::folder::PrivateFolder;
use crate::jobs::JobServer;
use crate::program::plain;
use crate::requests::{Door, Requests};
use crate::supervise::{End, Start, ending_of, supervise};
use crate::swap::Swap;
use crate::time::now_ns;
use crate::timeline::Timeline;
use crate::tree::{Books, Settings, Tree};
use crate::{hand_over, loading};

/// The least memory a run can have. A process has up to 64 pages on their way in and as many on
/// their way out; with a shell and a few tools at a time, less than this leaves none to work with.
pub const MEMORY_BYTES_MIN: u64 = 4 << 20;

/// The time that what has ended may take to give back its filter of system calls.
const LEAVING_LIMIT: Duration = Duration::from_secs(1);

/// The address space that the pool of `--malloc pool` takes in step: always as much, since what an
/// allocator does depends on it.
pub const STEP_POOL_BYTES: u64 = 4 << 30;

/// The means to manage a program.
#[derive(Debug)]
pub struct Management {
    /// The memory all processes may use together.
    pub memory_bytes: u64,
    /// The most that this can be changed to while the run lasts.
    pub memory_bytes_max: u64,
    /// The name of the replacement policy.
    pub policy: String,
    /// The store of pages that leave.
    pub store: String,
    /// The places where requests are taken, beside the socket in the run's folder.
    pub doors: Vec<Door>,
    /// The swap file.
    pub swap: Swap,
    /// The file to which decisions are written.
    pub decisions: Option<OwnedFd>,
    /// The file to which the timeline is written.
    pub timeline: Option<OwnedFd>,
    /// The way in which memory is divided.
    pub divider: Divider,
    /// The load control.
    pub load_control: &'static Entry,
    /// The most jobs that a job server is to offer; `None` if there is to be none.
    pub jobs: Option<u32>,
    /// True if faults are served in user mode alone, and system calls are held up for it.
    pub holds_calls: bool,
    /// The reason for which tasks can't be suspended, if there is one.
    pub unsuspendable: Option<&'static str>,
    /// The variables that tell engines what to do.
    pub environment: Vec<(&'static str, OsString)>,
    /// The libraries loaded into programs, the first one first.
    pub libraries: Vec<PathBuf>,
    /// True if programs find them through folders by platform. Not in step: what is in their
    /// environment is to be the same as in a recording.
    pub is_spread: bool,
    /// The policy's module, if it is one.
    pub module: Option<&'static [u8]>,
}

impl Management {
    /// Runs `command` with engines in its processes, and hands over what outlives it.
    pub fn run(self, mut command: Command) -> Result<(End, Books), Refusal> {
        let swap_notes = self.swap.notes();
        let holds_calls = self.holds_calls;
        let (mut tree, folder) = self.start(&mut command)?;
        let start = match holds_calls {
            true => Start::Listening,
            false => Start::Plain,
        };
        let end = supervise(command, start, Some(&mut tree))?;
        let mut books = tree.finish(ending_of(end.status));
        books.notes.splice(0..0, swap_notes);
        if end.status.core_dumped() && books.total.page_outs > 0 {
            books.notes.push(
                "the core dump lacks what was out of memory: with memory for all of the \
                 program it is whole"
                    .into(),
            );
        }
        if books.processes.is_empty() {
            books
                .notes
                .push("the program did not load the engine and ran unmanaged".into());
        }
        if !tree.is_needed_after(LEAVING_LIMIT) {
            tree.close();
            return Ok((end, books));
        }
        books.is_handed_over = true;
        if let Err(error) = hand_over::hand_over(tree, folder) {
            books.notes.push(format!(
                "the processes that outlive the program have no supervisor: {error}"
            ));
        }
        Ok((end, books))
    }

    /// Opens shop: makes the shared memory and the socket, and tells `command` where they are.
    /// The folder must be kept as long as processes are to find the socket.
    fn start(self, command: &mut Command) -> Result<(Tree, PrivateFolder), Refusal> {
        let slots = (self.swap.size_bytes / PAGE_BYTES).min(u64::from(u32::MAX)) as u32;
        let shared = match Shared::create(slots, self.memory_bytes / PAGE_BYTES) {
            Ok(shared) => shared,
            Err(error) => refuse!("shared memory can't be made: {}", plain(&error)),
        };
        shared.set_frames_max(self.memory_bytes_max / PAGE_BYTES);
        shared.set_disk_processor(disk::processor_of(&self.swap.file));
        let folder = PrivateFolder::new()?;
        let (listener, socket) = folder.listen()?;
        let mut requests = Requests::default();
        requests.add(Door::at(folder.listen_for_requests()?))?;
        self.doors
            .into_iter()
            .try_for_each(|door| requests.add(door))?;
        let others = std::env::var_os("LD_PRELOAD");
        let libraries = match self.is_spread {
            true => loading::list(&folder, &self.libraries, others),
            false => loading::join(&self.libraries, others),
        };
        command
            .env_remove(control::POOL)
            .env_remove(control::IN_STEP)
            .env_remove(control::POLICY_FILE)
            .env_remove(control::LOCKS)
            .env_remove(control::FILES)
            .env_remove(control::FILES_WRITE)
            .env_remove(control::PLAIN_SWAP)
            .env_remove(control::CALLS)
            .envs(self.environment)
            .env(control::CONTROL, socket)
            .env("LD_PRELOAD", libraries);
        if let Some(module) = self.module {
            // Where the program finds it from any folder, as it is now.
            command.env(control::POLICY_FILE, folder.put("policy.wasm", module)?);
        }
        let jobs = self.jobs.map(|most| JobServer::begin(&folder, most));
        let jobs = jobs.transpose()?;
        if let Some(jobs) = &jobs {
            jobs.tell(command);
        }
        let mut tree = Tree::new(shared, self.swap.file, self.decisions, listener);
        let began_ns = now_ns();
        let settings = Settings {
            policy: self.policy,
            store: self.store,
            began_ns,
            load_control: self.load_control.description.name,
            unsuspendable: self.unsuspendable,
        };
        let timeline = self.timeline.map(|file| Timeline::begin(file, began_ns));
        tree.keep_timeline(timeline.transpose()?);
        tree.take_requests(requests, settings);
        tree.control_load_by(self.load_control);
        tree.offer_jobs(jobs);
        tree.divide_by(self.divider);
        Ok((tree, folder))
    }
}
