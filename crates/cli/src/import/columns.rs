//! The columns of a CSV file, as given on the command line.

use tidemark_trace::import::csv::{Column, Role};

use crate::exit::{Refusal, refuse};

/// The roles a column can have, by name.
const ROLES: [(&str, Role); 6] = [
    ("page", Role::Page),
    ("address", Role::Address),
    ("bytes", Role::Bytes),
    ("process", Role::Process),
    ("kinds", Role::Kinds),
    ("time", Role::Time),
];

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
        let Some((_, role)) = ROLES.iter().find(|(known, _)| *known == name) else {
            refuse!(
                "`--columns {item}`: unknown `{name}`; \
                 there are page, address, bytes, process, kinds and time"
            );
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
    let has = |role| columns.iter().any(|(taken, _)| *taken == role);
    match (columns.is_empty(), has(Role::Page), has(Role::Address)) {
        (false, false, false) => {
            refuse!("`--columns {text}`: no page; add `page=` or `address=` and a column")
        }
        (_, true, true) => {
            refuse!("`--columns {text}`: both page and address; leave one out")
        }
        _ => Ok(columns),
    }
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
