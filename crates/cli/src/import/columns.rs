//! The columns of a CSV file, as given on the command line.

use tidemark_lab::names::near_or_all;
use tidemark_trace::import::csv::{Column, Role};

use crate::exit::{Refusal, refuse};

/// Reads `page=2,kinds=type`. Nothing is no choice.
pub fn parse(text: &str) -> Result<Vec<(Role, Column)>, Refusal> {
    let mut columns: Vec<(Role, Column)> = Vec::new();
    for item in text.split(',').filter(|_| !text.is_empty()) {
        let Some((name, column)) = item
            .split_once('=')
            .filter(|(_, column)| !column.is_empty())
        else {
            refuse!("`--columns {item}`: not a choice; write like `page=2` or `page=obj_id`");
        };
        let Some(role) = Role::ALL.iter().find(|role| role.name() == name) else {
            let names = Role::ALL.map(Role::name);
            let near = near_or_all(name, &names);
            refuse!("`--columns {item}`: unknown `{name}`; {near}");
        };
        if columns.iter().any(|(taken, _)| taken == role) {
            refuse!("`--columns {text}`: `{name}` is there twice; leave one out");
        }
        let column = match column.parse() {
            Ok(number) => Column::Number(number),
            Err(_) => Column::Name(column.into()),
        };
        columns.push((*role, column));
    }
    check(text, &columns)?;
    Ok(columns)
}

/// Refuses choices that contradict each other, or of which one would have no effect.
fn check(text: &str, columns: &[(Role, Column)]) -> Result<(), Refusal> {
    let has = |role| columns.iter().any(|(taken, _)| *taken == role);
    let subjects = [Role::Page, Role::Address, Role::Sector, Role::Key];
    let subjects: Vec<&str> = subjects
        .into_iter()
        .filter(|role| has(*role))
        .map(Role::name)
        .collect();
    match subjects[..] {
        _ if columns.is_empty() => return Ok(()),
        [] => refuse!(
            "`--columns {text}`: no page; add `page=`, `address=`, `sector=` or `key=` and a column"
        ),
        [_] => {}
        _ => refuse!(
            "`--columns {text}`: both {}; leave one out",
            subjects.join(" and ")
        ),
    }
    if has(Role::Bytes) && has(Role::Count) {
        refuse!(
            "`--columns {text}`: both bytes and count say how long an access is; leave one out"
        );
    }
    if has(Role::Count) && !has(Role::Page) {
        refuse!("`--columns {text}`: `count` counts pages from a page on; use `bytes` with others");
    }
    let strangers = [Role::Address, Role::Sector, Role::Count, Role::Process];
    match strangers.into_iter().find(|role| has(*role)) {
        Some(role) if has(Role::Visit) => refuse!(
            "`--columns {text}`: visits want objects, named by `page` or `key`; leave out `{}`",
            role.name()
        ),
        _ => {}
    }
    if has(Role::Bytes) && has(Role::Key) && !has(Role::Visit) {
        refuse!("`--columns {text}`: a key has no length in pages; leave out `bytes`");
    }
    for (at, (role, column)) in columns.iter().enumerate() {
        if let Some((other, _)) = columns[..at].iter().find(|(_, taken)| taken == column) {
            let (role, other) = (role.name(), other.name());
            refuse!("`--columns {text}`: one column for `{other}` and `{role}`; choose another");
        }
    }
    Ok(())
}

/// Reads a delimiter: one character of ASCII, or its name.
pub fn delimiter(text: &str) -> Result<u8, Refusal> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        ("space", _) => Ok(b' '),
        (_, &[byte]) if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | b'"' | 0) => Ok(byte),
        _ => refuse!("`--delimiter {text}`: not one character; use one like `,`, or `tab`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_numbers_or_names() {
        let found = parse("page=2,kinds=type").unwrap();
        let expected = [
            (Role::Page, Column::Number(2)),
            (Role::Kinds, Column::Name("type".into())),
        ];
        assert_eq!(found, expected);
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn a_slip_is_named() {
        for (text, expected) in [
            ("page", "`--columns page`: not a choice"),
            ("page=", "not a choice"),
            ("pgae=1", "unknown `pgae`"),
            ("page=1,page=2", "`page` is there twice"),
            ("time=1", "no page"),
            ("page=1,address=2", "both page and address"),
            ("page=1,bytes=2,count=3", "both bytes and count"),
            ("address=1,count=2", "`count` counts pages"),
            ("key=1,bytes=2", "a key has no length"),
            ("page=1,time=1", "one column for `page` and `time`"),
            ("page=1,visit=1", "one column for `page` and `visit`"),
            ("address=1,visit=2", "leave out `address`"),
            ("page=1,process=2,visit=3", "leave out `process`"),
            ("visit=1", "no page"),
        ] {
            let told = parse(text).unwrap_err().to_string();
            assert!(told.contains(expected), "{told}");
        }
    }

    #[test]
    fn delimiters_are_single_characters() {
        assert_eq!(delimiter(";").unwrap(), b';');
        assert_eq!(delimiter("tab").unwrap(), b'\t');
        for wrong in ["", ";;", "é", "\"", "\n"] {
            assert!(delimiter(wrong).is_err(), "{wrong}");
        }
    }
}
