//! The links of the documentation lead somewhere.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders without documentation of ours.
const SKIPPED: [&str; 4] = ["target", ".git", "vendor", "out"];

/// Every Markdown file below `folder`.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        let is_skipped = SKIPPED.iter().any(|skipped| name == *skipped);
        if path.is_dir() && !is_skipped {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The text of `document` without blocks and pieces of code.
fn prose(document: &str) -> String {
    let mut is_code = false;
    let lines = document.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    let lines: Vec<&str> = lines.collect();
    lines.join("\n")
}

/// The links of `text`, each with its label.
fn links(text: &str) -> Vec<(&str, &str)> {
    let mut found = vec![];
    for (at, _) in text.match_indices("](") {
        let label = text[..at].rsplit('[').next().unwrap_or_default();
        let target = text[at + 2..].split(')').next().unwrap_or_default();
        found.push((label, target));
    }
    found
}

/// The name by which a heading can be linked to.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().chars();
    let kept = kept.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Finds the fault of a link from `from`, if it has one.
fn find_fault(from: &Path, label: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => from.to_owned(),
        file => from.parent().unwrap().join(file),
    };
    if !path.exists() {
        return Some(format!("`{target}` is not there"));
    }
    let named = path.file_name().unwrap_or_default().to_string_lossy();
    let label = label.trim_matches('`');
    let is_name = label.ends_with(".md") && !label.contains(' ');
    if is_name
        && Path::new(label)
            .file_name()
            .is_some_and(|name| name != &*named)
    {
        return Some(format!("`{label}` leads to `{named}`"));
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut headings = text.lines().filter(|line| line.starts_with('#'));
    let is_found = heading.is_empty() || headings.any(|line| anchor(line) == heading);
    (!is_found).then(|| format!("`{target}`: no such heading"))
}

#[test]
fn found_l_every_link_of_the_documentation_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![];
    documents(&root, &mut all);
    assert!(all.len() > 50, "{} documents", all.len());
    let mut faults = vec![];
    for path in all {
        let text = prose(&fs::read_to_string(&path).unwrap());
        let found = links(&text).into_iter();
        let found = found.filter_map(|(label, target)| find_fault(&path, label, target));
        faults.extend(found.map(|fault| format!("{}: {fault}", path.display())));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn links_and_anchors_are_read_as_they_are_shown() {
    let text = prose("see [a](b.md), [`c`](d.md#the-e)\n```\n[no](x)\n```\n[f](g)");
    let expected = [("a", "b.md"), ("`c`", "d.md#the-e"), ("f", "g")];
    assert_eq!(links(&text), expected);
    assert_eq!(anchor("## Does it hold?"), "does-it-hold");
    assert_eq!(anchor("# `record --live`"), "record---live");
}
