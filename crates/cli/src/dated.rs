//! Dated records: where they are kept. [`tidemark_hostbench::dated`] says where and when something
//! was measured.

use std::fs;
use std::path::Path;

use crate::exit::{Refusal, refuse};
use crate::files;
use crate::output::say;

pub use tidemark_hostbench::dated::{commit, machine, now};

/// Writes `text` into a file of `folder` that is named by the date, and `ending` after it.
pub fn write(folder: &Path, date: &str, ending: &str, text: &str) -> Result<(), Refusal> {
    let path = folder.join(format!("{}{ending}.json", date.replace(':', "")));
    if let Err(error) = fs::create_dir_all(folder) {
        refuse!("`--record {}`: {error}", folder.display());
    }
    files::write(&path, text.as_bytes())?;
    say!("written: {}", path.display());
    Ok(())
}
