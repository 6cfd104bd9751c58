//! `one-way`: dependencies point down. `empty-core`: the core has none, nor has what else a bare
//! machine runs.

use crate::finding::Finding;
use crate::tree::Tree;

/// The crates of our own on which each crate may depend. Below stands before above, so that the
/// table itself can have no cycle; [`check`] holds it to that.
const MAY_SEE: &[(&str, &[&str])] = &[
    ("core", &[]),
    // For its source of random numbers alone.
    ("trace", &["core"]),
    // For its table of counters alone.
    ("results", &["core"]),
    ("parts", &["results"]),
    ("log", &[]),
    ("tidy", &[]),
    ("testing", &[]),
    ("partition", &[]),
    ("tasks", &["core", "partition"]),
    ("recording", &["log", "trace"]),
    ("vmufat", &[]),
    ("model", &["core"]),
    ("plugin", &["core"]),
    (
        "lab",
        &[
            "core",
            "partition",
            "tasks",
            "model",
            "plugin",
            "trace",
            "results",
        ],
    ),
    ("live", &["core", "partition", "tasks", "plugin", "log"]),
    (
        "supervisor",
        &[
            "core",
            "partition",
            "tasks",
            "live",
            "log",
            "recording",
            "trace",
            "results",
            "parts",
        ],
    ),
    (
        "hostbench",
        &["core", "lab", "supervisor", "live", "results"],
    ),
    (
        "experiment",
        &["core", "trace", "lab", "supervisor", "hostbench", "results"],
    ),
    (
        "comparison",
        &[
            "core",
            "trace",
            "lab",
            "live",
            "supervisor",
            "hostbench",
            "results",
        ],
    ),
    ("shim", &["core", "live"]),
    ("regions", &["core", "tasks", "plugin", "live"]),
    ("stores", &["regions"]),
    ("capi", &["regions", "stores"]),
    ("pool", &[]),
    ("outputs", &["results"]),
    ("emulator", &["parts", "results", "vmufat"]),
    ("report", &["results"]),
    ("tui", &["results"]),
    (
        "python",
        &[
            "core", "trace", "results", "lab", "live", "regions", "stores",
        ],
    ),
    (
        "cli",
        &[
            "core",
            "plugin",
            "trace",
            "results",
            "log",
            "recording",
            "lab",
            "live",
            "hostbench",
            "stores",
            "supervisor",
            "experiment",
            "comparison",
            "outputs",
            "emulator",
            "vmufat",
            "report",
            "tui",
        ],
    ),
];

/// Crates that depend on nothing: they run on bare machines.
const ALONE: [&str; 3] = ["core", "partition", "vmufat"];

/// The page that describes the crates.
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Finds dependencies that point up or sideways, and any at all where there may be none; and crates
/// that are in the table or in the description and not in the tree, or the other way round.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let crates: Vec<&str> = tree.crates().collect();
    let mut findings: Vec<Finding> = crates
        .iter()
        .flat_map(|name| check_crate(tree, name))
        .collect();
    if let Some(text) = tree.text(ARCHITECTURE) {
        findings.extend(check_description(text, &crates));
    }
    findings
}

/// Compares the rows of the description with the crates that there are.
fn check_description(text: &str, crates: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut told = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let row = line
            .strip_prefix("| `")
            .and_then(|rest| rest.split_once("` | "));
        // Rows of other tables have no third column of crates, or name no crate.
        let Some((name, _)) = row.filter(|(_, rest)| rest.matches(" | ").count() == 1) else {
            continue;
        };
        let is_known = MAY_SEE.iter().any(|(known, _)| *known == name);
        if crates.contains(&name) {
            told.push(name);
        } else if is_known {
            let message = format!("there is no crate `{name}`");
            findings.push(Finding::new(ARCHITECTURE, index + 1, message));
        }
    }
    for name in crates.iter().filter(|name| !told.contains(name)) {
        let message = format!("`{name}` has no row in the table of crates");
        findings.push(Finding::new(ARCHITECTURE, 0, message));
    }
    for (name, _) in MAY_SEE.iter().filter(|(name, _)| !crates.contains(name)) {
        let message = format!("`{name}` has a place, and is no crate");
        findings.push(Finding::new("crates/tidy/src/layers.rs", 0, message));
    }
    findings
}

fn check_crate(tree: &Tree, name: &str) -> Vec<Finding> {
    let path = format!("crates/{name}/Cargo.toml");
    let manifest = tree
        .text(&path)
        .expect("`crates` lists folders by their manifests");
    let Some((_, allowed)) = MAY_SEE.iter().find(|(known, _)| *known == name) else {
        let table = "crates/tidy/src/layers.rs";
        return vec![Finding::new(
            &path,
            0,
            format!("`{name}` has no place yet; give it one in {table}"),
        )];
    };
    let mut findings = Vec::new();
    for (line, dependency) in dependencies(manifest) {
        if ALONE.contains(&name) {
            let message = format!("`{name}` has no dependencies, and `{dependency}` is one");
            findings.push(Finding::new(&path, line, message));
        } else if let Some(ours) = dependency.strip_prefix("tidemark-")
            && !allowed.contains(&ours)
        {
            let message = format!("`{name}` may not see `{ours}`: dependencies point down");
            findings.push(Finding::new(&path, line, message));
        }
    }
    findings
}

/// The names of what a manifest depends on when it is used, with their lines. What only tests use
/// (`dev-dependencies`) may point anywhere.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next())
        {
            // `[dependencies]`, `[dependencies.name]`, `[target.'…'.dependencies]`.
            let section = section.rsplit_once("'.").map_or(section, |(_, rest)| rest);
            let (table, name) = section.split_once('.').unwrap_or((section, ""));
            is_inside = matches!(table, "dependencies" | "build-dependencies");
            if is_inside && !name.is_empty() {
                found.push((index + 1, name));
                is_inside = false;
            }
        } else if is_inside && !line.is_empty() && !line.starts_with('#') {
            let end = line.find(['.', '=', ' ']).unwrap_or(line.len());
            found.push((index + 1, line[..end].trim_matches('"')));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, manifest: &str) -> Vec<Finding> {
        let mut tree = Tree::default();
        tree.add(&format!("crates/{name}/Cargo.toml"), manifest);
        check(&tree)
    }

    #[test]
    fn the_table_of_layers_has_no_cycle() {
        for (index, (name, allowed)) in MAY_SEE.iter().enumerate() {
            for below in *allowed {
                let at = MAY_SEE.iter().position(|(known, _)| known == below);
                assert!(
                    at.is_some_and(|at| at < index),
                    "`{name}` sees `{below}`, which stands above"
                );
            }
        }
    }

    #[test]
    fn what_bare_machines_run_may_depend_on_nothing() {
        for name in ALONE {
            assert_eq!(findings(name, "[dependencies]\nlibm = \"1\"\n").len(), 1);
        }
        assert_eq!(
            findings("core", "[target.'cfg(unix)'.dependencies]\nlibm = \"1\"\n").len(),
            1
        );
        assert_eq!(
            findings("core", "[dependencies.libm]\nversion = \"1\"\n").len(),
            1
        );
        assert_eq!(
            findings(
                "core",
                "[dev-dependencies]\ntidemark-model.workspace = true\n"
            ),
            []
        );
    }

    #[test]
    fn a_dependency_that_points_up_is_found() {
        let up = findings(
            "results",
            "[dependencies]\nserde = \"1\"\ntidemark-live.workspace = true\n",
        );
        assert_eq!(up.len(), 1);
        assert_eq!(up[0].line, 3);
        assert_eq!(
            findings(
                "cli",
                "[dependencies]\ntidemark-live = { workspace = true }\n"
            ),
            []
        );
        assert_eq!(findings("newcomer", "[package]\n").len(), 1);
    }

    #[test]
    fn a_crate_without_a_description_and_one_that_is_only_described_are_found() {
        let mut tree = Tree::default();
        for (name, _) in MAY_SEE.iter().filter(|(name, _)| *name != "pool") {
            tree.add(&format!("crates/{name}/Cargo.toml"), "");
        }
        let row = |name: &str| format!("| `{name}` | holds | nothing |\n");
        let rows: String = MAY_SEE.iter().map(|(name, _)| row(name)).collect();
        tree.add(ARCHITECTURE, &rows.replace(&row("trace"), &row("seam")));
        let told: Vec<String> = check(&tree)
            .into_iter()
            .map(|found| found.message)
            .collect();
        let expected = [
            "there is no crate `pool`",
            "`trace` has no row in the table of crates",
            "`pool` has a place, and is no crate",
        ];
        assert_eq!(told, expected);
    }
}
