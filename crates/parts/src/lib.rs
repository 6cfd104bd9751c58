//! The parts of Tidemark that are files of their own, and the places where the command finds them.
//!
//! The command is run where it was built, or in a tree that was installed; and that tree may be
//! moved. So places follow from the folder of the command itself, and none is fixed when it is
//! built. A part that a variable of the environment names is looked for there alone.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tidemark_results::{Refusal, refuse};

/// The library that is loaded into programs before any other.
pub const PRELOAD_LIBRARY: Part = Part {
    name: "preload library",
    variable: "TIDEMARK_SHIM",
    places: &["libtidemark_shim.so", "../lib/tidemark/libtidemark_shim.so"],
    inside: None,
    built_by: "`make build` builds it",
};

/// The folder that Valgrind takes for its own, with the recorder in it: Valgrind makes the name of
/// the file of the tool's and the machine's.
pub const RECORDER: Part = Part {
    name: "recorder",
    variable: "TIDEMARK_RECORDER",
    places: &["recorder", "../recorder", "../lib/tidemark/recorder"],
    inside: Some("tidemark-amd64-linux"),
    built_by: "`apt-get install valgrind` and `make -C recorder` build it",
};

/// The folder of the kernel and its programs.
pub const KERNEL: Part = Part {
    name: "kernel",
    variable: "TIDEMARK_KERNEL",
    places: &["../kernel/boot", "../lib/tidemark/kernel"],
    inside: Some("kernel"),
    built_by: "`make kernel` builds it",
};

/// A part that is a file or a folder of its own.
#[derive(Debug)]
pub struct Part {
    name: &'static str,
    /// The variable of the environment that names it.
    variable: &'static str,
    /// The places where it may be, from the folder of the command, the first first.
    places: &'static [&'static str],
    /// The file by which a folder is known.
    inside: Option<&'static str>,
    built_by: &'static str,
}

impl Part {
    /// Finds it, or says where it was looked for and what brings it.
    pub fn find(&self) -> Result<PathBuf, Refusal> {
        let command = std::env::current_exe().unwrap_or_default();
        self.find_beside(&command, std::env::var_os(self.variable))
    }

    /// Finds it where it is `named`, or else from `command`.
    fn find_beside(&self, command: &Path, named: Option<OsString>) -> Result<PathBuf, Refusal> {
        let Part { name, variable, .. } = self;
        let (built_by, inside) = (self.built_by, self.inside.unwrap_or(name));
        if let Some(named) = named {
            let named = PathBuf::from(named);
            match self.find_at(&named) {
                Some(found) => return Ok(found),
                None => refuse!(
                    "`{variable}={}`: there is no `{inside}`; name where it is ({built_by})",
                    named.display()
                ),
            }
        }
        let folder = command.parent().unwrap_or(Path::new("/"));
        let places = self.places.iter().map(|place| from(folder, place));
        let places: Vec<PathBuf> = places.collect();
        match places.iter().find_map(|place| self.find_at(place)) {
            Some(found) => Ok(found),
            None => {
                let places = places.iter().map(|place| format!("`{}`", place.display()));
                let places: Vec<String> = places.collect();
                refuse!(
                    "the {name} is not at {}; {built_by}, `make install` and the packages bring \
                     it, and ${variable} names another place",
                    places.join(" or ")
                )
            }
        }
    }

    /// Its path without links, if it is there.
    fn find_at(&self, place: &Path) -> Option<PathBuf> {
        let proof = match self.inside {
            Some(inside) => place.join(inside),
            None => place.to_owned(),
        };
        if !proof.is_file() {
            return None;
        }
        place.canonicalize().ok()
    }
}

/// The place as it is seen from `folder`, which has no links in its path.
fn from(folder: &Path, place: &str) -> PathBuf {
    match place.strip_prefix("../") {
        Some(place) => folder.parent().unwrap_or(folder).join(place),
        None => folder.join(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of empty files in a folder that is gone with it.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[&str]) -> Tree {
            let root = std::env::temp_dir().join(format!("parts-{name}-{}", std::process::id()));
            for file in files {
                let path = root.join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, []).unwrap();
            }
            Tree(root.canonicalize().unwrap())
        }

        fn find(&self, part: &Part, command: &str) -> Result<PathBuf, String> {
            let found = part.find_beside(&self.0.join(command), None);
            found.map_err(|refusal| refusal.to_string())
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn parts_are_found_where_they_were_built() {
        let tree = Tree::new(
            "built",
            &[
                "release/libtidemark_shim.so",
                "recorder/tidemark-amd64-linux",
                "kernel/boot/kernel",
            ],
        );
        let command = "release/tidemark";
        let found = |part| tree.find(part, command).unwrap();
        let at = |place: &str| tree.0.join(place);
        assert_eq!(found(&PRELOAD_LIBRARY), at("release/libtidemark_shim.so"));
        assert_eq!(found(&RECORDER), at("recorder"));
        assert_eq!(found(&KERNEL), at("kernel/boot"));
    }

    #[test]
    fn parts_are_found_where_they_are_installed() {
        let tree = Tree::new(
            "installed",
            &[
                "lib/tidemark/libtidemark_shim.so",
                "lib/tidemark/recorder/tidemark-amd64-linux",
                "lib/tidemark/kernel/kernel",
            ],
        );
        let found = |part| tree.find(part, "bin/tidemark").unwrap();
        let at = |place: &str| tree.0.join("lib/tidemark").join(place);
        assert_eq!(found(&PRELOAD_LIBRARY), at("libtidemark_shim.so"));
        assert_eq!(found(&RECORDER), at("recorder"));
        assert_eq!(found(&KERNEL), at("kernel"));
    }

    #[test]
    fn a_missing_part_is_told_with_its_places_and_what_brings_it() {
        let tree = Tree::new("missing", &["lib/tidemark/recorder/default.supp"]);
        let root = tree.0.display();
        let told = tree.find(&RECORDER, "bin/tidemark").unwrap_err();
        let expected = format!(
            "the recorder is not at `{root}/bin/recorder` or `{root}/recorder` or \
             `{root}/lib/tidemark/recorder`; `apt-get install valgrind` and `make -C recorder` \
             build it, `make install` and the packages bring it, and $TIDEMARK_RECORDER names \
             another place"
        );
        assert_eq!(told, expected);
    }

    #[test]
    fn a_part_that_is_named_is_looked_for_there_alone() {
        let tree = Tree::new("named", &["lib/tidemark/kernel/kernel", "mine/kernel"]);
        let command = tree.0.join("bin/tidemark");
        let named = |place: &str| KERNEL.find_beside(&command, Some(tree.0.join(place).into()));
        assert_eq!(named("mine").unwrap(), tree.0.join("mine"));
        let told = named("empty").unwrap_err().to_string();
        assert!(told.starts_with("`TIDEMARK_KERNEL="), "{told}");
        assert!(told.contains("there is no `kernel`"), "{told}");
    }
}
