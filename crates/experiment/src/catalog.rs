//! The experiments there are, and the files their workloads need: built in, or of a folder.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use tidemark_lab::names::hint;
use tidemark_lab::near::collect_near;
use tidemark_results::{Refusal, refuse};

use crate::file::{self, File};

macro_rules! embedded {
    ($folder:literal, $ending:literal, $($name:literal)*) => {
        &[$((
            $name,
            include_str!(concat!("../../../bench/", $folder, "/", $name, $ending)),
        ),)*]
    };
}

/// Name and text of each experiment, in the order `--all` runs them.
static EXPERIMENTS: &[(&str, &str)] = embedded! {
    "experiments", ".toml",
    "tcm3"
    "sng10"
    "image-round-trip"
    "make-j32"
    "make-j2"
    "fork-storm"
    "file-load"
    "sheeptest"
    "nonaim"
    "working-sets"
    "build-memory"
    "locks"
    "tcm3-live"
    "sng10-live"
    "sheeptest-live"
    "nonaim-live"
};

/// Name and text of each file of `bench/workloads`.
static WORKLOADS: &[(&str, &str)] = embedded! {
    "workloads", "",
    "build.mk"
    "eigen.cpp"
    "file-load.c"
    "fork-storm.c"
    "matrix-product.cpp"
    "matrix-sine.cpp"
    "others.sh"
    "page.js"
    "round-trip.sh"
    "sheep.c"
    "user.sh"
};

/// The source of experiments.
pub struct Catalog {
    /// The folder with experiments; `None`: those that are built in.
    folder: Option<PathBuf>,
    entries: Vec<(String, Cow<'static, str>)>,
}

impl Catalog {
    /// The experiments of a folder, or those that are built in.
    ///
    /// # Errors
    /// The line that says what is wrong with the folder, behind its name.
    pub fn new(folder: Option<&Path>) -> Result<Catalog, Refusal> {
        let Some(folder) = folder else {
            let entries = EXPERIMENTS.iter();
            let entries = entries.map(|&(name, text)| (name.to_owned(), Cow::Borrowed(text)));
            return Ok(Catalog {
                folder: None,
                entries: entries.collect(),
            });
        };
        let entries = read_folder(folder).map_err(|error| Refusal::new(error.to_string()))?;
        if entries.is_empty() {
            refuse!("has no `NAME.toml`; name a folder like bench/experiments");
        }
        Ok(Catalog {
            folder: Some(folder.to_owned()),
            entries,
        })
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// The experiment of that name.
    pub fn read(&self, name: &str) -> Result<File, Refusal> {
        let found = self.entries.iter().find(|(known, _)| known == name);
        let Some((_, text)) = found else {
            let near = collect_near(name, self.names());
            let told = hint(&near, "experiment --list");
            refuse!("`{name}`: no such experiment; {told}");
        };
        let shown = match &self.folder {
            Some(folder) => folder.join(name).display().to_string(),
            None => name.to_owned(),
        };
        file::parse(&format!("{shown}.toml"), text).map_err(Refusal::new)
    }

    /// The contents of a file of a workload.
    pub fn workload_file(&self, name: &str) -> Option<Vec<u8>> {
        let beside = self.folder.as_ref();
        let beside = beside.map(|folder| folder.join("../workloads").join(name));
        if let Some(contents) = beside.and_then(|path| std::fs::read(path).ok()) {
            return Some(contents);
        }
        let known = WORKLOADS.iter().find(|(known, _)| *known == name);
        known.map(|(_, text)| text.as_bytes().to_vec())
    }
}

fn read_folder(folder: &Path) -> std::io::Result<Vec<(String, Cow<'static, str>)>> {
    let mut entries = vec![];
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            entries.push((name.into_owned(), std::fs::read_to_string(&path)?.into()));
        }
    }
    entries.sort();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_repository_is_built_in() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench"));
        let folder = Catalog::new(Some(&root.join("experiments"))).unwrap();
        let mut embedded: Vec<String> = Catalog::new(None)
            .unwrap()
            .names()
            .map(Into::into)
            .collect();
        embedded.sort();
        assert_eq!(folder.names().collect::<Vec<_>>(), embedded);
    }

    #[test]
    fn an_unknown_name_is_told_those_that_are_near() {
        let catalog = Catalog::new(None).unwrap();
        let told = catalog.read("fork-strom").unwrap_err().to_string();
        assert!(told.contains("`fork-storm`"), "{told}");
    }
}
