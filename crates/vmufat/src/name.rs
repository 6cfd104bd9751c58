//! Names of files: 1 to 12 bytes, padded with zeros on the volume.

use core::fmt;

/// The longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 12;

/// The name of a file: ASCII, or Shift-JIS, of which only the bytes are known here.
///
/// Names that a volume has may be of any bytes. A name for a new file has no control characters,
/// no slash, and no space at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    padded: [u8; NAME_BYTES_MAX],
}

impl Name {
    /// The name with these bytes, if a new file may have it.
    pub fn new(bytes: &[u8]) -> Option<Name> {
        let is_printable = |&byte: &u8| byte >= b' ' && byte != 0x7f && byte != b'/';
        let is_good = (1..=NAME_BYTES_MAX).contains(&bytes.len())
            && bytes.iter().all(is_printable)
            && bytes.last() != Some(&b' ');
        is_good.then(|| {
            let mut padded = [0; NAME_BYTES_MAX];
            padded[..bytes.len()].copy_from_slice(bytes);
            Name { padded }
        })
    }

    /// The name that `text` spells, if a new file may have it; `\xNN` stands for any byte.
    pub fn spelled(text: &str) -> Option<Name> {
        let mut bytes = [0; NAME_BYTES_MAX];
        let mut length = 0;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let byte = match rest.strip_prefix("\\x") {
                Some(digits) => {
                    let byte = digits.get(..2)?;
                    let is_digits = byte.bytes().all(|digit| digit.is_ascii_hexdigit());
                    rest = &digits[2..];
                    u8::from_str_radix(byte, 16).ok().filter(|_| is_digits)?
                }
                None => {
                    let byte = first.is_ascii().then_some(first as u8)?;
                    rest = &rest[1..];
                    byte
                }
            };
            *bytes.get_mut(length)? = byte;
            length += 1;
        }
        Name::new(&bytes[..length])
    }

    /// The name in a record. What follows a zero counts for nothing, nor do spaces at the end,
    /// with which some cards pad.
    pub(crate) fn from_record(field: &[u8; NAME_BYTES_MAX]) -> Name {
        let end = field.iter().position(|&byte| byte == 0);
        let whole = &field[..end.unwrap_or(NAME_BYTES_MAX)];
        let length = whole.iter().rposition(|&byte| byte != b' ');
        let length = length.map_or(0, |last| last + 1);
        let mut padded = [0; NAME_BYTES_MAX];
        padded[..length].copy_from_slice(&whole[..length]);
        Name { padded }
    }

    /// The bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        let length = self.padded.iter().position(|&byte| byte == 0);
        &self.padded[..length.unwrap_or(NAME_BYTES_MAX)]
    }

    /// The bytes with zeros behind them, as a record has them.
    pub(crate) fn padded(&self) -> &[u8; NAME_BYTES_MAX] {
        &self.padded
    }

    /// Reports whether there is no name at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.padded[0] == 0
    }

    /// The name of at most 12 bytes with `~number` at its end.
    pub(crate) fn numbered(&self, number: u32) -> Name {
        let mut digits = [0; NAME_BYTES_MAX];
        let mut rest = number;
        let mut at = NAME_BYTES_MAX;
        // 65,536 blocks hold fewer than 100,000 records.
        while rest > 0 || at == NAME_BYTES_MAX {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        at -= 1;
        digits[at] = b'~';
        let tail = &digits[at..];
        let kept = self.as_bytes().len().min(NAME_BYTES_MAX - tail.len());
        let mut padded = [0; NAME_BYTES_MAX];
        padded[..kept].copy_from_slice(&self.padded[..kept]);
        padded[kept..kept + tail.len()].copy_from_slice(tail);
        Name { padded }
    }
}

/// Bytes that are no printable ASCII, and backslashes, stand as `\xNN`.
impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.as_bytes() {
            match byte {
                b' '..=b'~' if byte != b'\\' => write!(out, "{}", char::from(byte))?,
                _ => write!(out, "\\x{byte:02x}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn names_of_new_files_are_1_to_12_printable_bytes() {
        for good in [&b"a"[..], b"SONIC2___S01", b"a b", b"\x83\x5c\x83\x6a"] {
            assert_eq!(Name::new(good).unwrap().as_bytes(), good);
        }
        for bad in [&b""[..], b"SONIC2___S012", b"a/b", b"a\0", b"a ", b"\x1b"] {
            assert_eq!(Name::new(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn padding_of_any_kind_is_no_part_of_a_name() {
        let name = Name::new(b"MINIGAME").unwrap();
        for field in [b"MINIGAME\0\0\0\0", b"MINIGAME    ", b"MINIGAME\0xyz"] {
            assert_eq!(Name::from_record(field), name);
        }
        assert!(Name::from_record(b"            ").is_empty());
    }

    #[test]
    fn other_bytes_are_shown_by_their_numbers() {
        let name = Name::from_record(b"a\\\x83\x5c\x07\0\0\0\0\0\0\0");
        assert_eq!(name.to_string(), r"a\x5c\x83\x5c\x07");
    }

    #[test]
    fn a_numbered_name_keeps_what_it_has_room_for() {
        let name = Name::new(b"SONIC2___S01").unwrap();
        assert_eq!(name.numbered(2).to_string(), "SONIC2___S~2");
        assert_eq!(name.numbered(61_440).to_string(), "SONIC2~61440");
        assert_eq!(Name::new(b"a").unwrap().numbered(0).to_string(), "a~0");
    }
}
