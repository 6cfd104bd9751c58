//! Writing the trace, on a thread of its own: packing blocks is most of the work.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tidemark_trace::{Block, Error, Header, Writer};

use crate::sheet::Sink;

/// Blocks that may wait to be written. A block is 850 kB.
const BLOCKS_WAITING: usize = 32;

/// A trace that is being written.
#[derive(Debug)]
pub struct Writing {
    thread: JoinHandle<Result<(), Error>>,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    bytes: AtomicU64,
    has_failed: AtomicBool,
}

impl Writing {
    /// Begins a trace in `file`; blocks that go into the sink are written to it.
    ///
    /// # Errors
    /// If the header can't be written.
    pub fn begin(file: File, header: &Header) -> Result<(Writing, Sink), Error> {
        let writer = Writer::new(file, header)?;
        let (finished, blocks) = sync_channel(BLOCKS_WAITING);
        let sink = Sink::new(finished);
        let progress = Arc::new(Progress::default());
        let (empty, told) = (sink.empty.clone(), progress.clone());
        let thread = std::thread::spawn(move || {
            let written = write_all(writer, blocks, &empty, &told);
            told.has_failed.store(written.is_err(), Ordering::Relaxed);
            written
        });
        Ok((Writing { thread, progress }, sink))
    }

    /// The bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.progress.bytes.load(Ordering::Relaxed)
    }

    /// Returns true if nothing more will be written: [`finish`](Self::finish) tells why.
    pub fn has_failed(&self) -> bool {
        self.progress.has_failed.load(Ordering::Relaxed)
    }

    /// Completes the trace, once all sinks are gone. Answers its length in bytes.
    ///
    /// # Errors
    /// If it could not be written; it ends where that happened.
    pub fn finish(self) -> Result<u64, Error> {
        let written = self.thread.join().expect("writing a block does not panic");
        written.map(|()| self.progress.bytes.load(Ordering::Relaxed))
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
