//! Reads the traces of an experiment.

use std::path::Path;
use std::sync::Arc;

use tidemark_lab::world::Script;
use tidemark_results::Refusal;
use tidemark_results::experiment::ProgramFacts;
use tidemark_trace::Reader;

/// A trace that has been read.
pub struct Read {
    /// The name in the file.
    pub name: String,
    /// The script of its processes.
    pub script: Arc<Script>,
    /// The programs that ran.
    pub facts: ProgramFacts,
}

/// Reads a trace, and its facts.
pub fn read(name: &str, path: &Path) -> Result<Read, Refusal> {
    let opened = Reader::open(path).and_then(|mut reader| {
        let script = Script::read(&mut reader)?;
        reader.check_ending()?;
        Ok((reader.header().clone(), script))
    });
    let (header, script) =
        opened.map_err(|error| Refusal::new(format!("`{}`: {error}", path.display())))?;
    Ok(Read {
        name: name.into(),
        facts: ProgramFacts {
            name: name.into(),
            command: header.command,
            records: script.len() as u64,
            pages: script.pages(),
            processes: script.process_count() as u64,
            source: header.source,
        },
        script: Arc::new(script),
    })
}
