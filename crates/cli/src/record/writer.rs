//! Writing the trace, on a thread of its own: packing blocks is most of the work.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tidemark_trace::{Block, Error, Header, Writer};

use super::sheet::Sink;
use crate::exit::{Refusal, refuse};
use crate::files::Recorded;

/// Blocks that may wait to be written. A block is 850 kB.
const BLOCKS_WAITING: usize = 32;

/// A trace that is being written.
#[derive(Debug)]
pub struct Writing {
    thread: JoinHandle<Result<(), Error>>,
    progress: Arc<Progress>,
    recorded: Recorded,
}

/// A trace that has been written.
#[derive(Debug)]
pub struct Written {
    /// Its length.
    pub bytes: u64,
    /// Where the trace that was there before is.
    pub old: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct Progress {
    bytes: AtomicU64,
    has_failed: AtomicBool,
}

impl Writing {
    /// Begins a trace at `path`; blocks that go into the sink are written to it.
    pub fn begin(path: &Path, header: &Header) -> Result<(Writing, Sink), Refusal> {
        let recorded = Recorded::begin(path)?;
        let writer = recorded.file().map_err(Error::from);
        let writer = match writer.and_then(|file| Writer::new(file, header)) {
            Ok(writer) => writer,
            Err(error) => refuse!("`{}`: {error}", path.display()),
        };
        let (finished, blocks) = sync_channel(BLOCKS_WAITING);
        let sink = Sink {
            finished,
            empty: Arc::default(),
            process_next: Arc::new(AtomicU32::new(0)),
        };
        let progress = Arc::new(Progress::default());
        let (empty, told) = (sink.empty.clone(), progress.clone());
        let thread = std::thread::spawn(move || {
            let written = write_all(writer, blocks, &empty, &told);
            told.has_failed.store(written.is_err(), Ordering::Relaxed);
            written
        });
        let writing = Writing {
            thread,
            progress,
            recorded,
        };
        Ok((writing, sink))
    }

    /// The bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.progress.bytes.load(Ordering::Relaxed)
    }

    /// Whether nothing more will be written: [`finish`](Self::finish) tells why.
    pub fn has_failed(&self) -> bool {
        self.progress.has_failed.load(Ordering::Relaxed)
    }

    /// Completes the trace, once all sinks are gone. One of no process is not kept.
    pub fn finish(self, path: &Path, processes: usize) -> Result<Written, Refusal> {
        let written = self.thread.join().expect("writing a block does not panic");
        let old = match processes {
            0 => None,
            _ => self.recorded.keep(),
        };
        match written {
            Ok(()) => Ok(Written {
                bytes: self.progress.bytes.load(Ordering::Relaxed),
                old,
            }),
            Err(error) => refuse!(
                "`{}`: {error}; the trace ends where that happened",
                path.display()
            ),
        }
    }
}

fn write_all(
    mut writer: Writer<File>,
    blocks: Receiver<Block>,
    empty: &Mutex<Vec<Block>>,
    progress: &Progress,
) -> Result<(), Error> {
    for block in blocks {
        writer.write(&block)?;
        progress.bytes.store(writer.bytes(), Ordering::Relaxed);
        if let Ok(mut blocks) = empty.lock() {
            blocks.push(block);
        }
    }
    writer.finish().map(drop)
}
