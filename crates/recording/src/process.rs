//! A recorded process: plays the entries of its logs into records and events.
//!
//! A process that executes another program stays the same process here, with a new log.

use tidemark_log::{Words, kind, word_at};
use tidemark_trace::summary::End;
use tidemark_trace::{Block, Event, FileEvent, Kinds, LifeEvent, MappingEvent, Memory, Rights};

use crate::reduce::Reducer;
use crate::runs::Runs;
use crate::sheet::{Sheet, Sink, Stack};

/// The most that one system call transfers (`MAX_RW_COUNT`). A damaged log may say more.
const TRANSFER_BYTES_MAX: u64 = 0x7fff_f000;

/// Set in the rights of a mapping that others see the changes of.
const RIGHTS_SHARED: u32 = 8;

/// The settings common to all processes of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The logarithm of the page size.
    pub page_shift: u32,
    /// The length of a quantum in instructions; none in exact mode.
    pub quantum: Option<u64>,
    /// True if pages are sampled without Valgrind: windows take the place of quanta, and the log
    /// says where they end.
    pub is_live: bool,
}

/// A process and what is known of its program.
#[derive(Debug)]
pub struct Process {
    reducer: Reducer,
    runs: Runs,
    page_shift: u32,
    parent: u32,
    /// The number that it has here, if it may have another for itself.
    number: Option<u32>,
    /// The lowest page the stack of the first thread may grow to.
    stack_floor: u64,
    /// The program it is about to execute.
    executing: Option<String>,
    has_started: bool,
    has_ended: bool,
    /// True if the process was ended by a signal, which is not named here.
    is_fatal: bool,
}

impl Process {
    /// A process that `parent` forked, or 0 if its parent is not in the trace.
    pub fn new(parent: u32, settings: Settings, sink: Sink) -> Process {
        let sheet = Sheet::new(sink);
        let quantum = match settings.is_live {
            true => Some(u64::MAX),
            false => settings.quantum,
        };
        Process {
            reducer: Reducer::new(sheet, settings.page_shift, quantum),
            runs: Runs::default(),
            page_shift: settings.page_shift,
            parent,
            number: None,
            stack_floor: 0,
            executing: None,
            has_started: false,
            has_ended: false,
            is_fatal: false,
        }
    }

    /// Instructions executed so far, or nanoseconds.
    pub fn time(&self) -> u64 {
        self.reducer.time
    }

    /// Records made so far.
    pub fn records(&self) -> u64 {
        self.reducer.sheet.records()
    }

    /// Pages it has referred to.
    pub fn pages(&self) -> u64 {
        self.reducer.sheet.pages()
    }

    /// Forgets the code of the program before: another log begins.
    pub fn begin_log(&mut self) {
        self.runs.clear();
    }

    /// Plays the entries in `words`. If `is_torn`, a run at the very end may be unfinished, and is
    /// left out.
    pub fn play(&mut self, words: &Words, is_torn: bool) {
        let mut at = 0;
        while at < words.len() {
            let head = word_at(words, at);
            let number = head as u32;
            if (head >> 56) as u8 == kind::RUN {
                let Some(run) = self.runs.get(number as usize) else {
                    return;
                };
                let end = at + 1 + run.words;
                let Some(logged) = words.get(at..end) else {
                    if self.runs.prepare(number as usize, self.page_shift) {
                        continue;
                    }
                    return;
                };
                let next = words.get(end);
                if next.is_some_and(|next| next[7] == kind::CUT) {
                    self.play_cut(number, logged, word_at(words, end + 1));
                } else if next.is_some() || !is_torn {
                    self.reducer.play(run, logged);
                }
                at = end;
            } else {
                let length = (head >> 32) as usize & 0xff_ffff;
                let entry = words.get(at + 1..at + length.max(1)).unwrap_or_default();
                self.play_entry((head >> 56) as u8, number, entry);
                at += length.max(1);
            }
        }
    }

    /// Takes in an event that its log does not have, here.
    pub fn note(&mut self, event: Event) {
        self.reducer.settle_exact();
        self.reducer.event(event);
    }

    /// Names the process by the number that it has here, whatever it calls itself.
    pub fn set_number(&mut self, pid: u32) {
        self.number = Some(pid);
    }

    /// Begins as a copy of its parent of which nothing is in the trace: the program that its log
    /// begins with is one that it executes.
    pub fn begin_as_copy(&mut self, pid: u32) {
        let (parent, program) = (self.parent, String::new());
        self.reducer.event(Event::Life(LifeEvent::Start {
            pid,
            parent,
            program,
        }));
        self.has_started = true;
    }

    /// Makes final what there is of a window, however long it goes on.
    pub fn drain_window(&mut self) {
        self.reducer.drain_window();
    }

    /// Makes what there is into a block, so that what comes of other processes stands after it.
    pub fn finish_block(&mut self) {
        self.reducer.sheet.finish_block();
    }

    /// The process is no more. `find_signal` tells the signal that ended it, if it was one whose
    /// number its log lacks.
    pub fn end(&mut self, find_signal: impl FnOnce() -> Option<u32>) {
        const KILL: u32 = 9;
        self.reducer.settle();
        let executing = self.executing.take();
        let is_elsewhere = executing.is_some();
        if let Some(program) = executing {
            // A program that is not recorded: its end is not known here.
            self.reducer.event(Event::Life(LifeEvent::Exec { program }));
        }
        if !self.has_ended && !is_elsewhere {
            let signal = match self.is_fatal {
                true => find_signal().unwrap_or(KILL),
                false => KILL,
            };
            self.reducer
                .event(Event::Life(LifeEvent::Killed { signal }));
        }
        self.has_ended = true;
        self.finish_block();
    }

    /// The process is no more, and ended as `end` says, where that is known.
    pub fn end_as(&mut self, end: Option<End>) {
        self.reducer.settle();
        match end {
            Some(End::Status(status)) => {
                self.reducer.event(Event::Life(LifeEvent::Exit { status }))
            }
            Some(End::Signal(signal)) => self
                .reducer
                .event(Event::Life(LifeEvent::Killed { signal })),
            None => {}
        }
        self.finish_block();
    }

    /// The recording ends before the process does.
    pub fn leave(&mut self) {
        self.reducer.settle();
        self.finish_block();
    }

    /// Plays a run that a fault ended at the instruction at `place`.
    #[cold]
    fn play_cut(&mut self, number: u32, words: &Words, place: u64) {
        let Some(run) = self.runs.get(number as usize) else {
            return;
        };
        match run.cut(place) {
            Some(cut) => self.reducer.play_cut(&cut, words),
            None => self.reducer.play(run, words),
        }
    }

    fn play_entry(&mut self, entry: u8, argument: u32, words: &Words) {
        let word = |index: usize| word_at(words, index);
        let tail = |index: usize| text_at(words, index);
        match entry {
            kind::DEFINE => self.define(argument as usize, words),
            kind::HELLO => self.hello(word(0), word(2), tail(4)),
            kind::KERNEL if word(1) > 0 => {
                let kinds = argument as u8 & (Kinds::LOAD.0 | Kinds::STORE.0);
                let bytes = word(1).min(TRANSFER_BYTES_MAX);
                self.reducer.kernel(word(0), bytes, kinds);
            }
            kind::CLOCK => self.reducer.set_time(word(0)),
            kind::TOUCH => self.reducer.touch(word(0), argument as u8 & Kinds::ALL.0),
            kind::TOUCH_SHARE => self.reducer.touch_share(word(0), word(1), argument),
            kind::WINDOW => self.reducer.settle(),
            kind::WINDOW_LENGTH => self.reducer.event(Event::Windows { ns: word(0) }),
            kind::MARK => self.note(Event::Mark { name: tail(0) }),
            kind::THREAD_SWITCH => {
                self.reducer.settle_exact();
                self.reducer
                    .event(Event::Life(LifeEvent::ThreadSwitch { thread: argument }));
            }
            kind::FILE => self.file(argument, word(0), word(1), tail(2)),
            kind::EXEC => self.executing = Some(tail(0)),
            kind::EXEC_FAILED => self.executing = None,
            kind::FATAL => self.is_fatal = true,
            kind::EXIT => {
                self.has_ended = true;
                self.reducer
                    .event(Event::Life(LifeEvent::Exit { status: argument }));
            }
            _ => {
                if let Some(event) = self.event(entry, argument, words) {
                    self.watch_stack(&event);
                    self.reducer.event(event);
                }
            }
        }
    }

    /// Notes the use a system call made of a file: reads it, writes it, or cuts it.
    fn file(&mut self, what: u32, offset: u64, bytes: u64, file: String) {
        // No file is longer; a log that is damaged may say so.
        let bytes = bytes.min(u64::MAX - offset);
        match what {
            0 => self.reducer.moved(Event::File(FileEvent::Read {
                file,
                offset,
                bytes,
            })),
            1 => self.reducer.moved(Event::File(FileEvent::Write {
                file,
                offset,
                bytes,
            })),
            _ => self
                .reducer
                .event(Event::File(FileEvent::Cut { file, bytes })),
        }
    }

    /// The event of an entry, if it needs no other change.
    fn event(&self, entry: u8, argument: u32, words: &Words) -> Option<Event> {
        let word = |index: usize| word_at(words, index);
        let page = |index: usize| word(index) >> self.page_shift;
        let rights = Rights(argument as u8 & 7);
        Some(match entry {
            kind::MAP => Event::Mapping(MappingEvent::Map {
                start: page(0),
                pages: self.span(word(0), word(1)),
                rights,
                is_shared: argument & RIGHTS_SHARED != 0,
                memory: text_at(words, 3).into(),
                offset: word(2),
            }),
            kind::UNMAP => Event::Mapping(MappingEvent::Unmap {
                start: page(0),
                pages: self.span(word(0), word(1)),
            }),
            kind::REMAP => Event::Mapping(MappingEvent::Remap {
                from: page(0),
                from_pages: self.span(word(0), word(1)),
                to: page(2),
                to_pages: self.span(word(2), word(3)),
            }),
            kind::PROTECT => Event::Mapping(MappingEvent::Protect {
                start: page(0),
                pages: self.span(word(0), word(1)),
                rights,
            }),
            kind::BREAK => Event::Mapping(MappingEvent::Break {
                end: self.span(0, word(0)),
            }),
            kind::THREAD_START => Event::Life(LifeEvent::ThreadStart { thread: argument }),
            kind::THREAD_EXIT => Event::Life(LifeEvent::ThreadExit { thread: argument }),
            kind::FORK => Event::Life(LifeEvent::Fork { child: argument }),
            kind::WAIT => Event::Life(LifeEvent::Wait {
                call: argument,
                ns: word(0),
            }),
            _ => return None,
        })
    }

    /// The pages that `bytes` from `start` are on.
    fn span(&self, start: u64, bytes: u64) -> u64 {
        let end = start.saturating_add(bytes);
        let last = end.div_ceil(1 << self.page_shift);
        last - (start >> self.page_shift)
    }

    fn define(&mut self, number: usize, items: &Words) {
        let items = items.iter().map(|&item| u64::from_le_bytes(item));
        self.runs.define(number, items.collect());
    }

    fn hello(&mut self, pid: u64, stack_floor: u64, program: String) {
        self.reducer.sheet.watch_stack(Stack::default());
        self.stack_floor = stack_floor >> self.page_shift;
        let executing = self.executing.take();
        if self.has_started {
            self.reducer.settle();
            let program = executing.unwrap_or(program);
            self.reducer.event(Event::Life(LifeEvent::Exec { program }));
        } else {
            self.reducer.event(Event::Life(LifeEvent::Start {
                pid: self.number.unwrap_or(pid as u32),
                parent: self.parent,
                program,
            }));
        }
        self.has_started = true;
    }

    /// Watches a stack that has been mapped for its growth.
    fn watch_stack(&mut self, event: &Event) {
        if let Event::Mapping(MappingEvent::Map { start, memory, .. }) = event
            && *memory == Memory::Stack
        {
            self.reducer.sheet.watch_stack(Stack {
                floor: self.stack_floor.min(*start),
                low: *start,
            });
        }
    }
}

/// A text of an entry, no longer than a trace can hold.
fn text_at(words: &Words, index: usize) -> String {
    tidemark_log::text_at(words, index, Block::TEXT_BYTES_MAX)
}
