//! Rust source reduced to code: comments and literals become blanks of the same length, so that
//! lines, columns and braces stay where they are.

/// A function found in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, without module or type.
    pub name: String,
    /// The line of its `fn`, counted from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace, both counted.
    pub lines: usize,
}

/// Replaces comments, strings and characters in `text` by blanks.
pub fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match literal_end(bytes, at) {
            Some(end) => end,
            None => {
                at += 1;
                continue;
            }
        };
        for byte in &mut code[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8(code).expect("blanks replace whole literals, and those hold whole characters")
}

/// The code of `text` alone: through [`blank`], and with blanks for the items marked
/// `#[cfg(test)]`, wherever in the file they stand.
pub fn product(text: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut code = blank(text);
    while let Some(at) = code.find(MARK) {
        let end = item_end(&code[at..]).map_or(code.len(), |length| at + length);
        let item = code[at..end].chars();
        let blanks: String = item.map(|c| if c == '\n' { c } else { ' ' }).collect();
        code.replace_range(at..end, &blanks);
    }
    code
}

/// The functions with a body in `code`, which has been through [`blank`].
pub fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in words(code).filter(|(_, word)| *word == "fn") {
        let Some((_, name)) = words(&code[at + 2..]).next() else {
            continue;
        };
        let Some(length) = item_end(&code[at..]) else {
            continue;
        };
        if code[..at + length].ends_with(';') {
            continue;
        }
        found.push(Function {
            name: name.to_owned(),
            line: line_of(code, at),
            lines: code[at..at + length].matches('\n').count() + 1,
        });
    }
    found
}

/// The words of `code`: identifiers and keywords, with the offset of each.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = code.as_bytes();
        let start = at + bytes[at..].iter().position(|byte| is_word(*byte))?;
        let length = bytes[start..].iter().position(|byte| !is_word(*byte));
        at = length.map_or(bytes.len(), |length| start + length);
        Some((start, &code[start..at]))
    })
}

/// The line, counted from 1, in which offset `at` of `text` lies.
pub fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The end of the item that starts at the beginning of `code`: after its body, or after the `;` of
/// one without.
fn item_end(code: &str) -> Option<usize> {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => others += 1,
            b')' | b']' => others = others.checked_sub(1)?,
            // A `;` inside brackets is an array's length, not the end of a declaration.
            b';' if braces == 0 && others == 0 => return Some(at + 1),
            b'{' => braces += 1,
            b'}' => {
                braces = braces.checked_sub(1)?;
                if braces == 0 && others == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The end of the comment or literal that starts at `at`; `None` if none starts there.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let is_inside_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let length = match rest {
        [b'/', b'/', ..] => rest
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment_length(rest),
        [b'"', ..] => string_length(rest),
        [b'r', b'"' | b'#', ..] if !is_inside_word => raw_string_length(rest)?,
        [b'b' | b'c', b'r', b'"' | b'#', ..] if !is_inside_word => {
            1 + raw_string_length(&rest[1..])?
        }
        [b'\'', ..] => character_length(rest)?,
        _ => return None,
    };
    Some(at + length)
}

/// The length of a block comment; they nest.
fn block_comment_length(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string_length(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a raw string; `None` if this is a raw identifier.
fn raw_string_length(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let body = 2 + hashes;
    let closes = |tail: &[u8]| tail[0] == b'"' && tail[1..].starts_with(&vec![b'#'; hashes]);
    let end = (body..rest.len()).find(|at| closes(&rest[*at..]));
    Some(end.map_or(rest.len(), |end| end + 1 + hashes))
}

/// The length of a character literal; `None` if this is a lifetime.
fn character_length(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        let end = rest[3..].iter().position(|byte| *byte == b'\'')?;
        return Some(3 + end + 1);
    }
    // One character of up to four bytes, then the closing quote.
    let text = std::str::from_utf8(&rest[1..rest.len().min(8)]);
    let text = match &text {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&rest[1..1 + error.valid_up_to()]).ok()?,
    };
    let mut characters = text.chars();
    let length = characters.next()?.len_utf8();
    (characters.next() == Some('\'')).then_some(length + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_in_place() {
        let text =
            "let a = \"un//safe\\\"\"; // unsafe\n/* x /* unsafe */ */ b'\\'' 'x' &'a r#\"\"\"#;";
        let code = blank(text);
        assert_eq!(code.len(), text.len());
        assert!(!code.contains("safe"));
        assert!(code.contains("&'a"), "a lifetime is code: {code}");
        assert!(!code.contains('"'));
    }

    #[test]
    fn items_for_tests_are_blanked_wherever_they_stand() {
        let text = "#[cfg(test)]\nmod tests;\nfn a() -> [u8; 4] {}\n#[cfg(test)]\n#[inline]\n\
                    fn b([_; 2]: T) { \"}\"; }\nfn c() {}\n#[cfg(test)]\nmod tests { fn d() {} }\n";
        let code = product(text);
        assert_eq!(code.len(), text.len());
        let names: Vec<String> = functions(&code).into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["a", "c"]);
        assert!(!code.contains("mod"), "{code}");
    }

    #[test]
    fn a_character_of_several_bytes_is_a_literal() {
        assert_eq!(blank("('é', '{', '→')").replace(' ', ""), "(,,)");
    }

    #[test]
    fn a_function_is_counted_from_its_name_to_its_last_brace() {
        let code = blank(
            "trait T { fn none(&self) -> [u8; 4]; }\nfn two()\n{ if x { y } }\nfn one() {}\n",
        );
        let found = functions(&code);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].name.as_str(), found[0].line, found[0].lines),
            ("two", 2, 2)
        );
        assert_eq!(
            (found[1].name.as_str(), found[1].line, found[1].lines),
            ("one", 4, 1)
        );
    }
}
