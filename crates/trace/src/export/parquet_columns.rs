//! Apache Parquet: a row for each record, with the columns `process`, `page`, `kinds` and `time`.
//!
//! The header of the trace is in the file's metadata, as JSON under `tidemark.header`.

use std::io::{Read, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::error::{Error, ErrorKind};
use crate::model::Block;

use super::chosen::Chosen;

/// The columns. Unsigned numbers are stored as signed ones of the same bits.
const SCHEMA: &str = "message trace {
    required int32 process (INTEGER(32, false));
    required int64 page (INTEGER(64, false));
    required int32 kinds (INTEGER(8, false));
    required int64 time (INTEGER(64, false));
}";

/// The records of a row group, except the last: what is in memory at a time.
const GROUP_RECORDS: usize = 1 << 20;

/// A row group in the making.
#[derive(Default)]
struct Group {
    processes: Vec<i32>,
    pages: Vec<i64>,
    kinds: Vec<i32>,
    times: Vec<i64>,
}

/// Writes a row for each record.
///
/// # Errors
/// The trace can't be read, or `out` fails.
pub fn export<R: Read, W: Write + Send>(blocks: &mut Chosen<R>, out: W) -> Result<(), Error> {
    let schema = Arc::new(parse_message_type(SCHEMA).expect("the schema is right"));
    let header = serde_json::to_string(blocks.header());
    let header = header.expect("a header has nothing JSON can't say");
    let level = ZstdLevel::try_new(1).expect("there is a level 1");
    let time = ColumnPath::from("time");
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_column_dictionary_enabled(time.clone(), false)
        .set_column_encoding(time, Encoding::DELTA_BINARY_PACKED)
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "tidemark.header".to_owned(),
            header,
        )]))
        .build();
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(error)?;
    let mut group = Group::default();
    let mut block = Block::default();
    while blocks.next(&mut block)? {
        group.add(&block);
        if group.pages.len() >= GROUP_RECORDS {
            group.write(&mut file).map_err(error)?;
        }
    }
    if !group.pages.is_empty() {
        group.write(&mut file).map_err(error)?;
    }
    file.close().map_err(error)?;
    Ok(())
}

impl Group {
    fn add(&mut self, block: &Block) {
        let records = block.pages.len();
        let mut time = block.time_start;
        self.processes
            .extend(std::iter::repeat_n(block.process.cast_signed(), records));
        self.pages
            .extend(block.pages.iter().map(|page| page.cast_signed()));
        self.kinds
            .extend(block.kinds.iter().map(|&kinds| i32::from(kinds)));
        self.times.extend(block.gaps.iter().map(|&gap| {
            time += u64::from(gap);
            time.cast_signed()
        }));
    }

    /// Writes the group and empties it.
    fn write<W: Write + Send>(
        &mut self,
        file: &mut SerializedFileWriter<W>,
    ) -> Result<(), ParquetError> {
        let mut row_group = file.next_row_group()?;
        write_column::<Int32Type, W>(&mut row_group, &self.processes)?;
        write_column::<Int64Type, W>(&mut row_group, &self.pages)?;
        write_column::<Int32Type, W>(&mut row_group, &self.kinds)?;
        write_column::<Int64Type, W>(&mut row_group, &self.times)?;
        row_group.close()?;
        self.processes.clear();
        self.pages.clear();
        self.kinds.clear();
        self.times.clear();
        Ok(())
    }
}

fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .expect("the schema has as many columns");
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// The system's own error where that is the cause.
fn error(error: ParquetError) -> Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(cause) => Error::from(*cause),
            Err(cause) => Error::new(ErrorKind::Parquet(cause.to_string())),
        },
        other => Error::new(ErrorKind::Parquet(other.to_string())),
    }
}
