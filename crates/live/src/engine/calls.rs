//! System calls that are held up until their memory is there: see
//! [`Calls`](crate::parts::calls::Calls) for those, and [`calls`] for what they need.
//!
//! A call goes on when all that it needs is present, which the kernel is asked for: it would fail
//! at a page that is not. What it needs is kept in place before it is looked for, so that the page
//! that comes last does not send the first one away.
//!
//! Memory that the kernel writes to without a call (stacks of signals and of threads) is left
//! alone for good.

use tidemark_core::driver::Driver;
use tidemark_core::time::Time;

use super::Engine;
use crate::calls::{self, Memory};
use crate::machine::LiveMachine;
use crate::parts::addresses::AddressSpace;
use crate::parts::calls::Waiting;
use crate::parts::intake::Arrival;
use crate::parts::trouble::{Trouble, pid, say};
use crate::parts::units::now;
use crate::shared::Counter;
use crate::sys::calls::{Call, RANGE, is_in_range};
use crate::sys::{Errno, PAGE, thread};

/// The part of the budget that one call may need.
const SHARE: u32 = 4;
/// The most pages of one call that are asked for at once.
const ASKED_MAX: usize = 64;
/// The number of looks after which a page that does not come, and that nothing is under way for, is
/// left to the kernel.
const TRIES_MAX: u32 = 200;
/// The most that a stack is taken to have below the address that its thread begins with.
const STACK_BYTES: usize = 8 << 20;
/// The room above it, for what the C library keeps of a thread.
const STACK_TOP_BYTES: usize = 64 << 10;

/// The fate of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    GoesOn,
    Fails(Errno),
    Waits,
}

impl Engine {
    /// Takes in the calls that the supervisor has sent.
    fn hear_calls(&mut self) {
        while let Some(call) = self.line.take_call() {
            let has_held = self.calls.let_go(call.thread);
            self.calls.arrive(call, now());
            if has_held {
                self.keep_held();
            }
        }
    }

    /// Looks at every call that waits.
    pub(super) fn serve_calls(&mut self) {
        self.hear_calls();
        if self.calls.look(self.now) {
            self.keep_held();
        }
        if self.task.is_parked() || !self.calls.has_waiting() {
            return;
        }
        for mut waiting in self.calls.take_waiting() {
            match self.serve_call(&mut waiting) {
                Fate::GoesOn => self.end_call(&waiting, None),
                Fate::Fails(error) => self.end_call(&waiting, Some(error)),
                Fate::Waits => self.calls.put_back(waiting),
            }
        }
    }

    /// Takes in that a thread has touched memory by itself: it is in no call.
    pub(super) fn note_running(&mut self, thread: u32) {
        if self.calls.note_running(thread) {
            self.keep_held();
        }
    }

    /// Ends the program if no supervisor listens to its calls any more.
    pub(super) fn check_listened(&mut self) {
        if self.calls.is_listening() && !self.line.has_supervisor() {
            self.end_for(&Trouble::NoSupervisor {
                what: "without it system calls wait for ever".into(),
                is_gone: true,
            });
        }
    }

    fn end_call(&mut self, waiting: &Waiting, error: Option<Errno>) {
        let waited = now().since_ns(waiting.since);
        self.telemetry.add(Counter::StallNs, waited);
        match error {
            None => self.calls.go_on(&waiting.call),
            Some(error) => self.calls.fail(&waiting.call, error),
        }
    }

    fn serve_call(&mut self, waiting: &mut Waiting) -> Fate {
        let call = waiting.call;
        match self.serve_special(&call) {
            Some(Fate::GoesOn) | None => {}
            Some(fate) => return fate,
        }
        // Each time round a page has come by whose contents more is found.
        loop {
            let bytes_max = (self.task.budget() / SHARE).max(1) as usize * PAGE;
            let needs = {
                let memory = Program {
                    machine: &self.machine,
                    addresses: &self.addresses,
                };
                calls::collect(&call, &memory, bytes_max)
            };
            if needs.is_too_large {
                return self.refuse(&call, "needs more memory at once than it may have");
            }
            // What can't be read because it is out is a part of what is needed. What can't be for
            // another reason the kernel can't read, either.
            let behind = needs.unread.map(|address| address & !(PAGE - 1));
            let behind = behind.filter(|page| is_out(&self.machine, &self.addresses, *page));
            let mut ranges = needs.ranges;
            if let Some(page) = behind {
                ranges.insert(page, page + PAGE);
            }
            if ranges.is_empty() {
                return Fate::GoesOn;
            }
            self.calls.hold(call, ranges.clone());
            self.keep_held();
            if !self.is_all_there(waiting, ranges.iter()) {
                return Fate::Waits;
            }
            if behind.is_none() {
                return Fate::GoesOn;
            }
        }
    }

    /// Has the pages of these ranges brought that are not there. True if all are there.
    fn is_all_there(
        &mut self,
        waiting: &mut Waiting,
        ranges: impl Iterator<Item = (usize, usize)>,
    ) -> bool {
        let mut is_all = true;
        for (start, end) in ranges {
            if !waiting.is_taken_over && !self.take_over_for_call(waiting, start, end) {
                return false;
            }
            is_all &= self.bring_in(waiting, start, end);
        }
        waiting.is_taken_over |= is_all;
        is_all
    }

    /// Takes over what of a range can be managed and is not yet: it would be missing as soon as it
    /// is. False if what stands there is not known for now.
    fn take_over_for_call(&mut self, waiting: &Waiting, start: usize, end: usize) -> bool {
        if self.addresses.managed().collect_gaps(start, end).is_empty() {
            return true;
        }
        if !self.await_changes() {
            return false;
        }
        let thread = waiting.call.thread;
        for (from, to) in self.addresses.collect_manageable(start, end) {
            for (from, to) in self.addresses.collect_untaken(from, to) {
                // Other calls that go on by now would miss what has not been filled yet.
                if !self.calls.holds_any(from, to, thread) {
                    self.take_over_held(from, to);
                }
            }
        }
        true
    }

    /// Has the missing pages of a range brought. True if there are none, or none that can come.
    fn bring_in(&mut self, waiting: &mut Waiting, start: usize, end: usize) -> bool {
        let mut before = 0;
        loop {
            let missing = self.find_missing(start, end);
            let Some(&first) = missing.first() else {
                return true;
            };
            if self.machine.has_deferred() || !self.intake.is_settled() {
                return false;
            }
            // Of no thread: one that has touched memory by itself would be in no call.
            let is_asked = |it: &Engine, address| it.intake.faults().has(0, address);
            let mut is_pending = false;
            for address in missing {
                if is_asked(self, address) {
                    is_pending = true;
                    continue;
                }
                self.serve(Arrival {
                    address,
                    is_write: true,
                    thread: 0,
                    since: waiting.since,
                });
                is_pending |= is_asked(self, address);
            }
            self.carry_out();
            if is_pending {
                return false;
            }
            // Those that come at once show when they are looked for again.
            if first == before {
                waiting.tries += 1;
                return waiting.tries > TRIES_MAX;
            }
            before = first;
        }
    }

    /// The first missing pages of the managed part of a range.
    fn find_missing(&self, start: usize, end: usize) -> Vec<usize> {
        let mut missing = Vec::new();
        let mut runs = Vec::new();
        for (from, to) in self.addresses.collect_within(start, end) {
            let mut at = from;
            while at < to {
                let walked = self.machine.pages().find_there(at, to, &mut runs);
                let walked = walked.unwrap_or(to).max(at + PAGE).min(to);
                for &(there, beyond) in &runs {
                    missing.extend((at..there.min(walked)).step_by(PAGE));
                    at = at.max(beyond);
                }
                missing.extend((at..walked).step_by(PAGE));
                at = walked;
                if missing.len() >= ASKED_MAX {
                    missing.truncate(ASKED_MAX);
                    return missing;
                }
            }
        }
        missing
    }

    /// Tells the machine which pages stay in place.
    fn keep_held(&mut self) {
        self.machine.keep(self.calls.held());
    }

    /// Sees to the calls that are not only about buffers. `None` if this is none of them.
    fn serve_special(&mut self, call: &Call) -> Option<Fate> {
        let [first, second, ..] = call.arguments.map(|argument| argument as usize);
        match libc::c_long::from(call.number) {
            number if is_fork(number, first) => {
                Some(self.refuse(call, "is a fork of its own, which its engine can't follow"))
            }
            libc::SYS_mremap => {
                let end = first.saturating_add(second).next_multiple_of(PAGE);
                Some(self.leave_for_good(first & !(PAGE - 1), end))
            }
            libc::SYS_clone => self.leave_thread(call),
            libc::SYS_sigaltstack => self.leave_signal_stack(first),
            // The kernel keeps the address, and uses it later.
            libc::SYS_set_tid_address | libc::SYS_set_robust_list | libc::SYS_rseq => {
                let start = first & !(PAGE - 1);
                let is_ours = is_in_range(first);
                is_ours.then(|| self.leave_for_good(start, start + 2 * PAGE))
            }
            _ => None,
        }
    }

    /// Leaves the stack of a new thread alone, and what the kernel writes at its end.
    fn leave_thread(&mut self, call: &Call) -> Option<Fate> {
        let [_, stack, others @ ..] = call.arguments.map(|argument| argument as usize);
        let mut ranges = Vec::new();
        if is_in_range(stack) {
            ranges.push(self.stack_around(stack));
        }
        let others = others.into_iter().filter(|at| is_in_range(*at));
        ranges.extend(others.map(|at| (at & !(PAGE - 1), (at + 8).next_multiple_of(PAGE))));
        for (start, end) in ranges {
            if self.leave_for_good(start, end) == Fate::Waits {
                return Some(Fate::Waits);
            }
        }
        Some(Fate::GoesOn)
    }

    /// Leaves a stack for signals alone, if it is managed memory.
    fn leave_signal_stack(&mut self, at: usize) -> Option<Fate> {
        if at == 0 {
            return None;
        }
        // The start, flags, and the size.
        let mut record = [0; 24];
        let is_read = thread::read_own_memory(at, &mut record).is_some();
        if !is_read {
            // The record itself is out: it comes first. A record that can't be is none.
            if !self.addresses.contains(at) {
                return None;
            }
            let arrival = Arrival {
                address: at & !(PAGE - 1),
                is_write: false,
                thread: 0,
                since: now(),
            };
            self.serve(arrival);
            self.carry_out();
            return Some(Fate::Waits);
        }
        let word = |from: usize| {
            let bytes = record[from..from + 8].try_into().expect("eight bytes");
            u64::from_ne_bytes(bytes) as usize
        };
        let (start, bytes) = (word(0), word(16));
        let end = start.checked_add(bytes)?.checked_next_multiple_of(PAGE)?;
        is_in_range(start).then(|| self.leave_for_good(start & !(PAGE - 1), end))
    }

    /// The range of a stack on which a thread is to begin.
    fn stack_around(&mut self, top: usize) -> (usize, usize) {
        let area = self.addresses.scanner_mut().find_manageable(top - 1);
        let (first, beyond) = area.map_or((0, usize::MAX), |area| (area.start, area.end));
        let start = top.saturating_sub(STACK_BYTES) & !(PAGE - 1);
        let end = (top + STACK_TOP_BYTES).next_multiple_of(PAGE);
        (
            start.max(first).max(RANGE.start),
            end.min(beyond).min(RANGE.end),
        )
    }

    /// Brings back what is out of a range, and leaves it to the kernel from then on.
    fn leave_for_good(&mut self, start: usize, end: usize) -> Fate {
        if self.addresses.is_vacant(start, end) {
            self.addresses.scanner_mut().exclude(start, end);
            return Fate::GoesOn;
        }
        for (from, to) in self.addresses.collect_within(start, end) {
            if !self.give_up_for_good(from, to) {
                return Fate::Waits;
            }
        }
        self.addresses.scanner_mut().exclude(start, end);
        Fate::GoesOn
    }

    /// Has a call fail that can't be served, with a line.
    fn refuse(&mut self, call: &Call, why: &str) -> Fate {
        if self.calls.take_word() {
            let name = name_of(call.number);
            say(&format!(
                "{} ({}): {name} fails: it {why}; with a full userfaultfd it works (`tidemark \
                 doctor`)",
                self.setup.name,
                pid(),
            ));
        }
        match is_fork(call.number.into(), call.arguments[0] as usize) {
            true => Fate::Fails(Errno::AGAIN),
            false => Fate::Fails(Errno::NOMEM),
        }
    }

    /// The time at which calls that wait are looked at again.
    pub(super) fn calls_due(&self) -> Option<Time> {
        /// The pause between two looks at calls whose memory is on its way.
        const PAUSE_NS: u64 = 1_000_000;
        let is_waited_for = self.calls.has_waiting() && !self.task.is_parked();
        is_waited_for.then(|| self.now.after_ns(PAUSE_NS))
    }
}

/// Returns true if a call copies its process.
fn is_fork(number: libc::c_long, flags: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_fork {
        return true;
    }
    number == libc::SYS_clone && flags & libc::CLONE_VM as usize == 0
}

/// The name of a call that may be refused.
fn name_of(number: u32) -> String {
    let name = match libc::c_long::from(number) {
        libc::SYS_execve | libc::SYS_execveat => "executing a program",
        libc::SYS_clone => "`clone`",
        libc::SYS_ioctl => "`ioctl`",
        libc::SYS_ppoll => "`ppoll`",
        libc::SYS_getxattr | libc::SYS_setxattr => "reading or writing an attribute",
        _ => return format!("system call {number}"),
    };
    name.into()
}

/// The memory of the program, read by way of the kernel: where a page is out that fails, and does
/// not wait for the engine.
struct Program<'a> {
    machine: &'a LiveMachine,
    addresses: &'a AddressSpace,
}

impl Memory for Program<'_> {
    fn read(&self, at: usize, into: &mut [u8]) -> Result<(), usize> {
        if thread::read_own_memory(at, into).is_some() {
            return Ok(());
        }
        let end = at.saturating_add(into.len());
        let mut pages = (at & !(PAGE - 1)..end).step_by(PAGE);
        let out = pages.find(|page| is_out(self.machine, self.addresses, *page));
        Err(out.unwrap_or(at))
    }
}

/// Returns true if a page is managed, and not there.
fn is_out(machine: &LiveMachine, addresses: &AddressSpace, page: usize) -> bool {
    addresses.contains(page) && machine.pages().is_hole(page).unwrap_or(false)
}
