//! The workspace as the rules see it: every text file that git would track, in order of path.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// Folders that hold no source of ours.
const SKIPPED: [&str; 5] = [".git", "target", "out", "__pycache__", "corpus"];

/// The files of a workspace by their path from its root, with `/` between folders.
#[derive(Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
    /// Pictures and links: there, but no text to be checked.
    others: BTreeSet<String>,
}

impl Tree {
    /// Reads every text file under `root`.
    ///
    /// # Errors
    /// Whatever the file system reports of a folder or file that can't be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    /// A tree of one file, for tests of rules.
    #[cfg(test)]
    pub fn of(path: &str, text: &str) -> Self {
        let mut tree = Self::default();
        tree.add(path, text);
        tree
    }

    /// Adds a file; tests build their trees with this.
    pub fn add(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.to_owned());
    }

    /// The text of the file at `path`, if there is one.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns true if there is a file of any kind at `path`, or a folder with one.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        let is_in = |found: Option<&String>| found.is_some_and(|at| at.starts_with(&folder));
        self.files.contains_key(path)
            || self.others.contains(path)
            || is_in(self.files.range(folder.clone()..).next().map(|(at, _)| at))
            || is_in(self.others.range(folder.clone()..).next())
    }

    /// Every file of text, in order of path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Every Rust file, in order of path.
    pub fn rust_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The folder names of the crates, in order.
    pub fn crates(&self) -> impl Iterator<Item = &str> {
        self.files().filter_map(|(path, _)| {
            path.strip_prefix("crates/")?
                .strip_suffix("/Cargo.toml")
                .filter(|at| !at.contains('/'))
        })
    }

    fn read_folder(&mut self, folder: &Path, path: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if SKIPPED.contains(&name.as_str()) {
                continue;
            }
            let at = if path.is_empty() {
                name
            } else {
                format!("{path}/{name}")
            };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.read_folder(&entry.path(), &at)?;
            } else if kind.is_file() {
                // What is not UTF-8 is a picture or the like, whose contents no rule speaks of.
                match String::from_utf8(std::fs::read(entry.path())?) {
                    Ok(text) => drop(self.files.insert(at, text)),
                    Err(_) => drop(self.others.insert(at)),
                }
            } else {
                self.others.insert(at);
            }
        }
        Ok(())
    }
}
