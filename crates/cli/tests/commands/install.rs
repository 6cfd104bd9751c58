//! `make install` and `make uninstall`: a tree that is moved anywhere finds its parts there, says
//! which one is missing, and leaves nothing behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::needs;
use crate::support::{Folder, stderr};
use crate::tool;

/// A tree that was installed, in a folder of the test.
struct Tree {
    folder: Folder,
    root: PathBuf,
}

impl Tree {
    /// A place for a tree, and beside it what is installed in place of the kernel.
    fn new(name: &str) -> Tree {
        let folder = Folder::new(name);
        let kernel = folder.0.join("built");
        std::fs::create_dir_all(kernel.join("programs")).unwrap();
        std::fs::write(kernel.join("kernel"), "a kernel").unwrap();
        std::fs::write(kernel.join("programs/sh"), "a shell").unwrap();
        let root = folder.0.join("above/usr");
        Tree { folder, root }
    }

    /// Installs the command and its libraries as they were built for tests, and the recorder where
    /// it can be built.
    fn install(name: &str) -> Tree {
        let tree = Tree::new(name);
        tree.expect_make("install");
        tree
    }

    fn expect_make(&self, target: &str) {
        let output = self.make(target);
        assert!(output.status.success(), "{target}: {}", stderr(&output));
    }

    /// Runs `make install` or `make uninstall` for where the tree is.
    fn make(&self, target: &str) -> Output {
        let build = needs::tidemark().parent().expect("it lies in a folder");
        let recorder = tool::recorder().unwrap_or(Path::new("/nonexistent"));
        let mut make = Command::new("make");
        make.args(["--silent", "--directory"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .arg(target)
            .arg(format!("PREFIX={}", self.root.display()))
            .env("BUILD", build)
            .env("TIDEMARK_RECORDER", recorder)
            .env("TIDEMARK_KERNEL", self.folder.0.join("built"));
        make.output().unwrap()
    }

    fn move_to(&mut self, place: &str) {
        let root = self.folder.0.join(place);
        std::fs::rename(&self.root, &root).unwrap();
        self.root = root;
    }

    /// Runs the command of the tree in a folder that has nothing to do with it.
    fn tidemark(&self, words: &[&str]) -> Output {
        let elsewhere = self.folder.0.join("elsewhere");
        std::fs::create_dir_all(&elsewhere).unwrap();
        let mut command = Command::new(self.root.join("bin/tidemark"));
        for part in ["TIDEMARK_SHIM", "TIDEMARK_RECORDER", "TIDEMARK_KERNEL"] {
            command.env_remove(part);
        }
        command
            .args(words)
            .current_dir(elsewhere)
            .stdin(Stdio::null());
        command.output().unwrap()
    }

    /// Everything in the folder of the tree, from its root.
    fn collect(&self) -> Vec<String> {
        let mut found = vec![];
        let mut ahead = vec![self.root.clone()];
        while let Some(folder) = ahead.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let entry = entry.unwrap();
                let path = entry.path();
                found.push(path.strip_prefix(&self.root).unwrap().display().to_string());
                if entry.file_type().unwrap().is_dir() {
                    ahead.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

#[test]
fn a_tree_that_was_moved_finds_its_parts_and_leaves_nothing() {
    let mut tree = Tree::install("install-moved");
    tree.move_to("moved");
    let shown = tree.root.canonicalize().unwrap().display().to_string();

    let doctor = tree.tidemark(&["doctor"]);
    let told = String::from_utf8(doctor.stdout).unwrap();
    for part in ["lib/tidemark/libtidemark_shim.so", "lib/tidemark/kernel"] {
        assert!(told.contains(&format!("{shown}/{part}")), "{part}: {told}");
    }
    if needs::are_met(&["sort"]) {
        let run = tree.tidemark(&[
            "run", "--memory", "16M", "--malloc", "pool", "--", "echo", "up",
        ]);
        assert_eq!(run.stdout, b"up\n", "{}", stderr(&run));
    }
    if tool::recorder().is_some() {
        let record = tree.tidemark(&["record", "--time=never", "-o", "x.tide", "--", "true"]);
        assert!(record.status.success(), "{}", stderr(&record));
        assert!(
            told.contains(&format!("{shown}/lib/tidemark/recorder")),
            "{told}"
        );
    }
    let image = tree.tidemark(&["kernel", "image", "-o", "x.img"]);
    assert!(image.status.success(), "{}", stderr(&image));

    tree.expect_make("uninstall");
    assert!(!tree.root.exists(), "{:?}", tree.collect());
}

#[test]
fn pages_and_words_are_where_shells_and_man_look() {
    let tree = Tree::install("install-pages");
    let found = tree.collect();
    for path in [
        "share/man/man1/tidemark.1",
        "share/man/man1/tidemark-kernel-run.1",
        "share/bash-completion/completions/tidemark",
        "share/zsh/site-functions/_tidemark",
        "share/fish/vendor_completions.d/tidemark.fish",
        "share/doc/tidemark/LICENSE-recorder",
        "include/tidemark.h",
        "include/tidemark_memory.h",
        "lib/libtidemark_memory.so",
        "lib/pkgconfig/tidemark-memory.pc",
    ] {
        assert!(found.iter().any(|found| found == path), "{path}: {found:?}");
    }
}

#[test]
fn a_missing_part_is_told_in_one_line() {
    let tree = Tree::install("install-missing");
    let parts = tree.root.join("lib/tidemark");
    for file in ["libtidemark_shim.so", "kernel/kernel"] {
        std::fs::remove_file(parts.join(file)).unwrap();
    }
    let _ = std::fs::remove_dir_all(parts.join("recorder"));
    let cases = [
        (
            &["kernel", "image", "-o", "x.img"][..],
            "kernel",
            "`make kernel`",
        ),
        (&["record", "true"], "recorder", "`make -C recorder`"),
        (
            &["run", "--memory", "8M", "true"],
            "libtidemark_shim.so",
            "`make build`",
        ),
    ];
    for (words, part, remedy) in cases {
        let output = tree.tidemark(words);
        let told = stderr(&output);
        // Where page faults can't be handled, that is told in place of a missing library.
        if words[0] == "run" && !needs::may_handle_faults() {
            continue;
        }
        assert_eq!(
            (output.status.code(), told.lines().count()),
            (Some(2), 1),
            "{told}"
        );
        let place = tree
            .root
            .canonicalize()
            .unwrap()
            .join("lib/tidemark")
            .join(part);
        for expected in [&*place.to_string_lossy(), remedy, "`make install`"] {
            assert!(told.contains(expected), "{expected}: {told}");
        }
    }
}

#[test]
fn what_others_put_there_stays() {
    let tree = Tree::new("install-others");
    std::fs::create_dir_all(tree.root.join("bin")).unwrap();
    std::fs::write(tree.root.join("bin/other"), "mine").unwrap();
    tree.expect_make("install");
    std::fs::write(tree.root.join("lib/tidemark/note"), "mine").unwrap();
    tree.expect_make("uninstall");
    let left = [
        "bin",
        "bin/other",
        "lib",
        "lib/tidemark",
        "lib/tidemark/note",
    ];
    assert_eq!(tree.collect(), left);
    let again = tree.make("uninstall");
    assert!(!again.status.success() && stderr(&again).contains("name the PREFIX"));
}

#[test]
fn a_newer_version_takes_the_place_of_an_older_one() {
    let tree = Tree::install("install-again");
    let before = tree.collect();
    let list = tree.root.join("lib/tidemark/installed");
    let listed = std::fs::read_to_string(&list).unwrap() + "file lib/tidemark/older.so\n";
    std::fs::write(&list, listed).unwrap();
    std::fs::write(tree.root.join("lib/tidemark/older.so"), "older").unwrap();
    tree.expect_make("install");
    assert_eq!(tree.collect(), before);
    tree.expect_make("uninstall");
    assert!(
        !tree.folder.0.join("above").exists(),
        "{:?}",
        tree.collect()
    );
}
