//! Feeding children that were forked behind the engine's back.
//!
//! A `fork` or `clone` system call made without the C library comes without warning: the child has
//! the program's memory without the pages that are away, and no engine to bring them. Where the
//! host permits it ([`Features::FORKS`](crate::sys::uffd::Features::FORKS)) the kernel holds the
//! calling thread until the engine has read of it, and hands over a userfaultfd for the child. At
//! that moment the tables say exactly what the child lacks, since nothing can be moved in between.
//! So all of it is copied to where it belongs, and the child is let go: it is not managed, and
//! uses what memory it needs.
//!
//! A page that can't be read back is poisoned: the child is ended if it touches it.
//!
//! The child runs meanwhile, and a touch of what it lacks waits. What it does to its address space
//! is applied to what it still lacks, in its order; so a child of its own, too, lacks exactly what
//! is on the list at the moment of that fork.

use std::collections::BTreeMap;
use std::time::Duration;

use tidemark_core::id::SlotId;
use tidemark_core::vm::Contents;

use super::Engine;
use crate::parts::intake::RUN_MAX;
use crate::parts::trouble::{Trouble, say};
use crate::parts::units::{address_of, now};
use crate::sys::PAGE;
use crate::sys::uffd::{Message, Messages, Progress, Stop, Uffd};

/// The longest time that transfers may take to end.
const FILLING_NS_MAX: u64 = 20_000_000_000;
/// The time that a child may take for one change of its address space.
const CHANGE_NS_MAX: u64 = 10_000_000_000;
/// The interval of looks for that change.
const CHANGE_PAUSE: Duration = Duration::from_micros(50);

/// A child that is being fed.
struct Ward {
    uffd: Uffd,
    /// A page that it has and that is registered, and one to copy there in vain.
    witness: (usize, usize),
    /// The contents it lacks, by where it wants it.
    lacking: BTreeMap<usize, Contents>,
    /// Its own children since.
    children: Vec<Ward>,
    messages: Messages,
}

/// The way a copy ended.
#[derive(PartialEq, Eq)]
enum Served {
    /// Nothing more is to be done about these pages; or the child has changed its address space.
    Yes,
    /// The child does not exist any more, or runs another program.
    Left,
    /// The host refuses.
    Refused,
}

impl Engine {
    /// Copies to the child behind `uffd` every page that it lacks, and lets it go.
    pub(super) fn feed_child(&mut self, uffd: Uffd) {
        self.place.roam(self.now);
        self.await_pages();
        let mut lacking = BTreeMap::new();
        let mut note = |at, contents| {
            // What the program has mapped is mapped in the child; or it is zeros.
            let is_out = match contents {
                Contents::Frame(frame) => self.machine.pooled(frame).is_some(),
                Contents::Slot(_) => true,
            };
            if is_out && !self.addresses.is_wiped(address_of(at)) {
                lacking.insert(address_of(at), contents);
            }
        };
        self.vm.visit_pages(self.space, &mut note);
        let witness = self.machine.witness();
        self.poison_files_of(&uffd);
        let mut waiting = vec![Ward::new(uffd, witness, lacking)];
        while let Some(mut ward) = waiting.pop() {
            self.feed_ward(&mut ward);
            ward.hear();
            waiting.append(&mut ward.children);
            ward.let_go();
        }
        // They have the processors of the threads that made them.
        self.place.release_children();
        self.report_if_verbose(
            "a child that was forked by a system call of its own runs unmanaged",
        );
    }

    /// Waits until no frame is being filled: what it holds before is not its page.
    fn await_pages(&mut self) {
        let end = now().after_ns(FILLING_NS_MAX);
        while !self.store.is_still() {
            self.reap();
            if now() > end {
                self.end_for(&Trouble::Call {
                    what: "waiting for transfers for a forked child",
                    error: crate::sys::Errno::TIMEDOUT,
                });
            }
            self.store.wait(1_000_000);
        }
    }

    fn feed_ward(&mut self, ward: &mut Ward) {
        // The slots that were read last: a child that changes its address space asks for the same
        // ones again and again.
        let mut read = (SlotId(0), 0);
        while let Some((start, contents, count)) = ward.first_run() {
            let served = match contents {
                Contents::Frame(frame) => match self.machine.pooled(frame) {
                    Some(source) => ward.put(start, source, count),
                    None => unreachable!("nothing moves meanwhile"),
                },
                Contents::Slot(first) => self.put_slots(ward, start, (first, count), &mut read),
            };
            match served {
                Served::Yes => {}
                Served::Left => return ward.lacking.clear(),
                Served::Refused => {
                    say(&format!(
                        "{}: page {start:#x} of a forked child can't be brought back; it is ended \
                         if it touches that",
                        self.setup.name
                    ));
                    if !ward.poison(start) {
                        return;
                    }
                }
            }
        }
    }

    /// Copies a run of slots to `start`, reading those that were not `read` last.
    fn put_slots(
        &mut self,
        ward: &mut Ward,
        start: usize,
        (first, count): (SlotId, usize),
        read: &mut (SlotId, usize),
    ) -> Served {
        let page = self.intake.page();
        let known = |(from, pages): (SlotId, usize)| {
            let skipped = first.0.checked_sub(from.0)? as usize;
            (skipped < pages).then(|| (skipped, pages - skipped))
        };
        let (skipped, pages) = match known(*read) {
            Some(known) => known,
            None => {
                *read = (first, 0);
                let is_read = |pages: &usize| self.store.read_run_now(first, *pages, page).is_ok();
                // If there is one that can't be read, those before it can.
                let Some(pages) = [count, 1].into_iter().find(is_read) else {
                    return Served::Refused;
                };
                *read = (first, pages);
                (0, pages)
            }
        };
        ward.put(start, page.start() + skipped * PAGE, pages.min(count))
    }
}

impl Ward {
    fn new(uffd: Uffd, witness: (usize, usize), lacking: BTreeMap<usize, Contents>) -> Ward {
        Ward {
            uffd,
            witness,
            lacking,
            children: Vec::new(),
            messages: Messages::new(),
        }
    }

    /// The first page that is lacking, and how many from there on lie in consecutive slots at
    /// consecutive addresses.
    fn first_run(&self) -> Option<(usize, Contents, usize)> {
        let (&start, &contents) = self.lacking.first_key_value()?;
        let Contents::Slot(first) = contents else {
            return Some((start, contents, 1));
        };
        let follows = |(index, (at, contents)): &(u32, (&usize, &Contents))| {
            let slot = SlotId(first.0 + index);
            **at == start + *index as usize * PAGE && **contents == Contents::Slot(slot)
        };
        let lacking = self.lacking.iter().take(RUN_MAX);
        let count = (0..).zip(lacking).take_while(follows).count();
        Some((start, contents, count))
    }

    /// Copies `count` pages from `source` to `start` and what follows it, until there is word of a
    /// change. A call must stay inside one mapping of the child, and a run knows nothing of
    /// mappings: where nothing seems to be registered it is tried by halves.
    fn put(&mut self, start: usize, source: usize, count: usize) -> Served {
        let end = now().after_ns(CHANGE_NS_MAX);
        let (mut done, mut pages_max) = (0, count);
        while done < count {
            let pages = pages_max.min(count - done);
            let (to, from) = (start + done * PAGE, source + done * PAGE);
            let mut answer = self.uffd.copy(to, from, pages * PAGE);
            // The kernel looks for the mapping before it looks for changes (from Linux 6.9 on), and
            // of one that has been moved or taken away the word may be still to come.
            let is_absent = matches!(answer, Progress::Nothing(Stop::Absent));
            if pages == 1 && is_absent && self.uffd.is_changing(self.witness.0, self.witness.1) {
                answer = Progress::Nothing(Stop::Changing);
            }
            let settled = match answer {
                Progress::All => pages,
                Progress::Part(bytes) => bytes / PAGE,
                // What stands there is what the child has, or has written since.
                Progress::Nothing(Stop::Present) => 1,
                // A change has begun: the child may have lost its processor before it says which.
                Progress::Nothing(Stop::Changing) if self.hear() => return Served::Yes,
                Progress::Nothing(Stop::Changing) if now() < end => {
                    std::thread::sleep(CHANGE_PAUSE);
                    continue;
                }
                Progress::Nothing(Stop::Absent) if pages > 1 => {
                    pages_max = pages / 2;
                    continue;
                }
                // Nothing is registered there, and nothing is changing.
                Progress::Nothing(Stop::Absent) => 1,
                Progress::Nothing(Stop::Ending) => return Served::Left,
                Progress::Nothing(_) => return Served::Refused,
            };
            self.settle(to, settled);
            done += settled;
            pages_max = (pages_max * 2).min(count);
        }
        Served::Yes
    }

    /// Takes `pages` from `start` on off the list.
    fn settle(&mut self, start: usize, pages: usize) {
        for page in 0..pages {
            self.lacking.remove(&(start + page * PAGE));
        }
    }

    /// Has the child ended if it touches the page at `start`, and takes that off the list. False if
    /// the kernel refuses that, too.
    fn poison(&mut self, start: usize) -> bool {
        let is_settled = match self.uffd.poison(start, PAGE) {
            Progress::All | Progress::Part(_) => true,
            // The child has a page there, nothing of it is registered, or it has ended.
            Progress::Nothing(Stop::Present | Stop::Absent | Stop::Ending) => true,
            Progress::Nothing(_) => false,
        };
        if is_settled {
            self.settle(start, 1);
        }
        is_settled
    }

    /// Leaves the child to itself. One that still lacks pages that can't be had waits where it
    /// touches them: it would read zeros otherwise.
    fn let_go(self) {
        if !self.lacking.is_empty() {
            std::mem::forget(self.uffd);
        }
    }

    /// Takes in what the child has done meanwhile, which lets it go on. False if that is nothing.
    fn hear(&mut self) -> bool {
        let mut has_changed = false;
        while self.uffd.read(&mut self.messages).is_ok() && !self.messages.is_empty() {
            let messages = std::mem::take(&mut self.messages);
            for message in messages.iter() {
                has_changed |= !matches!(message, Message::Fault { .. } | Message::Unknown(_));
                self.apply(message);
            }
        }
        has_changed
    }

    fn apply(&mut self, message: Message) {
        match message {
            Message::Remap { from, to, bytes } => {
                let moved = self.cut(from, from + bytes);
                self.cut(to, to + bytes);
                let arrived = moved.into_iter().map(|(at, page)| (at - from + to, page));
                self.lacking.extend(arrived);
            }
            Message::Remove { start, end } | Message::Unmap { start, end } => {
                self.cut(start, end);
            }
            Message::Fork { child } => {
                let child = Ward::new(Uffd::take_child(child), self.witness, self.lacking.clone());
                self.children.push(child);
            }
            // Answered by the page, or by letting go.
            Message::Fault { .. } | Message::Unknown(_) => {}
        }
    }

    /// Takes what is lacking in a range off the list.
    fn cut(&mut self, start: usize, end: usize) -> BTreeMap<usize, Contents> {
        let lacking = self.lacking.range(start..end);
        let cut: BTreeMap<usize, Contents> = lacking.map(|(at, page)| (*at, *page)).collect();
        for at in cut.keys() {
            self.lacking.remove(at);
        }
        cut
    }
}
