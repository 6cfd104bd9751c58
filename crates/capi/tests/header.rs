//! The header is made of the source: every function, structure and number that is exported, with
//! its documentation. A type that has no counterpart in C stops the test.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const TOP: &str = "\
/* Memory regions larger than the memory they may use: Tidemark's engine as a library.

   Link with -ltidemark_memory (`pkg-config --cflags --libs tidemark-memory`). Every function may be
   called by any thread. Made of crates/capi/src, which is where to change it. */

#ifndef TIDEMARK_MEMORY_H
#define TIDEMARK_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif

/* What tidemark_mmap returns where it fails, as MAP_FAILED. */
#define TIDEMARK_MAP_FAILED ((void *)-1)
";
const BOTTOM: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A type of Rust as C writes it, before a name.
fn in_c(rust: &str) -> String {
    let star = |rest: &str| {
        let below = in_c(rest);
        let space = if below.ends_with('*') { "" } else { " " };
        format!("{below}{space}*")
    };
    if let Some(rest) = rust.strip_prefix("*mut ") {
        return star(rest);
    }
    if let Some(rest) = rust.strip_prefix("*const ") {
        return format!("const {}", star(rest));
    }
    match rust {
        "c_int" => "int".into(),
        "c_char" => "char".into(),
        "c_void" => "void".into(),
        "u64" => "uint64_t".into(),
        "i64" => "int64_t".into(),
        "usize" => "size_t".into(),
        // A function: see `typedef`.
        name if ["tidemark_read", "tidemark_write", "tidemark_end"].contains(&name) => name.into(),
        name if name.starts_with("tidemark_") => format!("struct {name}"),
        other => panic!("`{other}` has no counterpart in C"),
    }
}

/// `name: type` as C declares it. A function that may be missing is a pointer that may be null.
fn declared(rust: &str) -> String {
    let (name, kind) = rust.split_once(": ").expect("a name and a type");
    let function = kind
        .strip_prefix("Option<")
        .map(|it| it.trim_end_matches('>'));
    let kind = function.map_or_else(|| in_c(kind), |it| format!("{} *", in_c(it)));
    let space = if kind.ends_with('*') { "" } else { " " };
    format!("{kind}{space}{name}")
}

/// A comment of C, with each line `indent`ed.
fn comment(lines: &[String], indent: &str) -> String {
    let end = lines.iter().position(|line| line == "# Safety");
    let text = lines[..end.unwrap_or(lines.len())].join("\n");
    let text = text
        .trim()
        .replace('`', "")
        .replace('\n', &format!("\n{indent}   "))
        .replace(&format!("\n{indent}   \n"), "\n\n");
    format!("{indent}/* {text} */\n")
}

/// The header of a source.
fn header(source: &str) -> String {
    let (mut made, mut docs) = (TOP.to_owned(), Vec::new());
    let (mut is_shared, mut numbers) = (false, String::new());
    let mut lines = source.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push(doc.trim().to_owned());
        } else if line == "#[repr(C)]" {
            is_shared = true;
        } else if line.starts_with("#[") {
        } else if let Some(number) = line.strip_prefix("pub const ") {
            let (name, value) = number.split_once(": c_int = ").expect("a number");
            numbers += &comment(&docs, "    ");
            writeln!(numbers, "    {name} = {},", value.trim_end_matches(';')).unwrap();
            docs.clear();
        } else if let Some(name) = line.strip_prefix("pub struct ") {
            let name = name.trim_end_matches(" {");
            if !numbers.is_empty() {
                let numbers = std::mem::take(&mut numbers);
                let numbers = numbers.trim_end().trim_end_matches(',');
                write!(
                    made,
                    "\n/* What calls come to. */\nenum {{\n{numbers}\n}};\n"
                )
                .unwrap();
            }
            write!(made, "\n{}struct {name}", comment(&docs, "")).unwrap();
            made += &if is_shared {
                fields(&mut lines)
            } else {
                ";\n".into()
            };
            (docs, is_shared) = (Vec::new(), false);
        } else if line.starts_with("pub ") && line.contains("extern \"C\" fn") {
            let mut whole = line.to_owned();
            while !whole.ends_with(['{', ';']) {
                let next = lines.next().expect("a function has a body, or is a type");
                whole += &format!(" {next}");
            }
            write!(made, "\n{}{}", comment(&docs, ""), function(&whole)).unwrap();
            docs.clear();
        } else {
            docs.clear();
        }
    }
    made + BOTTOM
}

/// The fields of a structure, to its end.
fn fields<'a>(lines: &mut impl Iterator<Item = &'a str>) -> String {
    let (mut made, mut docs) = (String::from(" {\n"), Vec::new());
    for line in lines {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push(doc.trim().to_owned());
        } else if let Some(field) = line.strip_prefix("pub ") {
            made += &comment(&docs, "    ");
            writeln!(made, "    {};", declared(field.trim_end_matches(','))).unwrap();
            docs.clear();
        } else {
            assert_eq!(line, "}", "a structure of C has fields alone");
            break;
        }
    }
    made + "};\n"
}

/// The declaration of a function, or of a type of functions, by its first lines in Rust.
fn function(whole: &str) -> String {
    let (before, rest) = whole.split_once("extern \"C\" fn").expect("seen above");
    let (name, rest) = rest.split_once('(').expect("it has arguments");
    let named = before.strip_prefix("pub type ");
    let named = named.and_then(|before| before.split(' ').next());
    let (typedef, name) = match named {
        Some(named) => ("typedef ", named),
        None => ("", name.trim()),
    };
    let (arguments, rest) = rest.split_once(')').expect("they end");
    let arguments = arguments.split(',').map(str::trim);
    let arguments: Vec<_> = arguments
        .filter(|one| !one.is_empty())
        .map(declared)
        .collect();
    let arguments = match arguments.is_empty() {
        true => "void".into(),
        false => arguments.join(", "),
    };
    let kind = rest.trim().trim_end_matches(['{', ';']).trim();
    let kind = kind.strip_prefix("-> ").map_or("void".into(), in_c);
    let space = if kind.ends_with('*') { "" } else { " " };
    let line = format!("{typedef}{kind}{space}{name}({arguments});\n");
    if line.len() <= 101 {
        return line;
    }
    // Behind the opening parenthesis, as far as a line goes.
    let indent = " ".repeat(line.find('(').expect("it has arguments") + 1);
    let (mut made, mut length) = (String::new(), 0);
    for word in line.split_inclusive(", ") {
        if length + word.trim_end().len() > 100 {
            made = format!("{}\n{indent}", made.trim_end());
            length = indent.len();
        }
        made += word;
        length += word.len();
    }
    made
}

#[test]
fn the_header_is_that_of_the_source() {
    let read = |name| fs::read_to_string(here(name)).unwrap();
    let made = header(&(read("src/types.rs") + &read("src/lib.rs")));
    let place = here("include/tidemark_memory.h");
    if std::env::var("TIDEMARK_GOLDEN").is_ok_and(|value| value == "write") {
        fs::write(&place, &made).unwrap();
    }
    assert!(
        fs::read_to_string(&place).is_ok_and(|kept| kept == made),
        "{} is not that of the source; TIDEMARK_GOLDEN=write rewrites it",
        place.display()
    );
}

#[test]
fn the_programs_call_every_function() {
    let read = |name| fs::read_to_string(here(name)).unwrap();
    let header = read("include/tidemark_memory.h");
    let programs = read("tests/program.c") + &read("tests/stores.c");
    let functions = header
        .lines()
        .filter(|line| line.ends_with(");") || line.ends_with('('));
    let names = functions.filter_map(|line| {
        let name = line.split('(').next()?.rsplit([' ', '*']).next()?;
        // The program has functions of these types.
        let is_call = !line.starts_with("typedef ");
        (is_call && name.starts_with("tidemark_")).then_some(name)
    });
    let names: Vec<&str> = names.collect();
    assert!(names.len() >= 11, "{names:?}");
    for name in names {
        assert!(
            programs.contains(&format!("{name}(")),
            "`{name}` is not called"
        );
    }
}
