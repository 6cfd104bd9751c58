//! The file of a recording's trace, and the older trace that it replaces.

use std::path::{Path, PathBuf};

use tidemark_recording::Sink;
use tidemark_trace::{Error, Header};

use crate::exit::{Refusal, refuse};
use crate::files::Recorded;

/// A trace that is being written.
#[derive(Debug)]
pub struct Writing {
    inner: tidemark_recording::Writing,
    recorded: Recorded,
}

/// A trace that has been written.
#[derive(Debug)]
pub struct Written {
    /// Its length.
    pub bytes: u64,
    /// The path of the trace that was there before.
    pub old: Option<PathBuf>,
}

impl Writing {
    /// Begins a trace at `path`; blocks that go into the sink are written to it.
    pub fn begin(path: &Path, header: &Header) -> Result<(Writing, Sink), Refusal> {
        let recorded = Recorded::begin(path)?;
        let file = recorded.file().map_err(Error::from);
        let begun = file.and_then(|file| tidemark_recording::Writing::begin(file, header));
        match begun {
            Ok((inner, sink)) => Ok((Writing { inner, recorded }, sink)),
            Err(error) => refuse!("`{}`: {error}", path.display()),
        }
    }

    /// The bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    /// Returns true if nothing more will be written: [`finish`](Self::finish) tells why.
    pub fn has_failed(&self) -> bool {
        self.inner.has_failed()
    }

    /// Completes the trace, once all sinks are gone. One of no process is not kept.
    pub fn finish(self, path: &Path, processes: usize) -> Result<Written, Refusal> {
        let written = self.inner.finish();
        let old = match processes {
            0 => None,
            _ => self.recorded.keep(),
        };
        match written {
            Ok(bytes) => Ok(Written { bytes, old }),
            Err(error) => refuse!(
                "`{}`: {error}; the trace ends where that happened",
                path.display()
            ),
        }
    }
}
