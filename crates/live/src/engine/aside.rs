//! Stepping aside, for a call that the kernel permits to processes of one thread alone: to enter a
//! user namespace is the one that matters.
//!
//! The engine comes to rest as before a fork, and its other threads end. Its files, which are in a
//! table of its own, go into a socket that the program's thread holds, and its own thread ends.
//! When the call is over the program's thread starts another, which takes the files back, each to
//! its number, and goes on with the tables as they are.
//!
//! # Invariants
//! 1. From the rest on tables do not change, and what the program's thread needs to be present to
//!    make its call, its stack above all, it touches while faults are still served.
//! 2. Files that can't be sent are known before anything else is done.

use std::os::fd::{AsRawFd, RawFd};

use super::place::Place;
use super::{Engine, Trouble, now, say};
use crate::requests::Taken;
use crate::sys::{files, thread};

/// The time for which the threads beside the engine's may take to end.
const LEAVE_NS_MAX: u64 = 5_000_000_000;
/// The least number of files that a process must be permitted to have.
const FILES_LEAST: u64 = 64 + 2;

/// The state of stepping aside.
#[derive(Default)]
pub(super) struct Aside {
    /// The request after whose answer the engine's thread is to end.
    departing: Option<Taken>,
}

impl Engine {
    /// Comes to rest, with no threads beside this one and the program's. Answers zero if it does
    /// not: if the program has several threads, for which it would be of no use. Else the number of
    /// the list of threads plus one, which means something in in-thread mode alone: otherwise the
    /// list comes first through the socket.
    pub(super) fn step_aside(&mut self, socket: RawFd) -> u64 {
        if !self.is_program_alone() {
            return 0;
        }
        if socket >= 0
            && let Err(error) = self.send_files(socket)
        {
            say(&format!(
                "a call for processes of one thread is refused, since the engine's files can't be \
                 kept meanwhile: {error}"
            ));
            return 0;
        }
        self.bring_to_rest(|_| true);
        tidemark_core::machine::Machine::settle(&mut self.machine);
        self.publish_samples();
        self.waiting.requeue_all();
        self.publish();
        self.begin_freeze();
        self.machine.end_hand();
        self.store.end_threads();
        let end = now().after_ns(LEAVE_NS_MAX);
        // Threads of the C library's touch the program's memory on their way out.
        while self.count_threads().is_some_and(|threads| threads > 2) && now() < end {
            if self.has_room() {
                self.read_messages();
            }
            self.serve_frozen(None);
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        let list = self.task_list().map_or(0, AsRawFd::as_raw_fd);
        list as u64 + 1
    }

    fn send_files(&self, socket: RawFd) -> Result<(), crate::sys::Errno> {
        if files::limit() < FILES_LEAST {
            return Err(crate::sys::Errno::MFILE);
        }
        let socket = files::copy_of_programs(socket)?;
        let list = self.task_list().ok_or(crate::sys::Errno::NOENT)?;
        let except = self.store.finished().map(|file| file.as_raw_fd());
        files::send_all(&socket, except, list)
    }

    /// Makes ready for the end of this thread, which comes with the answer.
    pub(super) fn depart(&mut self, taken: Taken) {
        self.place.let_go(self.now);
        // In in-thread mode it is everybody's, and stays.
        if !self.setup.is_in_thread {
            self.store.put_down();
        }
        self.aside.departing = Some(taken);
    }

    /// The request whose answer is to be the last that this thread does.
    pub fn take_departure(&mut self) -> Option<Taken> {
        self.aside.departing.take()
    }

    /// Goes on, on another thread.
    pub fn come_back(&mut self) -> Result<(), Trouble> {
        self.own_thread = thread::current();
        self.aside = Aside::default();
        if !self.setup.is_in_thread {
            let means = self.setup.means();
            self.store.take_up(means).map_err(|error| Trouble::Call {
                what: "going on with the swap store",
                error,
            })?;
        }
        self.place = Place::new(self.setup.cpu_finder, self.shared.disk_processor());
        self.thaw();
        Ok(())
    }
}
