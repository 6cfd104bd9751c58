//! Prints every broken layout rule of the workspace; ends with 1 if there is one, 2 on error.
//!
//! `circles FOLDER` prints the circles of files of the workspace in FOLDER instead, one a line.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use tidemark_tidy::{Tree, check, cycles};

fn main() -> ExitCode {
    // The crate stands two folders below the root of the workspace it checks.
    let mut root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_for_circles = match &arguments[..] {
        [] => false,
        [word, folder] if word == "circles" => {
            root = folder.into();
            true
        }
        _ => {
            eprintln!("tidy: takes nothing, or `circles FOLDER`");
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
    if is_for_circles {
        for circle in cycles::circles(&tree) {
            println!("{}", circle.join(" "));
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
