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

use std::os::fd::AsFd;
use std::time::Duration;

use tidemark_core::id::VirtPage;
use tidemark_core::vm::Contents;

use super::{Engine, Trouble, address_of, now, say};
use crate::ranges::Ranges;
use crate::sys::uffd::{Message, Messages, Progress, Stop, Uffd};
use crate::sys::{PAGE, socket};

/// Pages read and copied in one go at most.
pub(super) const RUN_MAX: usize = 64;
/// How long transfers may take to end.
const FILLING_NS_MAX: u64 = 20_000_000_000;
/// How long a child may take for one change of its address space, ...
const CHANGE_NS_MAX: u64 = 10_000_000_000;
/// ... and how often is looked.
const CHANGE_PAUSE: Duration = Duration::from_micros(50);

/// A child that is being fed.
struct Ward {
    uffd: Uffd,
    /// What the child has moved since: from, to, bytes.
    moves: Vec<(usize, usize, usize)>,
    /// What it has unmapped or emptied since.
    given_up: Ranges,
    /// Its own children since.
    children: Vec<Uffd>,
    messages: Messages,
}

/// How a copy ended.
#[derive(PartialEq, Eq)]
enum Served {
    Yes,
    /// The child does not exist any more, or runs another program.
    Left,
    /// The host refuses.
    Refused,
}

impl Engine {
    /// Copies to the child behind `uffd` every page that it lacks, and lets it go.
    pub(super) fn feed_child(&mut self, uffd: Uffd) {
        self.await_pages();
        let mut pages = Vec::new();
        let mut note = |at, contents| pages.push((at, contents));
        self.vm.visit_pages(self.space, &mut note);
        let mut waiting = vec![Ward::new(uffd)];
        while let Some(mut ward) = waiting.pop() {
            self.feed_pages(&mut ward, &pages);
            ward.hear();
            // What they lack is what their parent lacked, and perhaps got since.
            let (moves, given_up) = (ward.moves, ward.given_up);
            waiting.extend(ward.children.into_iter().map(|uffd| Ward {
                moves: moves.clone(),
                given_up: given_up.clone(),
                ..Ward::new(uffd)
            }));
        }
        self.murmur("a child that was forked by a system call of its own runs unmanaged");
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
            // Whatever the wait answers, the loop looks for itself.
            let _ = socket::wait_readable(&[self.store.as_fd()], Some(1_000_000));
        }
    }

    fn feed_pages(&mut self, ward: &mut Ward, pages: &[(VirtPage, Contents)]) {
        let mut rest = pages;
        while let Some(&(at, contents)) = rest.first() {
            let count = run_length(rest);
            let served = match contents {
                Contents::Frame(frame) => match self.machine.pooled(frame) {
                    Some(source) => ward.put(address_of(at), source, 1),
                    // It stands in the program, and so in the child; or it is zeros.
                    None => Served::Yes,
                },
                Contents::Slot(first) => {
                    let page = &mut self.freeze.page;
                    match self.store.read_run_now(first, count, page) {
                        Ok(()) => ward.put(address_of(at), page.start(), count),
                        Err(_) if count > 1 => {
                            // To find the one that can't be read.
                            for one in &rest[..count] {
                                self.feed_pages(ward, &[*one]);
                            }
                            Served::Yes
                        }
                        Err(_) => Served::Refused,
                    }
                }
            };
            match served {
                Served::Yes => {}
                Served::Left => return,
                Served::Refused => {
                    let start = address_of(at);
                    say(&format!(
                        "{}: page {start:#x} of a forked child can't be brought back; it is ended \
                         if it touches that",
                        self.setup.name
                    ));
                    ward.poison(start, count);
                }
            }
            rest = &rest[count..];
        }
    }
}

impl Ward {
    fn new(uffd: Uffd) -> Ward {
        Ward {
            uffd,
            moves: Vec::new(),
            given_up: Ranges::new(),
            children: Vec::new(),
            messages: Messages::new(),
        }
    }

    /// Copies `count` pages from `source` to `start` and what follows it.
    fn put(&mut self, start: usize, source: usize, count: usize) -> Served {
        let end = now().after_ns(CHANGE_NS_MAX);
        let mut done = 0;
        while done < count {
            let Some(to) = self.place_of(start + done * PAGE) else {
                done += 1;
                continue;
            };
            // What has moved may have moved in parts.
            let pages = if self.moves.is_empty() && self.given_up.is_empty() {
                count - done
            } else {
                1
            };
            match self.uffd.copy(to, source + done * PAGE, pages * PAGE) {
                Progress::All => done += pages,
                Progress::Part(bytes) => done += bytes / PAGE,
                // What stands there is what the child has, or has written since.
                Progress::Nothing(Stop::Present) => done += 1,
                // A change has begun of which there is no word yet: the child may have lost its
                // processor there.
                Progress::Nothing(Stop::Changing) if now() < end => {
                    if !self.hear() {
                        std::thread::sleep(CHANGE_PAUSE);
                    }
                }
                // Nothing is registered there, unless that is what there is word of.
                Progress::Nothing(Stop::Absent) => done += usize::from(!self.hear()),
                Progress::Nothing(Stop::Ending) => return Served::Left,
                Progress::Nothing(_) => return Served::Refused,
            }
        }
        Served::Yes
    }

    fn poison(&self, start: usize, count: usize) {
        for page in 0..count {
            if let Some(at) = self.place_of(start + page * PAGE) {
                // Where this fails, a page stands already, or nothing is mapped.
                let _ = self.uffd.poison(at, PAGE);
            }
        }
    }

    /// Takes in what the child has done meanwhile, which lets it go on. False if that is nothing.
    fn hear(&mut self) -> bool {
        let mut has_changed = false;
        while self.uffd.read(&mut self.messages).is_ok() && !self.messages.is_empty() {
            let messages = std::mem::take(&mut self.messages);
            for message in messages.iter() {
                has_changed |= !matches!(message, Message::Fault { .. } | Message::Unknown(_));
                match message {
                    Message::Remap { from, to, bytes } => {
                        self.moves.push((from, to, bytes));
                        self.given_up.remove(to, to + bytes);
                    }
                    Message::Remove { start, end } | Message::Unmap { start, end } => {
                        self.given_up.insert(start, end);
                    }
                    Message::Fork { child } => self.children.push(Uffd::take_child(child)),
                    // Answered by the page, or by letting go.
                    Message::Fault { .. } | Message::Unknown(_) => {}
                }
            }
        }
        has_changed
    }

    /// Where the child wants what was at `start` when it was forked; `None` if it does not.
    fn place_of(&self, start: usize) -> Option<usize> {
        let mut at = start;
        for &(from, to, bytes) in &self.moves {
            if (from..from + bytes).contains(&at) {
                at = at - from + to;
            }
        }
        (!self.given_up.contains(at)).then_some(at)
    }
}

/// How many pages from the first on lie in consecutive slots at consecutive addresses.
fn run_length(pages: &[(VirtPage, Contents)]) -> usize {
    let (at, first) = match pages[0] {
        (at, Contents::Slot(slot)) => (at, slot),
        (_, Contents::Frame(_)) => return 1,
    };
    let follows = |(index, page): &(u32, &(VirtPage, Contents))| match page.1 {
        Contents::Slot(slot) => slot.0 == first.0 + index && page.0 == at.plus(u64::from(*index)),
        Contents::Frame(_) => false,
    };
    (0..)
        .zip(pages.iter().take(RUN_MAX))
        .take_while(follows)
        .count()
}
