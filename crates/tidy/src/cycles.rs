//! `cycles`: files that import each other in circles can only be read together. No circle has more
//! than three files.
//!
//! A file imports another if its code, without its tests, has a path that leads there: `crate::…`,
//! `self::…`, `super::…` or that of a module it declares, in a `use` or anywhere else. A `mod`
//! declaration alone is no import. Circles that were there before the rule are listed in
//! `tidy.toml` with how many files they have, which may only fall, under the first of their files:
//! `"crates/x/src/y.rs#cycle" = 8`.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::sizes::{EXCEPTIONS, exceptions};
use crate::source::{product, words};
use crate::tree::Tree;

const FILES_MAX: usize = 3;
const SUFFIX: &str = "#cycle";

/// The files that each file imports, by their places in the order of paths.
type Imports = Vec<BTreeSet<usize>>;

/// Finds circles of more than three files that are not listed, and lines of the list that are no
/// longer needed.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let listed = exceptions(tree.text(EXCEPTIONS).unwrap_or_default());
    let mut listed: BTreeMap<String, usize> = listed
        .into_iter()
        .filter(|(key, _)| key.ends_with(SUFFIX))
        .collect();
    let mut findings = Vec::new();
    for circle in circles(tree) {
        if circle.len() > FILES_MAX {
            let allowed = listed.remove(&format!("{}{SUFFIX}", circle[0]));
            findings.extend(judge(&circle, allowed));
        }
    }
    for key in listed.into_keys() {
        let message =
            format!("`{key}` is no circle of more than {FILES_MAX} files: remove the line");
        findings.push(Finding::new(EXCEPTIONS, 0, message));
    }
    findings
}

/// The circles of files in each crate, of two files or more, each in order of path.
pub fn circles(tree: &Tree) -> Vec<Vec<&str>> {
    tree.crates()
        .flat_map(|name| Files::of_crate(tree, name).circles())
        .collect()
}

/// Each file that imports others of its crate, before those.
pub fn imports(tree: &Tree) -> Vec<Vec<&str>> {
    let each = tree.crates().flat_map(|name| {
        let files = Files::of_crate(tree, name);
        let lines = files.imports.iter().enumerate().map(|(number, imported)| {
            let imported = imported.iter().map(|&number| files.paths[number]);
            std::iter::once(files.paths[number])
                .chain(imported)
                .collect()
        });
        lines.collect::<Vec<Vec<&str>>>()
    });
    each.filter(|files| files.len() > 1).collect()
}

fn judge(circle: &[&str], allowed: Option<usize>) -> Option<Finding> {
    let (first, files) = (circle[0], circle.len());
    let message = match allowed {
        Some(allowed) if files == allowed => return None,
        Some(allowed) if files < allowed => format!(
            "`{first}{SUFFIX}` is {allowed} in {EXCEPTIONS}, the circle has {files} files: lower it"
        ),
        Some(_) | None => {
            let names: Vec<&str> = circle.iter().map(|path| short(path)).collect();
            format!(
                "{files} files import each other in a circle, at most {FILES_MAX} may: {}",
                names.join(", ")
            )
        }
    };
    Some(Finding::new(first, 0, message))
}

/// The path below `src`.
fn short(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(_, inside)| inside)
}

/// The files of a crate and what they import.
struct Files<'a> {
    /// In order.
    paths: Vec<&'a str>,
    imports: Imports,
}

impl<'a> Files<'a> {
    fn of_crate(tree: &'a Tree, name: &str) -> Self {
        let folder = format!("crates/{name}/src/");
        let files: Vec<(&str, &str)> = tree
            .rust_files()
            .filter(|(path, _)| path.starts_with(&folder) && !path.ends_with("/tests.rs"))
            .collect();
        let tests = collect_tests(&files);
        let files: Vec<(&str, &str)> = files
            .into_iter()
            .filter(|(path, _)| !tests.iter().any(|name| path.ends_with(name)))
            .collect();
        let has_library = files.iter().any(|(path, _)| path.ends_with("/src/lib.rs"));
        let names: Vec<Vec<&str>> = files
            .iter()
            .map(|(path, _)| module_of(&path[folder.len()..], has_library))
            .collect();
        let modules = (0..files.len()).map(|number| (names[number].clone(), number));
        let modules: BTreeMap<Vec<&str>, usize> = modules.collect();
        let collect = |number: usize| {
            let mut found = collect_imports(&modules, &names[number], files[number].1);
            found.remove(&number);
            found
        };
        let imports: Imports = (0..files.len()).map(collect).collect();
        let paths = files.into_iter().map(|(path, _)| path).collect();
        Self { paths, imports }
    }

    /// The circles, each in order of path.
    fn circles(&self) -> Vec<Vec<&'a str>> {
        components(&self.imports)
            .into_iter()
            .filter(|circle| circle.len() > 1)
            .map(|circle| {
                circle
                    .into_iter()
                    .map(|number| self.paths[number])
                    .collect()
            })
            .collect()
    }
}

/// The ends of the paths of files that are declared for tests alone.
fn collect_tests(files: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    for (_, text) in files {
        for after in text.split("#[cfg(test)]").skip(1) {
            let mut rest = words(after).map(|(_, word)| word);
            let mut rest = rest
                .by_ref()
                .skip_while(|word| matches!(*word, "pub" | "crate"));
            if let (Some("mod"), Some(name)) = (rest.next(), rest.next())
                && after
                    .split(['{', ';'])
                    .next()
                    .is_some_and(|head| after[head.len()..].starts_with(';'))
            {
                found.push(format!("/{name}.rs"));
            }
        }
    }
    found
}

/// The module that a file holds, as the names on the way to it. A program beside a library is a
/// crate of its own.
fn module_of(inside: &str, has_library: bool) -> Vec<&str> {
    let stem = inside.trim_end_matches(".rs");
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    match stem {
        "lib" => Vec::new(),
        "main" if !has_library => Vec::new(),
        stem => stem.split('/').collect(),
    }
}

/// The files that `text`, which holds the module `here`, has paths to.
fn collect_imports(
    modules: &BTreeMap<Vec<&str>, usize>,
    here: &[&str],
    text: &str,
) -> BTreeSet<usize> {
    let code = product(text);
    let mut found = BTreeSet::new();
    for (at, word) in words(&code) {
        let rest = &code[at + word.len()..];
        if code[..at].ends_with("::") || !rest.starts_with("::") {
            continue;
        }
        let mut path: Vec<&str> = match word {
            "crate" => Vec::new(),
            "self" => here.to_vec(),
            "super" => here[..here.len().saturating_sub(1)].to_vec(),
            name => [here, &[name]].concat(),
        };
        let is_relative = !matches!(word, "crate" | "self" | "super");
        if is_relative && !modules.contains_key(&path) {
            continue;
        }
        walk_path(rest, &mut path, &mut |path| {
            found.extend(find_file(modules, path));
        });
    }
    found
}

/// Follows `::name` and `::{…}` from the start of `code`, and visits each path at its end. Answers
/// what is left of the code.
fn walk_path<'a>(
    code: &'a str,
    path: &mut Vec<&'a str>,
    visit: &mut impl FnMut(&[&'a str]),
) -> &'a str {
    let Some(rest) = code.strip_prefix("::") else {
        visit(path);
        return code;
    };
    let length = path.len();
    let rest = if let Some(mut rest) = rest.strip_prefix('{') {
        loop {
            rest = rest.trim_start().trim_start_matches(',').trim_start();
            let Some((0, word)) = words(rest).next() else {
                break rest.strip_prefix('}').unwrap_or(rest);
            };
            let names = path.len();
            step(path, word);
            rest = walk_path(&rest[word.len()..], path, visit);
            path.truncate(names);
            // What it is called here does not matter.
            if let Some(renamed) = rest.trim_start().strip_prefix("as ") {
                let name = words(renamed)
                    .next()
                    .map_or(0, |(at, word)| at + word.len());
                rest = &renamed[name..];
            }
        }
    } else if let Some((0, word)) = words(rest).next() {
        step(path, word);
        walk_path(&rest[word.len()..], path, visit)
    } else {
        visit(path);
        rest
    };
    path.truncate(length);
    rest
}

fn step<'a>(path: &mut Vec<&'a str>, word: &'a str) {
    match word {
        "super" => drop(path.pop()),
        "self" => {}
        name => path.push(name),
    }
}

/// The file of the longest beginning of `path` that is a module of its own: in the last resort the
/// root of the crate.
fn find_file(modules: &BTreeMap<Vec<&str>, usize>, path: &[&str]) -> Option<usize> {
    (0..=path.len())
        .rev()
        .find_map(|length| modules.get(&path[..length]).copied())
}

/// The sets of files that can all be reached from each other, in order of their first files.
fn components(imports: &Imports) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..imports.len())
        .map(|start| {
            let mut seen = BTreeSet::new();
            let mut left: Vec<usize> = imports[start].iter().copied().collect();
            while let Some(file) = left.pop() {
                if seen.insert(file) {
                    left.extend(&imports[file]);
                }
            }
            seen
        })
        .collect();
    let mut found: Vec<Vec<usize>> = Vec::new();
    let mut is_placed = vec![false; imports.len()];
    for start in 0..imports.len() {
        if is_placed[start] {
            continue;
        }
        let is_mutual =
            |&other: &usize| reached[start].contains(&other) && reached[other].contains(&start);
        let circle: Vec<usize> = (start..imports.len()).filter(is_mutual).collect();
        circle.iter().for_each(|&file| is_placed[file] = true);
        found.push(circle);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        tree.add("crates/a/Cargo.toml", "");
        for (name, text) in files {
            tree.add(&format!("crates/a/src/{name}"), text);
        }
        tree
    }

    const ROUND: [(&str, &str); 4] = [
        ("one.rs", "use crate::two::Two;"),
        ("two.rs", "use crate::part::three;"),
        ("part/three.rs", "fn f() { super::four::g() }"),
        (
            "part/four.rs",
            "use crate::{id, one::{self as first, One}};",
        ),
    ];

    #[test]
    fn a_circle_of_four_files_is_found_whatever_leads_round_it() {
        let findings = check(&tree(&ROUND));
        assert_eq!(findings.len(), 1);
        let names = "one.rs, part/four.rs, part/three.rs, two.rs";
        assert!(findings[0].message.ends_with(names), "{}", findings[0]);
        // The last of them imports none of the others: no circle is left.
        for number in 0..4 {
            let mut files = ROUND;
            files[number].1 = "use crate::id::Id;";
            assert_eq!(check(&tree(&files)), [], "without {}", files[number].0);
        }
    }

    #[test]
    fn a_circle_of_three_files_may_be() {
        let files = [
            ("one.rs", "use crate::two::Two;"),
            ("two.rs", "use super::three::Three;"),
            ("three.rs", "use crate::one::One;"),
        ];
        assert_eq!(check(&tree(&files)), []);
    }

    #[test]
    fn the_root_of_a_crate_is_a_file_like_any_other() {
        let files = [
            (
                "lib.rs",
                "mod one; mod two; mod three; pub struct Root; use one::One;",
            ),
            ("one.rs", "pub(crate) use crate::two::Two;"),
            ("two.rs", "use crate::three::Three;"),
            ("three.rs", "use crate::Root;"),
        ];
        assert_eq!(check(&tree(&files)).len(), 1);
        let mut files = files;
        files[3].1 = "pub(crate) struct Three;";
        assert_eq!(check(&tree(&files)), []);
    }

    #[test]
    fn declarations_comments_and_tests_import_nothing() {
        let files = [
            ("part.rs", "mod one; mod two; mod three; mod four;"),
            ("part/one.rs", "use super::two::Two;"),
            ("part/two.rs", "use super::three::Three;"),
            (
                "part/three.rs",
                "//! [`super::one`]\n#[cfg(test)]\nmod tests { use crate::part::four; }",
            ),
            ("part/four.rs", "use super::one::One;"),
        ];
        assert_eq!(check(&tree(&files)), []);
        let mut files = ROUND.to_vec();
        files.push(("part.rs", "mod three;\n#[cfg(test)]\npub(crate) mod four;"));
        assert_eq!(check(&tree(&files)), []);
    }

    #[test]
    fn a_listed_circle_may_not_grow_and_is_lowered_when_it_shrinks() {
        let listed = |files: usize| {
            let mut tree = tree(&ROUND);
            let line = format!("\"crates/a/src/one.rs#cycle\" = {files}\n");
            tree.add(EXCEPTIONS, &line);
            check(&tree).len()
        };
        assert_eq!([3, 4, 5].map(listed), [1, 0, 1]);
        let mut tree = tree(&ROUND[..2]);
        tree.add(EXCEPTIONS, "\"crates/a/src/one.rs#cycle\" = 4\n");
        assert_eq!(check(&tree).len(), 1, "a line for a circle that is gone");
    }
}
