//! The workspace keeps its own layout rules.

use std::path::Path;

use tidemark_tidy::{Tree, check};

#[test]
fn the_workspace_keeps_its_layout_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tree = Tree::read(&root).expect("the workspace can be read");
    assert!(
        tree.crates().any(|name| name == "core"),
        "the tree is the workspace"
    );
    let findings: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
