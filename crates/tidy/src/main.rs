//! Prints every broken layout rule of the workspace; ends with 1 if there is one, 2 on error.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use tidemark_tidy::{Tree, check};

fn main() -> ExitCode {
    // The crate stands two folders below the root of the workspace it checks.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tree = match Tree::read(&root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: `{}`: {error}", root.display());
            return ExitCode::from(2);
        }
    };
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
