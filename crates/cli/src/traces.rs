//! The parts that the commands about traces share: their inputs, their outputs, and messages about
//! damaged traces.
//!
//! `-` stands for standard input and output. A file appears under its name only when it is whole.

mod count;
mod told;

pub use crate::progress::Progress;
pub use count::count;
pub use told::told;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::Path;

use tidemark_results::text;
use tidemark_supervisor::program::plain;
use tidemark_trace::{Ending, Error, ErrorKind, Reader};

use crate::exit::{Exit, Refusal, refuse};
use crate::files::OutputFile;
use crate::output::say;

/// The source that a command reads.
pub struct Input {
    /// The name in messages.
    pub name: String,
    source: Box<dyn Read>,
    bytes: Option<u64>,
}

/// The destination that a command writes.
pub enum Output {
    /// A draft, which replaces the named file when it is complete.
    File {
        /// The name in messages.
        name: String,
        /// The file.
        file: OutputFile,
    },
    /// Standard output.
    Stdout,
}

impl Input {
    /// Opens the file at `path`; `-` is standard input.
    pub fn open(path: &Path) -> Result<Input, Refusal> {
        if path.as_os_str() == "-" {
            return Ok(Input {
                name: "standard input".into(),
                source: Box::new(io::stdin().lock()),
                bytes: None,
            });
        }
        let name = path.display().to_string();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => refuse!("`{name}`: {}; name a file that can be read", plain(&error)),
        };
        let metadata = file.metadata().ok();
        if metadata.as_ref().is_some_and(|found| found.is_dir()) {
            refuse!("`{name}`: is a directory; name a file in it");
        }
        let is_file = |found: &std::fs::Metadata| found.is_file();
        Ok(Input {
            name,
            source: Box::new(file),
            bytes: metadata.filter(is_file).map(|found| found.len()),
        })
    }

    /// The bytes, with a bar that shows how far reading has come.
    pub fn metered(self) -> (String, impl Read) {
        let progress = Progress::bytes(self.bytes);
        (self.name, progress.meter(self.source))
    }
}

impl Output {
    /// Opens the file at `path`; `-` is standard output. A terminal takes text alone.
    pub fn open(path: &Path, is_text: bool) -> Result<Output, Refusal> {
        if path.as_os_str() != "-" {
            return Ok(Output::File {
                name: path.display().to_string(),
                file: OutputFile::new(path)?,
            });
        }
        if !is_text && io::stdout().is_terminal() {
            refuse!("standard output is a terminal, and this is no text; name a file with `-o`");
        }
        Ok(Output::Stdout)
    }

    /// The writer.
    pub fn writer(&self) -> Result<Box<dyn Write + Send>, Refusal> {
        Ok(match self {
            Output::Stdout => Box::new(BufWriter::with_capacity(1 << 16, io::stdout())),
            Output::File { name, file } => match file.file().try_clone() {
                Ok(file) => Box::new(BufWriter::with_capacity(1 << 16, file)),
                Err(error) => refuse!("`{name}`: {}", plain(&error)),
            },
        })
    }

    /// Puts the file in its place, once all is written.
    pub fn close(self) -> Result<(), Refusal> {
        match self {
            Output::File { file, .. } => file.put_in_place(),
            Output::Stdout => Ok(()),
        }
    }

    /// Puts a trace in its place, once all is written. What was there before is kept, as a
    /// recording does, and a line says where.
    pub fn close_trace(self) -> Result<(), Refusal> {
        let Output::File { file, .. } = self else {
            return Ok(());
        };
        if let Some(old) = file.put_beside_old()? {
            say!(
                "tidemark: the trace that was there is now `{}`",
                old.display()
            );
        }
        Ok(())
    }

    /// The end of the command after `error`: a reader of standard output that has gone away wants
    /// no more, and that is none.
    pub fn failed(&self, input: &str, error: &Error) -> Result<Exit, Refusal> {
        let cause = match &error.kind {
            ErrorKind::System(cause) => cause.kind(),
            _ => io::ErrorKind::Other,
        };
        match (self, cause) {
            (Output::Stdout, io::ErrorKind::BrokenPipe) => Ok(Exit::Fine),
            (Output::File { name, .. }, io::ErrorKind::StorageFull) => {
                refuse!("`{name}`: no room is left; make some, or name a file elsewhere")
            }
            _ => Err(refusal(input, error)),
        }
    }
}

/// The file that a command which reads by name is to open for `path`; `-` is standard input.
pub fn openable(path: &Path) -> &Path {
    match path.as_os_str() == "-" {
        true => Path::new("/dev/stdin"),
        false => path,
    }
}

/// The name of the trace at `path` in messages.
pub fn name_of(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "standard input".into(),
        false => path.display().to_string(),
    }
}

/// Opens the trace in `input`.
pub fn open(input: Input) -> Result<(String, Reader<impl Read>), Refusal> {
    let (name, source) = input.metered();
    match Reader::new(source) {
        Ok(reader) => Ok((name, reader)),
        Err(error) => Err(refusal(&name, &error)),
    }
}

/// Looks how the trace called `name` ended, after it was read. One that broke off inside a part is
/// refused unless `is_partial`; of one that ended early a note tells.
pub fn check_ending<R: Read>(
    name: &str,
    reader: &Reader<R>,
    is_partial: bool,
) -> Result<(), Refusal> {
    if !is_partial && let Err(error) = reader.check_ending() {
        return Err(refusal(name, &error));
    }
    if let Ending::Cut { at, .. } = reader.ending() {
        let records = text::count(reader.index().records());
        say!(
            "tidemark: `{name}`: ends early, at byte {at}; the {records} records before are intact"
        );
    }
    Ok(())
}

/// The refusal of a trace, or of what should become one, called `name`.
pub fn refusal(name: &str, error: &Error) -> Refusal {
    match &error.kind {
        ErrorKind::System(cause) => Refusal::new(format!("`{name}`: {}", plain(cause))),
        _ => Refusal::new(format!("`{name}`: {}", told(error))),
    }
}
