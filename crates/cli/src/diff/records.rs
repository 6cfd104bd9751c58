//! Records as inputs: told from traces by their first byte, and read by their schema.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;
use tidemark_hostbench::record::SCHEMA as BENCH;
use tidemark_lab::amounts::{check_sizes, parse_sizes};
use tidemark_lab::study::Sizes;
use tidemark_results::RunRecord;
use tidemark_results::analysis::TraceFacts;
use tidemark_results::analysis::curve::{CurveRecord, SCHEMA as CURVE};
use tidemark_results::diff::records::{of_bench, of_curve, of_run, usual_sizes};
use tidemark_results::diff::{Kind, Portrait};
use tidemark_supervisor::program::plain;

use crate::exit::{Refusal, refuse};
use crate::traces::name_of;

const RUN: &str = tidemark_results::SCHEMA;
/// The longest record that is read.
const BYTES_MAX: u64 = 1 << 30;

/// The text of the record in the file at `path`; `None` if that is no record, but may be a trace.
pub(super) fn read(path: &Path) -> Result<Option<String>, Refusal> {
    // What is no plain file can be read once, and is left to who reads traces.
    let Ok(mut file) = File::open(path) else {
        return Ok(None);
    };
    if path.as_os_str() == "-" || !file.metadata().is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let mut first = [0; 1];
    if file.read(&mut first).unwrap_or(0) == 0 || first != *b"{" {
        return Ok(None);
    }
    let mut text = String::from("{");
    match file.take(BYTES_MAX).read_to_string(&mut text) {
        Ok(_) => Ok(Some(text)),
        Err(error) => refuse!(
            "`{}`: {}; name a trace or a record",
            name_of(path),
            plain(&error)
        ),
    }
}

/// The portraits of two records, which are of one kind. `at` are the sizes of memory asked for.
pub(super) fn portraits(
    (before, one): (&Path, &str),
    (after, other): (&Path, &str),
    at: Option<&str>,
) -> Result<(Kind, [Portrait; 2]), Refusal> {
    let schemas = [schema(before, one)?, schema(after, other)?];
    let (names, texts) = ([name_of(before), name_of(after)], [one, other]);
    if schemas[0] != schemas[1] {
        refuse!(
            "`{}` has the schema `{}`, and `{}` has `{}`; compare two of one kind",
            names[0],
            schemas[0],
            names[1],
            schemas[1]
        );
    }
    if at.is_some() && schemas[0] != CURVE {
        refuse!(
            "`--at`: is for traces and curves, and `{}` is neither; leave it out",
            names[0]
        );
    }
    let each = |read: &dyn Fn(&str, &str) -> Result<Portrait, String>| {
        let side = |place: usize| {
            let portrait = read(&names[place], texts[place]);
            portrait.map_err(|error| unreadable(&names[place], &error))
        };
        Ok::<_, Refusal>([side(0)?, side(1)?])
    };
    match &schemas[0][..] {
        CURVE => Ok((Kind::Curve, curves(&names, texts, at)?)),
        BENCH => Ok((Kind::Bench, each(&of_bench)?)),
        RUN => {
            let run = |name: &str, text: &str| Ok(of_run(name, &RunRecord::from_json(text)?));
            Ok((Kind::Run, each(&run)?))
        }
        unknown => refuse!(
            "`{}`: has the schema `{unknown}`, which is not compared; give traces, or records of \
             `tidemark curve --json`, `run --stats` or `bench --json`",
            names[0]
        ),
    }
}

/// The portraits of two curves, at sizes that the first gives.
fn curves(
    names: &[String; 2],
    texts: [&str; 2],
    at: Option<&str>,
) -> Result<[Portrait; 2], Refusal> {
    let read = |place: usize| {
        let record = CurveRecord::from_json(texts[place]);
        record.map_err(|error| unreadable(&names[place], &error))
    };
    let records = [read(0)?, read(1)?];
    check_alike(
        [&names[0], &names[1]],
        [&records[0].trace, &records[1].trace],
    )?;
    let sizes = sizes(at, &records[0].trace)?;
    Ok([0, 1].map(|place| of_curve(&names[place], &records[place], &sizes)))
}

/// The sizes of memory that are compared: those asked for, or shares of what the first uses.
pub(super) fn sizes(at: Option<&str>, first: &TraceFacts) -> Result<Vec<u64>, Refusal> {
    let Some(text) = at else {
        return Ok(usual_sizes(first.footprint()));
    };
    check_sizes("--at", text)?;
    match parse_sizes("--at", text, first.page_bytes, first.footprint())? {
        Sizes::At(mut sizes) => {
            sizes.sort_unstable();
            sizes.dedup();
            Ok(sizes)
        }
        Sizes::All | Sizes::Spread => {
            refuse!("`--at {text}`: too many to compare; name some, like `25%,50%`")
        }
    }
}

/// Refuses two traces whose pages or whose times are not of one kind.
pub(super) fn check_alike(names: [&str; 2], traces: [&TraceFacts; 2]) -> Result<(), Refusal> {
    let [one, other] = traces;
    if one.page_bytes != other.page_bytes {
        refuse!(
            "`{}` has pages of {} bytes, and `{}` of {}; compare traces of one page size",
            names[0],
            one.page_bytes,
            names[1],
            other.page_bytes
        );
    }
    if one.time_unit != other.time_unit {
        refuse!(
            "`{}` counts time in {}, and `{}` in {}; record both in one way",
            names[0],
            one.time_unit.name(),
            names[1],
            other.time_unit.name()
        );
    }
    Ok(())
}

fn schema(path: &Path, text: &str) -> Result<String, Refusal> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return Err(unreadable(&name_of(path), &error.to_string())),
    };
    match value["schema"].as_str() {
        Some(schema) => Ok(schema.to_owned()),
        None => refuse!(
            "`{}`: has no `schema`; name a trace or a record",
            name_of(path)
        ),
    }
}

fn unreadable(name: &str, error: &str) -> Refusal {
    Refusal::new(format!("`{name}`: {error}; name a trace or a record"))
}
