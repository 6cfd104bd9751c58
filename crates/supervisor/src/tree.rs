//! The tree of managed processes: who is there, what each may use, and what it leaves behind.
//!
//! Every engine holds a connection. It opens with a hello, which is answered as soon as there are
//! frames for the newcomer, and its end is the end of the process, or of the program in it: what
//! exec puts in its place says hello on a connection of its own. A byte in between says that the
//! engine asks for frames, or has given up what was taken from it: see [`tidemark_partition`].
//!
//! What each may use, and which of them run, the [`Steward`] decides: `words` lends it the records
//! in the shared memory, and `actions` carries out what it says.
//!
//! People and programs ask, too, at the [control socket](crate::requests): `orders` carries out
//! what they ask for, and `observation` tells how things stand.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use tidemark_core::time::Time;
use tidemark_live::control::Hello;
use tidemark_live::shared::{self, Counter, Process, ProcessIndex, Shared, State};
use tidemark_live::store::file;
use tidemark_partition::{Divider, INTERVAL_NS};
use tidemark_results::control::Counts;
use tidemark_results::record::Jobs;
use tidemark_results::{Ending, OtherProcesses, ProcessRecord, Statistics};
use tidemark_tasks::{Record, Remains, Steward, TaskId};

pub use self::observation::Settings;
use self::pace::Pace;
pub use self::state::MemberState;
use self::turns::Turns;
use crate::calls::Calls;
use crate::connection::Connection;
use crate::departures::{Departure, is_over};
use crate::ended::EndedProcesses;
use crate::entrance::Entrance;
use crate::jobs::JobServer;
use crate::maps::Maps;
use crate::peers::{self, Peer};
use crate::record;
use crate::requests::Requests;
use crate::strangers::Strangers;
use crate::time::{now_ns, timespec};
use crate::timeline::Timeline;

mod actions;
mod admission;
mod children;
mod jobs;
mod leaving;
mod map;
mod observation;
mod orders;
mod pace;
mod size;
mod state;
mod turns;
mod words;

/// The processes of a run.
pub struct Tree {
    shared: Shared,
    swap: OwnedFd,
    decisions: Option<OwnedFd>,
    /// The system calls that are held up, if any are.
    calls: Option<Calls>,
    entrance: Entrance,
    members: Vec<Member>,
    ended: EndedProcesses,
    strangers: Strangers,
    notes: Vec<String>,
    /// The first process that could not be taken in, why, and the number of them.
    turned_away: Option<(u32, String, u64)>,
    /// Notes of what engines have said on stderr themselves.
    told: Vec<String>,
    /// The processes that were ended because the store was full.
    ended_for_room: u64,
    /// True if a program's changes of a mapped file could not be written.
    files_lost: bool,
    /// Records claimed for children that have not said hello, and since when.
    awaited: Vec<(ProcessIndex, Instant)>,
    /// Processes that are gone and written down, whose engines still use their records.
    late: Vec<(Connection, ProcessIndex)>,
    steward: Steward,
    /// The most memory processes had at one time that was not managed, and that was.
    unmanaged_bytes_peak: u64,
    managed_bytes_peak: u64,
    /// The most memory that engines themselves had at one time.
    engine_bytes_peak: u64,
    requests: Requests,
    settings: Settings,
    turns: Turns,
    jobs: Option<JobServer>,
    timeline: Option<Timeline>,
    /// The counts of processes that have ended.
    counts_ended: Counts,
    maps: Maps,
}

/// A process that is managed, or will be when there are frames for it.
#[derive(Debug)]
struct Member {
    /// Its number with the steward.
    task: TaskId,
    connection: Connection,
    hello: Hello,
    peer: Peer,
    /// Its place in the table; `None` until it has been answered.
    record: Option<ProcessIndex>,
    pace: Pace,
}

/// The totals that a run leaves behind.
#[derive(Debug, Default)]
pub struct Books {
    /// The processes that were managed; of thousands, those that paged most.
    pub processes: Vec<ProcessRecord>,
    /// The other processes that were managed.
    pub others: OtherProcesses,
    /// The sum of all processes.
    pub total: Statistics,
    /// The jobs, if there was a job server.
    pub jobs: Option<Jobs>,
    /// The times for which load control had tasks wait.
    pub suspensions: Vec<tidemark_results::suspension::Suspension>,
    /// The processes that were ended because the store was full.
    pub ended_for_room: u64,
    /// True if a program's changes of a mapped file could not be written.
    pub files_lost: bool,
    /// Remarks that a reader of the numbers may need.
    pub notes: Vec<String>,
    /// Remarks that a reader may need, too, and that have been made on stderr already.
    pub told: Vec<String>,
    /// True if processes outlive the program, and have another supervisor.
    pub is_handed_over: bool,
}

impl Tree {
    /// A tree without processes, whose engines will connect to `listener`.
    pub fn new(
        shared: Shared,
        swap: OwnedFd,
        decisions: Option<OwnedFd>,
        listener: UnixListener,
    ) -> Tree {
        let first_interval = Time(now_ns()).after_ns(INTERVAL_NS);
        Tree {
            shared,
            swap,
            decisions,
            calls: None,
            entrance: Entrance::new(listener),
            members: vec![],
            ended: EndedProcesses::default(),
            strangers: Strangers::new(),
            notes: vec![],
            turned_away: None,
            told: vec![],
            ended_for_room: 0,
            files_lost: false,
            awaited: vec![],
            late: vec![],
            steward: Steward::new(Divider::default(), first_interval),
            unmanaged_bytes_peak: 0,
            managed_bytes_peak: 0,
            engine_bytes_peak: 0,
            requests: Requests::default(),
            settings: Settings::default(),
            turns: Turns::default(),
            jobs: None,
            timeline: None,
            counts_ended: Counts::default(),
            maps: Maps::default(),
        }
    }

    /// The tree that [`hand_over`](Self::hand_over) took apart.
    ///
    /// # Errors
    /// Files are missing or not what they should be.
    pub fn take_over(
        states: Vec<MemberState>,
        files: Vec<OwnedFd>,
        has_decisions: bool,
        has_calls: bool,
    ) -> std::io::Result<Tree> {
        let mut files = files.into_iter();
        let mut next = || files.next().ok_or(std::io::ErrorKind::InvalidData);
        let (listener, shared, swap) = (next()?, next()?, next()?);
        let decisions = if has_decisions { Some(next()?) } else { None };
        let shared = Shared::open(shared)?;
        let calls = if has_calls { Some(next()?) } else { None };
        let mut tree = Tree::new(shared, swap, decisions, UnixListener::from(listener));
        tree.calls = calls.map(Calls::take).transpose()?;
        for state in states {
            let hello = Hello {
                pid: state.pid,
                parent: 0,
                record: state.claimed.map(ProcessIndex),
            };
            let connection = next()?;
            let memory = if state.has_memory {
                Some(next()?)
            } else {
                None
            };
            // The process was taken in before.
            let Some(peer) = peers::find(&connection, |_| true) else {
                continue;
            };
            let connection = Connection::new(connection, memory);
            if let Some(calls) = tree.calls.as_ref().filter(|_| state.record.is_some()) {
                calls.enter(peer.pid, &connection)?;
            }
            let record = state.record.map(ProcessIndex);
            let known = |index: Option<ProcessIndex>| index.map(|index| Record(index.0));
            let (claimed, known) = (known(hello.record), known(record));
            let now = Time(now_ns());
            let task = tree.steward.handle_taken_over(now, claimed, known);
            tree.members.push(Member {
                record,
                ..Member::new(task, connection, hello, peer)
            });
        }
        tree.entrance.resume(files);
        Ok(tree)
    }

    /// Takes the tree apart, for another process to [take over](Self::take_over): what its members
    /// are, and its files: the log comes fourth, if there is one, then the listener to system
    /// calls, and what has said nothing last.
    pub fn hand_over(self) -> std::io::Result<(Vec<MemberState>, Vec<OwnedFd>)> {
        let shared = self.shared.as_fd().try_clone_to_owned()?;
        let (listener, silent) = self.entrance.into_files();
        let mut files = vec![listener, shared, self.swap];
        files.extend(self.decisions);
        files.extend(self.calls.map(Calls::hand_over).transpose()?);
        let states = self.members.iter().map(Member::state).collect();
        for member in self.members {
            let (connection, memory) = member.connection.into_files();
            files.push(connection);
            files.extend(memory);
        }
        files.extend(silent);
        Ok((states, files))
    }

    /// Has memory divided in that way.
    pub fn divide_by(&mut self, divider: Divider) {
        self.steward.divide_by(divider);
    }

    /// The way in which memory is divided.
    pub fn divider(&self) -> Divider {
        self.steward.divider()
    }

    /// Has the system calls served that are held up.
    pub fn serve_calls(&mut self, calls: Calls) {
        self.calls = Some(calls);
    }

    /// Returns true if system calls are held up.
    pub fn has_calls(&self) -> bool {
        self.calls.is_some()
    }

    /// Returns true if a supervisor must stay: processes are managed, or would wait for ever in
    /// their system calls.
    pub fn is_needed(&self) -> bool {
        let has_calls = self.calls.as_ref().is_some_and(|calls| !calls.is_over());
        self.has_members() || has_calls
    }

    /// Returns true if a supervisor must stay once the processes that have ended are gone, for
    /// which it waits for `limit` at most.
    pub fn is_needed_after(&self, limit: Duration) -> bool {
        /// The pause between two looks.
        const PAUSE: Duration = Duration::from_millis(1);
        let end = Instant::now() + limit;
        while !self.has_members() && self.is_needed() && Instant::now() < end {
            // On older kernels a filter goes with the last that is waited for.
            let _ = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
            std::thread::sleep(PAUSE);
        }
        self.is_needed()
    }

    /// Returns true if decisions are logged.
    pub fn has_decisions(&self) -> bool {
        self.decisions.is_some()
    }

    /// Learns the number of the process that was started.
    pub fn begin(&mut self, main: u32) {
        self.strangers.begin(main);
    }

    /// Takes in who has come and lets go of who has ended. `ready` says which of
    /// [`sources`](Self::sources) have something to say.
    fn handle_ready(&mut self, ready: &[bool]) {
        if !ready.contains(&true) {
            return;
        }
        let members = self.members.len();
        let (at_entrance, at_members) = ready.split_at(ready.len() - members);
        // From the last to the first, as one that is removed moves those after it.
        for place in (0..members).rev() {
            if at_members[place] && self.members[place].connection.hear() {
                self.end_abandoned(place);
                self.remove(place, Ending::Gone);
            }
        }
        if self.members.len() < members {
            self.spare_foreground();
        }
        if at_entrance.contains(&true) {
            self.admit_arrivals();
        }
        self.divide();
    }

    /// Does what is due by now.
    pub fn handle_tick(&mut self) {
        if self.requests.due().is_some_and(|due| Instant::now() >= due) {
            self.serve_requests();
        }
        let next_look = self.strangers.next_look();
        if next_look.is_some_and(|due| Instant::now() >= due) {
            self.look_for_strangers();
        }
        let now = Time(now_ns());
        if now < self.steward.poll_deadline() {
            return;
        }
        let is_interval = self.steward.is_interval_over(now);
        if is_interval {
            self.note_levels();
            self.note_timeline();
            self.ended.settle();
            self.find_children();
            self.release_orphans();
            self.release_late();
            self.note_pace();
            self.look_at_jobs();
            self.spare_foreground();
        }
        self.tell_steward(|steward, _, words| steward.handle_tick(now, words));
    }

    /// The time at which [`handle_tick`](Self::handle_tick) has something to do.
    pub fn next_tick(&self) -> Instant {
        let others = [
            self.strangers.next_look(),
            self.requests.due(),
            self.entrance.due(),
        ];
        let others = others.into_iter().flatten();
        let left_ns = self.steward.poll_deadline().0.saturating_sub(now_ns());
        let division = Instant::now() + Duration::from_nanos(left_ns);
        others.fold(division, Instant::min)
    }

    /// Waits until something happens or is due, and handles it.
    pub fn wait(&mut self) {
        let limit = self.next_tick().saturating_duration_since(Instant::now());
        self.poll(None, limit);
        self.handle_tick();
    }

    /// Waits until something happens in the tree or at `other`, for `limit` at most, and handles
    /// what happened in the tree. Says whether anything did.
    pub fn poll(&mut self, other: Option<BorrowedFd<'_>>, limit: Duration) -> bool {
        let sources = self.sources();
        let mut sources: Vec<PollFd<'_>> = sources
            .chain(other.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)))
            .chain(self.jobs.as_ref().map(JobServer::source))
            .chain(self.requests.sources())
            .chain(self.strangers.sources())
            .collect();
        // An interrupted wait is one that ended early.
        let _ = poll(&mut sources, Some(&timespec(limit)));
        let ready: Vec<bool> = sources
            .iter()
            .map(|source| !source.revents().is_empty())
            .collect();
        drop(sources);
        let (ready, others) = ready.split_at(self.sources().count());
        self.handle_ready(ready);
        let others = &others[usize::from(other.is_some())..];
        let (jobs, others) = others.split_at(usize::from(self.jobs.is_some()));
        let (requests, leaving) = others.split_at(self.requests.sources().count());
        self.strangers.hear(leaving);
        if jobs.contains(&true) {
            self.serve_jobs();
        }
        if requests.contains(&true) {
            self.serve_requests();
        }
        ready.contains(&true)
    }

    /// The descriptors to wait for: those of the entrance, then every connection.
    fn sources(&self) -> impl Iterator<Item = PollFd<'_>> {
        let members = self.members.iter().map(|member| member.connection.as_fd());
        let members = members.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        self.entrance.sources().chain(members)
    }

    /// Lets go of everything. What dead engines still hold of the swap file takes no room any more.
    ///
    /// - Needs: no process [is there](Self::has_members).
    pub fn close(self) {
        file::release(&self.swap);
    }

    /// Closes the books. The process that was started has ended as `ending` says.
    pub fn finish(&mut self, ending: Ending) -> Books {
        let now_ns = now_ns();
        self.end_timeline();
        self.end_requests();
        // The kernel is slow to close what asynchronous transfers had to do with.
        for place in (0..self.members.len()).rev() {
            if self.members[place].peer.life.as_ref().is_some_and(is_over) {
                self.members[place].connection.hear_out();
                self.remove(place, Ending::Gone);
            }
        }
        self.ended.settle();
        self.look_for_strangers();
        self.note_levels();
        self.notes.extend(self.strangers.note());
        let turned_away = self.note_turned_away();
        self.notes.extend(turned_away);
        let jobs = self.end_jobs();
        let suspensions = self.end_turns();
        for member in &self.members {
            if let Some(index) = member.record {
                let process = self.shared.process(index);
                let record = member.describe(&process, Ending::Running, now_ns);
                self.ended.add(record, None, self.strangers.main());
            }
        }
        if let Some(main) = self.strangers.main() {
            self.ended.note_ending(main, ending);
        }
        let (processes, others) = self.ended.finish();
        let mut sum = others.clone();
        processes.iter().for_each(|process| sum.add(process));
        let mut total = sum.statistics;
        // Engines look more often than they are asked.
        total.unmanaged_bytes_peak = self.unmanaged_bytes_peak.max(total.unmanaged_bytes_peak);
        total.frames_budget = self.shared.frames_total();
        total.frames_peak = self.shared.frames_peak();
        total.managed_bytes = self.managed_bytes_peak;
        total.engine_bytes = self.engine_bytes_peak;
        Books {
            processes,
            others,
            total,
            jobs,
            suspensions,
            ended_for_room: self.ended_for_room,
            files_lost: self.files_lost,
            notes: std::mem::take(&mut self.notes),
            told: std::mem::take(&mut self.told),
            is_handed_over: false,
        }
    }

    /// Has the pace of each task known.
    fn note_pace(&mut self) {
        for member in &mut self.members {
            if let Some(index) = member.record {
                let counts = observation::counts_of(&self.shared.process(index));
                member.pace.note(now_ns(), counts);
            }
        }
    }

    /// Takes note of how much memory is not managed now, and how much address space and engines of
    /// their own processes have.
    fn note_levels(&mut self) {
        let sum = |counter| {
            let records = self.members.iter().filter_map(|member| member.record);
            records
                .map(|index| self.shared.process(index).counter(counter).load(Relaxed))
                .sum()
        };
        let (unmanaged, managed) = (sum(Counter::UnmanagedBytesNow), sum(Counter::ManagedBytes));
        let unmanaged: u64 = unmanaged + self.strangers.resident_bytes();
        self.unmanaged_bytes_peak = self.unmanaged_bytes_peak.max(unmanaged);
        self.managed_bytes_peak = self.managed_bytes_peak.max(managed);
        self.engine_bytes_peak = self.engine_bytes_peak.max(sum(Counter::EngineBytes));
    }

    /// Writes down what a process leaves behind, and gives back its slots and frames.
    fn remove(&mut self, place: usize, ending: Ending) {
        self.note_levels();
        let member = self.members.remove(place);
        if let Some(calls) = &self.calls {
            calls.leave(member.peer.pid);
        }
        let Some(index) = member.record.or(member.hello.record) else {
            return self.steward.handle_gone(member.task, Remains::default());
        };
        self.steward
            .handle_gone(member.task, self.remains_of(index));
        self.note_turn(member.hello.pid, false);
        let process = self.shared.process(index);
        if process.state() == State::Running {
            process.end(now_ns());
            self.counts_ended.add(&observation::counts_of(&process));
            self.ended_for_room += u64::from(process.ending() == shared::Ending::StoreFull);
            self.files_lost |= process.ending() == shared::Ending::FileLost;
            self.told.extend(record::complaint(&process));
            let described = member.describe(&process, ending, now_ns());
            let life = member.peer.life.filter(|_| ending == Ending::Gone);
            if life.as_ref().is_some_and(|life| !is_over(life)) {
                self.strangers.suspect(member.peer.pid);
            }
            let departure = life.map(Departure::new);
            self.ended.add(described, departure, self.strangers.main());
        }
        match member.connection.is_done() {
            true => self.release(index),
            false => self.late.push((member.connection, index)),
        }
    }
}

impl Member {
    fn new(task: TaskId, connection: Connection, hello: Hello, peer: Peer) -> Member {
        Member {
            task,
            connection,
            hello,
            peer,
            record: None,
            pace: Pace::default(),
        }
    }

    fn state(&self) -> MemberState {
        MemberState {
            pid: self.hello.pid,
            claimed: self.hello.record.map(|index| index.0),
            record: self.record.map(|index| index.0),
            has_memory: self.connection.is_apart(),
        }
    }

    /// The record that it leaves behind, with the number that it has here.
    fn describe(&self, process: &Process<'_>, ending: Ending, now_ns: u64) -> ProcessRecord {
        ProcessRecord {
            pid: self.hello.pid,
            ..record::of_process(process, ending, now_ns)
        }
    }

    fn is_answered(&self) -> bool {
        self.record.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::PrivateFolder;
    use crate::swap;

    #[test]
    fn found_f7_the_swap_file_takes_no_room_once_it_is_closed() {
        const BYTES: u64 = 1 << 20;
        let folder = PrivateFolder::new().unwrap();
        let (listener, _) = folder.listen().unwrap();
        let shared = Shared::create((BYTES / 4096) as u32, 1024).unwrap();
        let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let swap = swap::create(Some(place), Some(BYTES), BYTES).unwrap();
        let held = swap.file.try_clone().unwrap();
        let tree = Tree::new(shared, swap.file, None, listener);
        let blocks = || rustix::fs::fstat(&held).unwrap().st_blocks as u64 * 512;
        assert!(!swap.is_preallocated || blocks() >= BYTES);
        assert!(!tree.has_members());
        tree.close();
        assert_eq!(blocks(), 0, "it is still open");
    }

    #[test]
    fn a_forked_child_that_has_not_come_is_waited_for() {
        let folder = PrivateFolder::new().unwrap();
        let (listener, _) = folder.listen().unwrap();
        let shared = Shared::create(16, 1024).unwrap();
        let child = shared.claim().unwrap();
        let swap = std::fs::File::open("/dev/null").unwrap();
        let tree = Tree::new(shared, swap.into(), None, listener);
        assert!(tree.has_members());
        tree.shared.release(child);
        assert!(!tree.has_members());
    }
}
