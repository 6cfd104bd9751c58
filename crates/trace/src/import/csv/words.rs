//! Words for kinds of access.

use crate::model::Kinds;

/// Words, beside single letters.
const WORDS: [(&[u8], Kinds); 22] = [
    (b"fetch", Kinds::FETCH),
    (b"ifetch", Kinds::FETCH),
    (b"readi", Kinds::FETCH),
    (b"execute", Kinds::FETCH),
    (b"instruction", Kinds::FETCH),
    (b"load", Kinds::LOAD),
    (b"read", Kinds::LOAD),
    (b"readd", Kinds::LOAD),
    (b"get", Kinds::LOAD),
    (b"gets", Kinds::LOAD),
    (b"store", Kinds::STORE),
    (b"write", Kinds::STORE),
    (b"set", Kinds::STORE),
    (b"add", Kinds::STORE),
    (b"put", Kinds::STORE),
    (b"replace", Kinds::STORE),
    (b"update", Kinds::STORE),
    (b"append", Kinds::STORE),
    (b"prepend", Kinds::STORE),
    (b"delete", Kinds::STORE),
    (b"modify", Kinds::LOAD.with(Kinds::STORE)),
    (b"kernel", Kinds::KERNEL),
];

/// The kinds of access that `text` names.
pub fn kinds(text: &[u8]) -> Option<Kinds> {
    let word = WORDS
        .iter()
        .find(|(word, _)| text.eq_ignore_ascii_case(word));
    if let Some((_, kinds)) = word {
        return Some(*kinds);
    }
    text.iter().try_fold(Kinds::default(), |all, letter| {
        let one = match letter.to_ascii_lowercase() {
            b'x' | b'f' | b'i' => Kinds::FETCH,
            b'r' | b'l' => Kinds::LOAD,
            b'w' | b's' => Kinds::STORE,
            b'm' => Kinds::LOAD.with(Kinds::STORE),
            b'k' => Kinds::KERNEL,
            _ => return None,
        };
        Some(all.with(one))
    })
}
