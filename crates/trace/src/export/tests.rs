//! Exported traces can be imported again, as far as the format goes.

use std::fs::File;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use proptest::prelude::*;

use super::*;
use crate::appender::{Appender, Repeats};
use crate::container::Writer;
use crate::import::{self, csv, lackey, oracle, pages, words};
use crate::model::{Block, Kinds, TimeUnit};

/// A reference: process, page, kinds, gap.
type Reference = (u32, u64, u8, u32);

fn trace(references: &[Reference]) -> Vec<u8> {
    let mut header = import::header("a test", 4096);
    header.time = TimeUnit::Instructions;
    let writer = Writer::new(Vec::new(), &header).unwrap();
    let mut appender = Appender::new(writer, Repeats::Kept);
    for &(process, page, kinds, gap) in references {
        appender
            .append(process, page, Kinds(kinds), u64::from(gap))
            .unwrap();
    }
    appender.finish().unwrap()
}

fn exported(trace: &[u8], form: Form, numbering: Numbering) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let mut reader = Reader::new(trace)?;
    export(
        &mut reader,
        form,
        None,
        &mut Names::new(numbering),
        &mut out,
    )?;
    Ok(out)
}

/// The references that `import` finds.
fn imported(
    repeats: Repeats,
    import: impl FnOnce(&mut Appender<Vec<u8>>) -> Result<(), Error>,
) -> Vec<Reference> {
    let writer = Writer::new(Vec::new(), &import::header("a test", 4096)).unwrap();
    let mut appender = Appender::new(writer, repeats);
    import(&mut appender).unwrap();
    references(&appender.finish().unwrap())
}

fn references(trace: &[u8]) -> Vec<Reference> {
    let mut reader = Reader::new(trace).unwrap();
    let (mut block, mut found) = (Block::default(), Vec::new());
    while reader.next_block(&mut block).unwrap() {
        let records = block.pages.iter().zip(&block.kinds).zip(&block.gaps);
        found.extend(records.map(|((&page, &kinds), &gap)| (block.process, page, kinds, gap)));
    }
    found
}

fn pages_of(references: &[Reference]) -> Vec<u64> {
    references.iter().map(|reference| reference.1).collect()
}

fn any_references(processes: u32, page: u64) -> impl Strategy<Value = Vec<Reference>> {
    let reference = (0..processes, 0..=page, 0..16_u8, 0..1000_u32);
    proptest::collection::vec(reference, 1..300).prop_map(|mut references| {
        // Processes are numbered in the order of their appearance.
        let mut seen = Vec::new();
        for (process, ..) in &mut references {
            let number = seen.iter().position(|name| name == process);
            let number = number.unwrap_or_else(|| {
                seen.push(*process);
                seen.len() - 1
            });
            *process = number as u32;
        }
        references
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn csv_keeps_every_column(references in any_references(3, u64::MAX)) {
        let text = exported(&trace(&references), Form::Csv, Numbering::AsIs).unwrap();
        let form = csv::Form {
            delimiter: b',',
            is_hexadecimal: false,
            page_bytes: 4096,
            time: csv::Clock::ByName,
            columns: Vec::new(),
        };
        let found = imported(Repeats::Kept, |out| csv::Table::open(&text[..], &form)?.import(out));
        // A process begins at its first reference, which so has no gap.
        let mut expected = references.clone();
        for process in 0..3 {
            if let Some(first) = expected.iter_mut().find(|(number, ..)| *number == process) {
                first.3 = 0;
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn pages_as_text_keep_their_numbers(references in any_references(1, u64::MAX)) {
        let text = exported(&trace(&references), Form::Pages, Numbering::AsIs).unwrap();
        let found = imported(Repeats::Kept, |out| pages::import(&text[..], out));
        prop_assert_eq!(pages_of(&found), pages_of(&references));
    }

    #[test]
    fn words_keep_pages_of_32_bits(references in any_references(1, u64::from(u32::MAX))) {
        let bytes = exported(&trace(&references), Form::Words, Numbering::AsIs).unwrap();
        let found = imported(Repeats::Kept, |out| words::import(&bytes[..], out).map(drop));
        prop_assert_eq!(pages_of(&found), pages_of(&references));
    }

    #[test]
    fn oracle_general_keeps_pages_and_knows_the_future(
        references in any_references(1, 20),
    ) {
        let bytes = exported(&trace(&references), Form::OracleGeneral, Numbering::AsIs).unwrap();
        let found = imported(Repeats::Kept, |out| oracle::import(&bytes[..], out));
        prop_assert_eq!(pages_of(&found), pages_of(&references));
        for (at, record) in bytes.chunks(oracle::RECORD_BYTES).enumerate() {
            let page = references[at].1;
            let later = references[at + 1..].iter().position(|later| later.1 == page);
            let expected = later.map_or(-1, |distance| (at + distance + 2) as i64);
            prop_assert_eq!(i64::from_le_bytes(record[16..].try_into().unwrap()), expected);
        }
    }

    #[test]
    fn lackey_keeps_page_changes_and_kinds(mut references in any_references(1, 1 << 51)) {
        references.dedup_by_key(|reference| reference.1);
        for (_, _, kinds, _) in &mut references {
            *kinds &= 7;
            if *kinds == 0 {
                *kinds = Kinds::LOAD.0;
            }
        }
        let text = exported(&trace(&references), Form::Lackey, Numbering::AsIs).unwrap();
        let found = imported(Repeats::Merged, |out| lackey::import(&text[..], 4096, out));
        let without_gaps = |references: &[Reference]| -> Vec<_> {
            references.iter().map(|&(_, page, kinds, _)| (page, kinds)).collect()
        };
        prop_assert_eq!(without_gaps(&found), without_gaps(&references));
    }

    #[test]
    fn parquet_keeps_every_column(references in any_references(3, u64::MAX)) {
        let trace = trace(&references);
        let bytes = exported(&trace, Form::Parquet, Numbering::AsIs).unwrap();
        let name = format!("tidemark-trace-parquet-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let _ = std::fs::remove_file(&path);
        let mut times = [0_u64; 3];
        let mut count = 0;
        let rows = file.get_row_iter(None).unwrap();
        for (row, &(process, page, kinds, gap)) in rows.zip(&references) {
            let row = row.unwrap();
            times[process as usize] += u64::from(gap);
            prop_assert_eq!(row.get_uint(0).unwrap(), process);
            prop_assert_eq!(row.get_ulong(1).unwrap(), page);
            prop_assert_eq!(row.get_ubyte(2).unwrap(), kinds);
            prop_assert_eq!(row.get_ulong(3).unwrap(), times[process as usize]);
            count += 1;
        }
        prop_assert_eq!(count, references.len());
        let metadata = file.metadata().file_metadata().key_value_metadata().unwrap();
        prop_assert!(metadata.iter().any(|entry| entry.key == "tidemark.header"));
    }
}

#[test]
fn processes_have_pages_of_their_own() {
    let trace = trace(&[(0, 7, 2, 1), (1, 7, 2, 1), (0, 7, 2, 1)]);
    let text = exported(&trace, Form::Pages, Numbering::AsIs).unwrap();
    assert_eq!(text, format!("7\n{}\n7\n", (1_u64 << 52) + 7).as_bytes());
    let text = exported(&trace, Form::Pages, Numbering::Dense).unwrap();
    assert_eq!(text, b"0\n1\n0\n");
    let mut out = Vec::new();
    let mut reader = Reader::new(&trace[..]).unwrap();
    let mut names = Names::new(Numbering::AsIs);
    export(&mut reader, Form::Pages, Some(1), &mut names, &mut out).unwrap();
    assert_eq!(out, b"7\n");
}

#[test]
fn what_does_not_fit_is_named_with_its_record() {
    let large = trace(&[(0, 1, 2, 1), (0, 1 << 32, 2, 1)]);
    let told = exported(&large, Form::Words, Numbering::AsIs)
        .unwrap_err()
        .to_string();
    assert!(
        told.starts_with("record 2: page 4294967296 is too large"),
        "{told}"
    );
    assert!(exported(&large, Form::Words, Numbering::Dense).is_ok());
    let huge = trace(&[(0, u64::MAX, 2, 1), (1, 1, 2, 1)]);
    let told = exported(&huge, Form::Pages, Numbering::AsIs)
        .unwrap_err()
        .to_string();
    assert!(
        told.starts_with("record 2: among several processes, page"),
        "{told}"
    );
    let told = exported(&huge, Form::Lackey, Numbering::AsIs)
        .unwrap_err()
        .to_string();
    assert!(told.starts_with("record 1: page"), "{told}");
}
