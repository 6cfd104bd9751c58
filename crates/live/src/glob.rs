//! Patterns of paths, as shells have them: `*` for any characters, `/` included, `?` for one,
//! `[a-z]` and `[!a-z]` for one of some, and `\` before a character that stands for itself.

use std::fmt;

/// The reason why a pattern is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadGlob {
    /// The pattern has no characters.
    Empty,
    /// No absolute path can match: it begins with neither `/` nor a wildcard.
    Relative,
    /// A `[` is not closed.
    Open,
    /// The pattern ends with a `\`.
    Escape,
}

impl fmt::Display for BadGlob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            BadGlob::Empty => "an empty pattern matches no file",
            BadGlob::Relative => {
                "it is compared with absolute paths, and begins with neither `/` nor a wildcard; \
                 if it is the program, put `--` before that"
            }
            BadGlob::Open => "`[` without `]`",
            BadGlob::Escape => "nothing follows the `\\` at its end",
        })
    }
}

/// A pattern.
#[derive(Clone, Debug)]
pub struct Glob(Vec<Piece>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Byte(u8),
    One,
    Many,
    /// One of these ranges, or none of them.
    Set(Vec<(u8, u8)>, bool),
}

impl Glob {
    /// Reads a pattern.
    pub fn parse(text: &[u8]) -> Result<Glob, BadGlob> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            pieces.push(match byte {
                b'*' => Piece::Many,
                b'?' => Piece::One,
                b'[' => {
                    let (set, after) = parse_set(rest)?;
                    rest = after;
                    set
                }
                b'\\' => {
                    let (&escaped, after) = rest.split_first().ok_or(BadGlob::Escape)?;
                    rest = after;
                    Piece::Byte(escaped)
                }
                plain => Piece::Byte(plain),
            });
        }
        match pieces.first() {
            None => Err(BadGlob::Empty),
            Some(Piece::Byte(byte)) if *byte != b'/' => Err(BadGlob::Relative),
            Some(_) => Ok(Glob(pieces)),
        }
    }

    /// Returns true if all of `path` matches.
    pub fn matches(&self, path: &[u8]) -> bool {
        // The last `*` that was met, and how much of the path it has taken: what comes later may
        // always go back to it, and never needs to go back further.
        let (mut piece, mut byte) = (0, 0);
        let mut last: Option<(usize, usize)> = None;
        while byte < path.len() {
            match self.0.get(piece) {
                Some(Piece::Many) => {
                    last = Some((piece, byte));
                    piece += 1;
                }
                Some(one) if one.takes(path[byte]) => {
                    piece += 1;
                    byte += 1;
                }
                _ => {
                    let Some((many, taken)) = last else {
                        return false;
                    };
                    last = Some((many, taken + 1));
                    (piece, byte) = (many + 1, taken + 1);
                }
            }
        }
        self.0[piece..].iter().all(|left| *left == Piece::Many)
    }
}

impl Piece {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Piece::Byte(own) => *own == byte,
            Piece::One => true,
            Piece::Many => false,
            Piece::Set(ranges, is_negated) => {
                let is_in = ranges
                    .iter()
                    .any(|&(low, high)| (low..=high).contains(&byte));
                is_in != *is_negated
            }
        }
    }
}

/// Reads what follows a `[`. Answers what follows its `]`, too.
fn parse_set(text: &[u8]) -> Result<(Piece, &[u8]), BadGlob> {
    let is_negated = matches!(text.first(), Some(b'!' | b'^'));
    let text = &text[usize::from(is_negated)..];
    // A `]` that comes first stands for itself.
    let end = text.iter().skip(1).position(|byte| *byte == b']');
    let end = end.ok_or(BadGlob::Open)? + 1;
    let (mut members, mut ranges) = (&text[..end], Vec::new());
    while let [low, rest @ ..] = members {
        (members, ranges) = match rest {
            [b'-', high, after @ ..] => (after, push(ranges, (*low, *high))),
            _ => (rest, push(ranges, (*low, *low))),
        };
    }
    Ok((Piece::Set(ranges, is_negated), &text[end + 1..]))
}

fn push(mut ranges: Vec<(u8, u8)>, range: (u8, u8)) -> Vec<(u8, u8)> {
    ranges.push(range);
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(glob: &str, path: &str) -> bool {
        Glob::parse(glob.as_bytes())
            .unwrap()
            .matches(path.as_bytes())
    }

    #[test]
    fn a_star_stands_for_anything_and_a_question_mark_for_one() {
        assert!(matches("*", "/any/file"));
        assert!(matches("*.mdb", "/data/a.b/data.mdb"));
        assert!(!matches("*.mdb", "/data/data.mdb-lock"));
        assert!(matches("/data/*/x?.bin", "/data/1/2/x9.bin"));
        assert!(!matches("/data/*/x?.bin", "/data/x9.bin"));
        assert!(matches("/a*b*c", "/abcbbc"));
        assert!(!matches("/a*b*c", "/abcbb"));
        assert!(matches("/plain", "/plain") && !matches("/plain", "/plains"));
    }

    #[test]
    fn sets_and_escapes_stand_for_one_character() {
        assert!(matches("*[0-9x].bin", "/a/7.bin") && matches("*[0-9x].bin", "/x.bin"));
        assert!(!matches("/[!0-9]", "/7") && matches("/[!0-9]", "/q"));
        assert!(matches("/[]a]", "/]") && matches("/[a-]", "/-"));
        assert!(matches("/\\*", "/*") && !matches("/\\*", "/x"));
    }

    #[test]
    fn what_is_no_pattern_of_absolute_paths_is_refused() {
        let parse = |text: &str| Glob::parse(text.as_bytes()).unwrap_err();
        assert_eq!(parse(""), BadGlob::Empty);
        assert_eq!(parse("sort"), BadGlob::Relative);
        assert_eq!(parse("/a[b"), BadGlob::Open);
        assert_eq!(parse("/a[]"), BadGlob::Open);
        assert_eq!(parse("/a\\"), BadGlob::Escape);
    }
}
