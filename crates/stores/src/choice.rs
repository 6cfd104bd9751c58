//! Stores for pages that leave, as `--store` of the command and the library for C name them.

/// A store for pages that leave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// True if pages are compressed in memory first.
    pub is_compressed: bool,
    /// The place behind that memory, or instead of it.
    pub behind: Behind,
}

/// The place of pages that leave memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Behind {
    /// Nothing: pages that do not fit, compressed, can't be stored.
    Nothing,
    /// A swap file.
    File,
    /// A server, by its address.
    Server(String),
}

impl Choice {
    /// Reads a name: `compressed+file`, `compressed`, `file`, or an address such as
    /// `redis://HOST/0/NAME`, with `compressed+` in front or without. The address is not looked at.
    ///
    /// # Errors
    /// It is none of these; the text says what would do.
    pub fn parse(text: &str) -> Result<Choice, String> {
        let (is_compressed, rest) = match text.strip_prefix("compressed") {
            Some("") => {
                return Ok(Choice {
                    is_compressed: true,
                    behind: Behind::Nothing,
                });
            }
            Some(rest) if rest.starts_with('+') => (true, &rest[1..]),
            Some(_) | None => (false, text),
        };
        let behind = match rest {
            "file" => Behind::File,
            address if address.contains("://") => Behind::Server(address.into()),
            _ => {
                return Err(
                    "needs `compressed+file`, `compressed`, `file`, or an address such as \
                     `redis://HOST/0/NAME`, with `compressed+` in front or without"
                        .into(),
                );
            }
        };
        Ok(Choice {
            is_compressed,
            behind,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_and_shown_again() {
        for name in ["compressed", "file", "compressed+file"] {
            assert_eq!(Choice::parse(name).unwrap().shown().unwrap(), name);
        }
        let parsed = Choice::parse("compressed+redis://me:secret@host/0/name").unwrap();
        assert!(parsed.is_compressed);
        let shown = parsed.shown().unwrap();
        assert_eq!(shown, "compressed+redis://me@host/0/name");
        for wrong in ["", "compressed+", "compressedfile", "host:1", "files"] {
            assert!(Choice::parse(wrong).unwrap_err().contains("needs `"));
        }
    }
}
