//! The collector, on logs that are written here by hand.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, sync_channel};

use tidemark_log::{HEADER_BYTES, Head, MAGIC, PUBLISHED_AT, kind};
use tidemark_recording::spool::BELL;
use tidemark_recording::{Collector, Settings, Sink, Spool, now_ns};
use tidemark_trace::{Block, Event, LifeEvent};

/// A stamp that has not come when the test is over.
const LATER_NS: u64 = 3_600_000_000_000;
const CHUNK_WORDS: u64 = 1 << 10;

/// A log, as its process writes it.
struct Written {
    file: File,
    words: u64,
    publications: u64,
}

impl Written {
    fn put(&self, word: Head, value: u64) {
        self.file
            .write_all_at(&value.to_le_bytes(), word as u64 * 8)
            .unwrap();
    }

    fn entry(&mut self, kind: u8, argument: u64, words: &[u64]) {
        let head = u64::from(kind) << 56 | (words.len() as u64 + 1) << 32 | argument;
        for word in [&[head], words].concat() {
            let at = HEADER_BYTES as u64 + self.words * 8;
            self.file.write_all_at(&word.to_le_bytes(), at).unwrap();
            self.words += 1;
        }
        self.put(Head::Next, self.words * 8);
    }

    fn publish(&mut self, stamp_ns: u64) {
        let at = PUBLISHED_AT as u64 + self.publications * 16;
        let bytes = [self.words, stamp_ns].map(u64::to_le_bytes).concat();
        self.file.write_all_at(&bytes, at).unwrap();
        self.publications += 1;
        self.put(Head::Publications, self.publications);
    }
}

/// A collector, and what it makes.
struct Recording {
    folder: PathBuf,
    collector: Collector,
    blocks: Receiver<Block>,
    logs: u32,
}

impl Recording {
    fn new() -> Recording {
        let spool = Spool::new().unwrap();
        let folder = spool.path.clone();
        let (finished, blocks) = sync_channel(100);
        let settings = Settings {
            page_shift: 12,
            quantum: None,
            is_live: false,
        };
        Recording {
            folder,
            collector: Collector::new(spool, settings, Sink::new(finished), |_| None),
            blocks,
            logs: 0,
        }
    }

    /// The log of a program that process `pid` has begun to run.
    fn log(&mut self, pid: u32) -> Written {
        self.logs += 1;
        let name = format!("{pid}-{}", self.logs);
        let path = self.folder.join(name);
        let file = File::create_new(path).unwrap();
        file.set_len(HEADER_BYTES as u64 + 2 * CHUNK_WORDS * 8)
            .unwrap();
        file.write_all_at(&MAGIC.to_le_bytes(), 0).unwrap();
        let mut log = Written {
            file,
            words: 0,
            publications: 0,
        };
        log.put(Head::Pid, pid.into());
        log.put(Head::ChunkWords, CHUNK_WORDS);
        log.put(Head::Chunks, 2);
        log.entry(kind::HELLO, 0, &[pid.into(), 0, 0, 0, 0]);
        self.ring(&format!("log {pid} {}\n", self.logs));
        log
    }

    fn ring(&self, line: &str) {
        let mut bell = File::options()
            .write(true)
            .open(self.folder.join(BELL))
            .unwrap();
        bell.write_all(line.as_bytes()).unwrap();
    }

    /// Ends the recording, and returns the events of each process, with its number.
    fn finish(mut self) -> Vec<(u32, Event)> {
        let end = tidemark_trace::summary::End::Status(0);
        self.collector.finish((0, end));
        drop(self.collector);
        let blocks = self.blocks.iter();
        blocks
            .flat_map(|block| {
                let process = block.process;
                block
                    .events
                    .into_iter()
                    .map(move |placed| (process, placed.event))
            })
            .collect()
    }
}

/// A process that does nothing, to be ended.
fn idle() -> Child {
    Command::new("sleep").arg("1000").spawn().unwrap()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn found_false_a_process_that_executes_is_not_taken_for_one_that_is_gone() {
    let mut recording = Recording::new();
    let (executes, ends) = (idle(), idle());
    let mut first = recording.log(executes.id());
    let mut other = recording.log(ends.id());
    first.publish(now_ns());
    other.publish(now_ns());
    recording.collector.play_round();
    // In one round, one ends, and one that was known before it begins another log.
    end(ends);
    let mut second = recording.log(executes.id());
    second.publish(now_ns());
    recording.collector.play_round();
    second.entry(kind::EXIT, 7, &[]);
    second.publish(now_ns());
    recording.collector.play_round();
    end(executes);
    let events = recording.finish();
    let of = |process: u32| {
        let events = events.iter().filter(move |(of, _)| *of == process);
        events.map(|(_, event)| event).collect::<Vec<_>>()
    };
    assert!(
        matches!(
            of(0)[..],
            [
                Event::Life(LifeEvent::Start { .. }),
                Event::Life(LifeEvent::Exec { .. }),
                Event::Life(LifeEvent::Exit { status: 7 })
            ]
        ),
        "{events:?}"
    );
    assert!(
        matches!(
            of(1)[..],
            [
                Event::Life(LifeEvent::Start { .. }),
                Event::Life(LifeEvent::Killed { signal: 9 })
            ]
        ),
        "{events:?}"
    );
}

#[test]
fn a_mark_that_comes_late_stands_before_what_was_published_after_it() {
    let mut recording = Recording::new();
    let process = idle();
    let pid = process.id();
    let mut log = recording.log(pid);
    log.publish(now_ns());
    recording.collector.play_round();
    let moment = now_ns() + LATER_NS;
    // The round has looked for marks; the mark comes, and its process goes on and publishes.
    log.entry(kind::THREAD_START, 5, &[]);
    log.publish(moment + 1);
    recording.collector.play_round();
    recording.ring(&format!("mark {pid} {moment} here\n"));
    end(process);
    let events: Vec<Event> = recording.finish().into_iter().map(|it| it.1).collect();
    let mark = events
        .iter()
        .position(|it| matches!(it, Event::Mark { .. }));
    let thread = events
        .iter()
        .position(|it| matches!(it, Event::Life(LifeEvent::ThreadStart { .. })));
    assert!(mark.is_some() && mark < thread, "{events:?}");
}
