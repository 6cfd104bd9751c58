//! Integers in as few bytes as they need: seven bits a byte, low ones first (LEB128).

/// The most bytes 64 bits take.
pub const BYTES_MAX: usize = 10;

/// Appends `value`.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a value off the front of `bytes`; `None` if it is cut off or exceeds 64 bits.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for (at, &byte) in bytes.iter().enumerate().take(BYTES_MAX) {
        let bits = u64::from(byte & 0x7f);
        if at == BYTES_MAX - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Some(value);
        }
    }
    None
}

/// A difference as a number that is small when the difference is, either way.
pub fn fold(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// The difference that [`fold`] made `value` of.
pub fn unfold(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_can_be_taken() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::MAX >> 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            bytes.push(7);
            let mut rest = &bytes[..];
            assert_eq!(take(&mut rest), Some(value));
            assert_eq!(rest, [7]);
            assert_eq!(take(&mut &bytes[..bytes.len() - 2]), None, "{value}");
        }
    }

    #[test]
    fn what_exceeds_64_bits_is_refused() {
        assert_eq!(take(&mut &[0xff; 11][..]), None);
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert_eq!(take(&mut &too_large[..]), None);
    }

    #[test]
    fn small_differences_are_small_numbers() {
        assert_eq!([0, -1, 1, -2].map(fold), [0, 1, 2, 3]);
        for difference in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(unfold(fold(difference)), difference);
        }
    }
}
