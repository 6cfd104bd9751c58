//! Parts of a file: a mark, a length, a checksum, and the bytes they are about.

use std::io::{self, Read};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, ErrorKind, Foreign, HeaderFlaw, Part as Piece, Place};
use crate::model::{Block, Granularity, Header};

use super::varint;

/// The newest version of the format, and the one that is written. Versions are powers of two: no
/// checksum is over this number, and a bit of it that flips must not make another version.
pub const VERSION: u32 = 4;

/// The longest header a reader takes, in bytes.
pub const HEADER_BYTES_MAX: usize = 8 << 20;

/// The first bytes of a file. The first is in no text; the line ends and the end-of-file mark
/// show whether the file passed through something that changes text.
pub const MAGIC: [u8; 8] = *b"\x89TIDE\r\n\x1a";

/// The last bytes of a whole file.
pub const END: [u8; 8] = *b"\x1aTIDEND\n";

/// The bytes before the first part: [`MAGIC`] and [`VERSION`].
pub const PRELUDE_BYTES: usize = 12;

/// The bytes of a part before its contents: mark, length, checksum of the contents, and checksum
/// of these three, so that a wrong length is not taken for a cut.
pub const HEAD_BYTES: usize = 24;

/// The bytes of a head that its own checksum covers.
const HEAD_SUMMED_BYTES: usize = 16;

/// The bytes behind the last part: where the index begins, a checksum, [`END`].
pub const TRAILER_BYTES: usize = 24;

/// The most bytes a block's contents take: each record with a page of its own and a long gap,
/// each event with the longest text, nothing of it compressible.
pub const BLOCK_BYTES_MAX: usize =
    128 + Block::RECORDS_MAX * (2 * varint::BYTES_MAX + 4) + super::events::BYTES_MAX;

/// The contents of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The header, as JSON.
    Header,
    /// A block.
    Block,
    /// The index.
    Index,
}

/// The thing found where a part should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A whole part of this kind.
    Part(Mark),
    /// The end of the file, at the beginning of the part or inside it.
    Cut {
        /// The number of bytes of the part that are there.
        rest: u64,
    },
}

/// The head of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The contents of the part.
    pub mark: Mark,
    /// The length of its contents in bytes.
    pub length: u32,
    sum: u64,
}

impl Mark {
    /// Its four bytes.
    const fn bytes(self) -> [u8; 4] {
        match self {
            Mark::Header => *b"HEAD",
            Mark::Block => *b"BLOK",
            Mark::Index => *b"INDX",
        }
    }

    /// The longest contents a reader takes, in bytes.
    const fn length_max(self) -> usize {
        match self {
            Mark::Header => HEADER_BYTES_MAX,
            Mark::Block => BLOCK_BYTES_MAX,
            Mark::Index => u32::MAX as usize,
        }
    }
}

impl Head {
    /// Reads the head of a part that begins at byte `at` of the file.
    pub fn parse(bytes: &[u8; HEAD_BYTES], at: u64) -> Result<Head, Error> {
        let (summed, sum) = bytes.split_at(HEAD_SUMMED_BYTES);
        let mark = [Mark::Header, Mark::Block, Mark::Index]
            .into_iter()
            .find(|mark| mark.bytes() == bytes[..4]);
        let length = number32(&bytes[4..8]);
        let is_right = xxh3_64(summed) == number64(sum);
        match mark {
            Some(mark) if is_right && length as usize <= mark.length_max() => Ok(Head {
                mark,
                length,
                sum: number64(&bytes[8..16]),
            }),
            _ => Err(Error::corrupt(at, Piece::Frame)),
        }
    }

    /// Compares the checksum of a part that begins at byte `at` with its contents.
    pub fn check(&self, contents: &[u8], at: u64) -> Result<(), Error> {
        match xxh3_64(contents) == self.sum {
            true => Ok(()),
            false => Err(Error::corrupt(at, Piece::Checksum)),
        }
    }
}

/// Completes a part whose contents stand behind room for its head, [`HEAD_BYTES`].
///
/// - Needs: the contents are no longer than the mark allows.
pub fn seal(part: &mut [u8], mark: Mark) {
    let (head, contents) = part.split_at_mut(HEAD_BYTES);
    assert!(contents.len() <= mark.length_max());
    let length = u32::try_from(contents.len()).expect("no mark allows more");
    head[..4].copy_from_slice(&mark.bytes());
    head[4..8].copy_from_slice(&length.to_le_bytes());
    head[8..16].copy_from_slice(&xxh3_64(contents).to_le_bytes());
    let sum = xxh3_64(&head[..HEAD_SUMMED_BYTES]);
    head[HEAD_SUMMED_BYTES..].copy_from_slice(&sum.to_le_bytes());
}

/// Reads the part that begins at byte `at` and leaves its contents in `contents`.
///
/// Memory grows with what is read, not with what the head promises.
pub fn read(source: &mut impl Read, at: u64, contents: &mut Vec<u8>) -> Result<Found, Error> {
    contents.clear();
    let mut head = [0; HEAD_BYTES];
    let filled = fill(source, &mut head)?;
    if filled < HEAD_BYTES {
        return Ok(Found::Cut {
            rest: filled as u64,
        });
    }
    let head = Head::parse(&head, at)?;
    let length = u64::from(head.length);
    let filled = source.by_ref().take(length).read_to_end(contents)?;
    if filled as u64 != length {
        return Ok(Found::Cut {
            rest: (HEAD_BYTES + filled) as u64,
        });
    }
    head.check(contents, at)?;
    Ok(Found::Part(head.mark))
}

/// Reads until `bytes` is full or the source ends; how many there were.
pub fn fill(source: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match source.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The prelude and the header's part.
pub fn header_bytes(header: &Header) -> Result<Vec<u8>, Error> {
    check_header(header)?;
    let mut part = vec![0; HEAD_BYTES];
    serde_json::to_writer(&mut part, header).expect("a header has nothing JSON can't say");
    let length = part.len() - HEAD_BYTES;
    if length > HEADER_BYTES_MAX {
        let flaw = HeaderFlaw::TooLong {
            bytes: length,
            bytes_max: HEADER_BYTES_MAX,
        };
        return Err(Error::new(ErrorKind::BadHeader(flaw)));
    }
    seal(&mut part, Mark::Header);
    let mut bytes = Vec::with_capacity(PRELUDE_BYTES + part.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(part);
    Ok(bytes)
}

/// Reads prelude and header; also says at which byte the next part begins.
pub fn read_header(source: &mut impl Read) -> Result<(Header, u64), Error> {
    let mut prelude = [0; PRELUDE_BYTES];
    let filled = fill(source, &mut prelude)?;
    check_prelude(&prelude[..filled])?;
    let at = PRELUDE_BYTES as u64;
    let mut contents = Vec::new();
    match read(source, at, &mut contents)? {
        Found::Part(Mark::Header) => {}
        Found::Part(Mark::Block | Mark::Index) => return Err(Error::corrupt(at, Piece::Frame)),
        Found::Cut { .. } => return Err(Error::new(ErrorKind::CutInHeader)),
    }
    let header: Header =
        serde_json::from_slice(&contents).map_err(|_| Error::corrupt(at, Piece::Header))?;
    check_header(&header).map_err(|_| Error::corrupt(at, Piece::Header))?;
    Ok((header, at + (HEAD_BYTES + contents.len()) as u64))
}

/// The trailer of a file whose index begins at byte `index_at`.
pub fn trailer(index_at: u64) -> [u8; TRAILER_BYTES] {
    let mut bytes = [0; TRAILER_BYTES];
    bytes[..8].copy_from_slice(&index_at.to_le_bytes());
    bytes[8..16].copy_from_slice(&xxh3_64(&index_at.to_le_bytes()).to_le_bytes());
    bytes[16..].copy_from_slice(&END);
    bytes
}

/// Little-endian, of four bytes.
pub fn number32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

/// Little-endian, of eight bytes.
pub fn number64(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

fn check_header(header: &Header) -> Result<(), Error> {
    let has_length = match header.granularity {
        Granularity::Exact => true,
        Granularity::Quantum(length)
        | Granularity::Window(length)
        | Granularity::Regions(length) => length > 0,
    };
    let flaw = match header.page_bytes.is_power_of_two() {
        false => HeaderFlaw::PageBytes(header.page_bytes),
        true if !has_length => HeaderFlaw::NoLength,
        true => return Ok(()),
    };
    Err(Error::new(ErrorKind::BadHeader(flaw)))
}

fn check_prelude(bytes: &[u8]) -> Result<(), Error> {
    if bytes.is_empty() {
        return Err(Error::new(ErrorKind::Empty));
    }
    let magic = &bytes[..bytes.len().min(MAGIC.len())];
    if !MAGIC.starts_with(magic) {
        return Err(Error::new(ErrorKind::Foreign(foreign(bytes))));
    }
    if bytes.len() < PRELUDE_BYTES {
        return Err(Error::new(ErrorKind::CutInHeader));
    }
    match number32(&bytes[MAGIC.len()..]) {
        1 | 2 | VERSION => Ok(()),
        0..VERSION => Err(Error::corrupt(MAGIC.len() as u64, Piece::Frame)),
        version => Err(Error::at(
            Place::Byte(MAGIC.len() as u64),
            ErrorKind::TooNew {
                version,
                newest: VERSION,
            },
        )),
    }
}

/// The format that a file that begins with `bytes` seems to be.
fn foreign(bytes: &[u8]) -> Foreign {
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    match bytes {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Foreign::Zstd,
        [0x1f, 0x8b, ..] => Foreign::Gzip,
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Foreign::Xz,
        [b'P', b'A', b'R', b'1', ..] => Foreign::Parquet,
        [0x7f, b'E', b'L', b'F', ..] => Foreign::Program,
        [_, b'T', b'I', b'D', b'E', ..] => Foreign::Mangled,
        _ if bytes.iter().all(is_text) => Foreign::Text,
        _ => Foreign::Unknown,
    }
}
