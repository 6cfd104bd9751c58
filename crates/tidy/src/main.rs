//! Prints every broken layout rule of the workspace; ends with 1 if there is one, 2 on error.
//!
//! `circles FOLDER` prints the circles of files of the workspace in FOLDER instead, one a line, and
//! `imports FOLDER` each file with those that it imports.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use tidemark_tidy::{Tree, check, cycles};

/// The lines of files that a word prints of a workspace.
type Listing = fn(&Tree) -> Vec<Vec<&str>>;

fn main() -> ExitCode {
    // The crate stands two folders below the root of the workspace it checks.
    let mut root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let listing: Option<Listing> = match &arguments[..] {
        [] => None,
        [word, folder] if word == "circles" || word == "imports" => {
            root = folder.into();
            Some(if word == "circles" {
                cycles::circles
            } else {
                cycles::imports
            })
        }
        _ => {
            eprintln!("tidy: takes nothing, `circles FOLDER` or `imports FOLDER`");
            return ExitCode::from(2);
        }
    };
    let tree = match Tree::read(&root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: `{}`: {error}", root.display());
            return ExitCode::from(2);
        }
    };
    if let Some(listing) = listing {
        for files in listing(&tree) {
            println!("{}", files.join(" "));
        }
        return ExitCode::SUCCESS;
    }
    let findings = check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => ExitCode::SUCCESS,
        count => {
            eprintln!("tidy: {count} to mend");
            ExitCode::from(1)
        }
    }
}
