//! `links`: a relative link of a Markdown page leads to a file, and to a heading if it names one.
//! Each guide is in the list of `docs/README.md`.

use crate::finding::Finding;
use crate::tree::Tree;

/// The page that leads to the others.
const DOOR: &str = "docs/README.md";

/// Finds links that lead nowhere, and guides that the door does not name.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        for (line, target) in links(text) {
            if let Some(fault) = fault_of(tree, path, target) {
                findings.push(Finding::new(path, line, fault));
            }
        }
    }
    let named: Vec<String> = tree.text(DOOR).map_or_else(Vec::new, |text| {
        let links = links(text).into_iter();
        links.map(|(_, target)| resolve(DOOR, target)).collect()
    });
    for (path, _) in tree.files() {
        let is_guide = path.starts_with("docs/guide/") && path.ends_with(".md");
        if is_guide && !named.iter().any(|name| name == path) {
            let remedy = format!("no link in {DOOR} leads here; add a row for its task");
            findings.push(Finding::new(path, 0, remedy));
        }
    }
    findings
}

/// The targets of links, each with its line. Blocks and spans of code hold none.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (number, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        let mut parts = line.split("](");
        let mut before = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let is_span = before.matches('`').count() % 2 == 1;
            if let Some((target, _)) = part.split_once(')')
                && !is_code
                && !is_span
            {
                found.push((number + 1, target));
            }
            before.push_str(part);
        }
    }
    found
}

/// The file that a link of the page at `path` leads to, without its heading.
fn resolve(path: &str, target: &str) -> String {
    let file = target.split('#').next().unwrap_or_default();
    if file.is_empty() {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in file.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

fn fault_of(tree: &Tree, path: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let file = resolve(path, target);
    if !tree.has(&file) {
        return Some(format!("`{target}` leads nowhere; name a file that exists"));
    }
    let (_, heading) = target.split_once('#')?;
    let text = tree.text(&file).filter(|_| file.ends_with(".md"))?;
    let is_there = headings(text).any(|name| anchor(name) == heading);
    (!is_there).then(|| format!("`{target}` names no heading of {file}"))
}

fn headings(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| line.trim_start_matches('#').trim())
}

/// The name that a page gives to a heading: lower case, hyphens for spaces, no other punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(pages: &[(&str, &str)]) -> Vec<(String, usize)> {
        let mut tree = Tree::default();
        pages.iter().for_each(|(path, text)| tree.add(path, text));
        let found = check(&tree).into_iter();
        found.map(|found| (found.path, found.line)).collect()
    }

    #[test]
    fn a_link_leads_to_a_file_a_folder_or_a_heading() {
        let page = "[a](b.md) [c](../d/) [e](b.md#two-words-) [f](#here) [g](https://h)\n# Here";
        let right = [
            ("docs/a.md", page),
            ("docs/b.md", "## Two words …"),
            ("d/e.rs", ""),
        ];
        assert_eq!(findings(&right), []);
        let wrong = "x\n[a](gone.md)\n[b](b.md#other)\n[c](#there)";
        let found = findings(&[("docs/a.md", wrong), ("docs/b.md", "# B")]);
        let lines: Vec<usize> = found.iter().map(|(_, line)| *line).collect();
        assert_eq!(lines, [2, 3, 4]);
    }

    #[test]
    fn code_holds_no_links() {
        let page = "```\n[a](b)\n```\n`[a](b)` and `x[0](y)`";
        assert_eq!(findings(&[("a.md", page)]), []);
    }

    #[test]
    fn each_guide_is_named_at_the_door() {
        let pages = [
            (DOOR, "[one](guide/one.md)"),
            ("docs/guide/one.md", ""),
            ("docs/guide/two.md", ""),
        ];
        assert_eq!(findings(&pages), [("docs/guide/two.md".to_owned(), 0)]);
    }
}
