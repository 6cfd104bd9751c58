//! Keys, out of the bytes that a terminal sends.

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// The previous line, or the next.
    Up,
    /// The next line.
    Down,
    /// The previous page.
    PageUp,
    /// The next page.
    PageDown,
    /// The end of an entry.
    Enter,
    /// Takes back the last character.
    Backspace,
    /// Leaves an entry.
    Escape,
    /// Ends the program: control-C.
    Interrupt,
}

/// The bytes of a key that has not come as a whole.
#[derive(Debug, Default)]
pub struct Keys {
    begun: Vec<u8>,
}

/// The sequences of keys that have no character.
const SEQUENCES: [(&[u8], Key); 6] = [
    (b"\x1b[A", Key::Up),
    (b"\x1b[B", Key::Down),
    (b"\x1bOA", Key::Up),
    (b"\x1bOB", Key::Down),
    (b"\x1b[5~", Key::PageUp),
    (b"\x1b[6~", Key::PageDown),
];

impl Keys {
    /// Takes the keys that `bytes` bring to their end. Sequences that are not known are left out.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut keys = vec![];
        let mut rest = &all[..];
        while let Some((&first, others)) = rest.split_first() {
            if first == 0x1b && rest.len() > 1 {
                match sequence_end(rest) {
                    Some(end) => {
                        let known = SEQUENCES.iter().find(|(bytes, _)| *bytes == &rest[..end]);
                        keys.extend(known.map(|(_, key)| *key));
                        rest = &rest[end..];
                    }
                    None => {
                        self.begun = rest.to_vec();
                        return keys;
                    }
                }
                continue;
            }
            keys.extend(match first {
                0x1b => Some(Key::Escape),
                0x03 => Some(Key::Interrupt),
                b'\r' | b'\n' => Some(Key::Enter),
                0x08 | 0x7f => Some(Key::Backspace),
                byte if byte.is_ascii_graphic() || byte == b' ' => Some(Key::Char(byte.into())),
                _ => None,
            });
            rest = others;
        }
        keys
    }
}

/// The length of the sequence that `bytes` begin with; `None` if it has not ended.
fn sequence_end(bytes: &[u8]) -> Option<usize> {
    match bytes[1] {
        b'[' => {
            let end = bytes[2..]
                .iter()
                .position(|byte| (0x40..0x7f).contains(byte));
            end.map(|end| end + 3)
        }
        b'O' => (bytes.len() > 2).then_some(3),
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_whole_and_in_pieces() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(b"q\x1b[A\x1b["), [Key::Char('q'), Key::Up]);
        assert_eq!(keys.take(b"6~\x03"), [Key::PageDown, Key::Interrupt]);
        assert_eq!(keys.take(b"\x1b[1;5C\xff\xc3z"), [Key::Char('z')]);
        assert_eq!(keys.take(b"\x1b"), [Key::Escape]);
        assert_eq!(
            keys.take(b"8M\x7f\r"),
            [Key::Char('8'), Key::Char('M'), Key::Backspace, Key::Enter]
        );
    }
}
