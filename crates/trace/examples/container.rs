//! Compares containers on the blocks of real traces: ours, raw columns under zstd, and Parquet.
//!
//! `cargo run --release -p tidemark-trace --example container -- FILE.tide…`; each number is the
//! best of several runs on one thread, from and to memory, by the thread's processor time.

use std::fs;

use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};
use tidemark_trace::export::{self, Form, Names, Numbering};
use tidemark_trace::{Block, Reader, Writer};

const ROUNDS: usize = 5;

/// Bytes a record, and millions of records a second written and read.
struct Cost {
    bytes: f64,
    written: f64,
    read: f64,
}

fn main() {
    println!(
        "{:<24} {:<12} {:>10} {:>12} {:>12}",
        "trace", "container", "B/record", "written M/s", "read M/s"
    );
    for path in std::env::args().skip(1) {
        let file = fs::read(&path).expect("the trace can be read");
        let mut reader = Reader::new(&file[..]).expect("it is a trace");
        let header = reader.header().clone();
        let mut blocks = vec![Block::default()];
        while reader
            .next_block(blocks.last_mut().expect("there is one"))
            .expect("it is whole")
        {
            blocks.push(Block::default());
        }
        blocks.pop();
        let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
        let show = |container: &str, cost: Cost| {
            println!(
                "{name:<24} {container:<12} {:>10.3} {:>12.0} {:>12.0}",
                cost.bytes, cost.written, cost.read
            );
        };
        show("ours", ours(&header, &blocks));
        show("raw+zstd 1", raw(&blocks, 1));
        show("raw+zstd 3", raw(&blocks, 3));
        show("parquet", parquet_cost(&header, &blocks));
    }
}

fn ours(header: &tidemark_trace::Header, blocks: &[Block]) -> Cost {
    let write = || {
        let mut writer = Writer::new(Vec::new(), header).expect("memory takes every byte");
        for block in blocks {
            writer.write(block).expect("memory takes every byte");
        }
        writer.finish().expect("memory takes every byte")
    };
    let (bytes, written) = best(write);
    let (_, read) = best(|| {
        let mut reader = Reader::new(&bytes[..]).expect("it is a trace");
        let mut block = Block::default();
        while reader.next_block(&mut block).expect("it is whole") {}
    });
    cost(bytes.len(), blocks, written, read)
}

/// The three columns as they are in memory, each compressed by itself.
fn raw(blocks: &[Block], level: i32) -> Cost {
    let pack = |bytes: &[u8]| zstd::bulk::compress(bytes, level).expect("it has room");
    let write = || -> Vec<[Vec<u8>; 3]> {
        let columns = blocks.iter().map(|block| {
            let pages: Vec<u8> = block
                .pages
                .iter()
                .flat_map(|page| page.to_le_bytes())
                .collect();
            let gaps: Vec<u8> = block
                .gaps
                .iter()
                .flat_map(|gap| gap.to_le_bytes())
                .collect();
            [pack(&pages), pack(&block.kinds), pack(&gaps)]
        });
        columns.collect()
    };
    let (packed, written) = best(write);
    let mut block = Block::default();
    let (_, read) = best(|| {
        for [pages, kinds, gaps] in &packed {
            let unpack = |bytes: &[u8], most| {
                zstd::bulk::decompress(bytes, most * Block::RECORDS_MAX).expect("it was packed")
            };
            block.clear();
            let (pages, gaps) = (unpack(pages, 8), unpack(gaps, 4));
            let (words, _) = pages.as_chunks::<8>();
            block
                .pages
                .extend(words.iter().map(|&word| u64::from_le_bytes(word)));
            block.kinds.extend(unpack(kinds, 1));
            let (words, _) = gaps.as_chunks::<4>();
            block
                .gaps
                .extend(words.iter().map(|&word| u32::from_le_bytes(word)));
        }
    });
    let bytes = packed.iter().flatten().map(Vec::len).sum();
    cost(bytes, blocks, written, read)
}

fn parquet_cost(header: &tidemark_trace::Header, blocks: &[Block]) -> Cost {
    let mut writer = Writer::new(Vec::new(), header).expect("memory takes every byte");
    for block in blocks {
        writer.write(block).expect("memory takes every byte");
    }
    let trace = writer.finish().expect("memory takes every byte");
    let (bytes, written) = best(|| {
        let mut reader = Reader::new(&trace[..]).expect("it is a trace");
        let mut out = Vec::new();
        let mut names = Names::new(Numbering::AsIs);
        export::export(&mut reader, Form::Parquet, None, &mut names, &mut out)
            .expect("memory takes every byte");
        out
    });
    let path = std::env::temp_dir().join(format!("tidemark-container-{}", std::process::id()));
    fs::write(&path, &bytes).expect("there is room");
    let (_, read) = best(|| read_parquet(&path));
    let _ = fs::remove_file(&path);
    cost(bytes.len(), blocks, written, read)
}

/// Reads every column through the library's plain interface.
fn read_parquet(path: &std::path::Path) -> usize {
    let file = fs::File::open(path).expect("it was written");
    let file = SerializedFileReader::new(file).expect("it was written");
    let mut count = 0;
    let (mut narrow, mut wide) = (Vec::new(), Vec::new());
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group).expect("it is counted");
        let rows = usize::try_from(group.metadata().num_rows()).expect("it is a count");
        for column in 0..group.num_columns() {
            match group.get_column_reader(column).expect("it is counted") {
                ColumnReader::Int32ColumnReader(mut column) => {
                    narrow.clear();
                    let read = column.read_records(rows, None, None, &mut narrow);
                    count += read.expect("it was written").0;
                }
                ColumnReader::Int64ColumnReader(mut column) => {
                    wide.clear();
                    let read = column.read_records(rows, None, None, &mut wide);
                    count += read.expect("it was written").0;
                }
                _ => panic!("there is no such column"),
            }
        }
    }
    count
}

/// The result of `work`, and the seconds its quickest run took.
fn best<T>(mut work: impl FnMut() -> T) -> (T, f64) {
    let mut least = f64::INFINITY;
    let mut result = None;
    for _ in 0..ROUNDS {
        let since = processor_seconds();
        result = Some(work());
        least = least.min(processor_seconds() - since);
    }
    (result.expect("there is a round"), least)
}

/// Processor time of this thread, which other programs on the machine do not add to.
fn processor_seconds() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text
        .split(' ')
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    ns.expect("Linux tells a thread's processor time in its schedstat") / 1e9
}

fn cost(bytes: usize, blocks: &[Block], written_s: f64, read_s: f64) -> Cost {
    let records: usize = blocks.iter().map(Block::len).sum();
    Cost {
        bytes: bytes as f64 / records as f64,
        written: records as f64 / written_s / 1e6,
        read: records as f64 / read_s / 1e6,
    }
}
