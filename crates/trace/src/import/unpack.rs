//! Input that is compressed: unpacked on the way, by its first bytes and not by its name.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use zstd::stream::read::Decoder;

use crate::error::Error;

/// The most memory unpacking takes, as a power of two of bytes: what `zstd --long` uses.
const WINDOW_LOG_MAX: u32 = 27;

/// A dictionary of xz's own: `xz -9` has one of 64 MiB.
const DICTIONARY_KIB_MAX: u32 = 128 << 10;

/// The first bytes of a file that is compressed with zstd.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The first bytes of a file that is compressed with gzip.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The first bytes of a file that is compressed with xz.
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

/// An import, unpacked.
enum Unpacked<R: BufRead> {
    Plain(R),
    Zstd(Box<Decoder<'static, R>>),
    Gzip(Box<MultiGzDecoder<R>>),
    Xz(Box<XzReader<R>>),
}

/// Unpacks `source` if it is compressed with gzip, xz or zstd.
///
/// # Errors
/// It can't be read.
pub fn open(source: impl Read) -> Result<impl Read, Error> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    // A pipe may hand over the first bytes one by one.
    let mut start = [0; 6];
    let filled = crate::container::fill(&mut source, &mut start)?;
    let source = io::Cursor::new(start[..filled].to_vec()).chain(source);
    let starts_with = |magic: &[u8]| start[..filled].starts_with(magic);
    Ok(if starts_with(ZSTD) {
        let mut decoder = Decoder::with_buffer(source)?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        Unpacked::Zstd(Box::new(decoder))
    } else if starts_with(GZIP) {
        Unpacked::Gzip(Box::new(MultiGzDecoder::new(source)))
    } else if starts_with(XZ) {
        let reader = XzReader::new_mem_limit(source, true, DICTIONARY_KIB_MAX);
        Unpacked::Xz(Box::new(reader))
    } else {
        Unpacked::Plain(source)
    })
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let (result, packer) = match self {
            Unpacked::Plain(source) => return source.read(bytes),
            Unpacked::Zstd(decoder) => (decoder.read(bytes), "zstd"),
            Unpacked::Gzip(decoder) => (decoder.read(bytes), "gzip"),
            Unpacked::Xz(decoder) => (decoder.read(bytes), "xz"),
        };
        result.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => {
                let text = format!("compressed with {packer}, and damaged or cut off ({error})");
                io::Error::new(io::ErrorKind::InvalidData, text)
            }
        })
    }
}
