//! Any bytes to the importers of traces: no panic, and what is made of them can be read.
//!
//! The first byte chooses the importer; the rest is its input.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_trace::import::csv::{Clock, Column, Form, Role, Table};
use tidemark_trace::import::time::Scale;
use tidemark_trace::import::{
    self, champsim, damon, drmemtrace, foreign, lackey, lcs, lis, oracle, pages, perf, pinatrace,
    vscsi, words,
};
use tidemark_trace::{Appender, Block, Error, Reader, Repeats, Writer};

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, input)) = bytes.split_first() else {
        return;
    };
    let header = import::header("fuzz", 4096);
    let writer = Writer::new(Vec::new(), &header).expect("memory takes every byte");
    let repeats = match choice & 0x80 {
        0 => Repeats::Kept,
        _ => Repeats::Merged,
    };
    let mut out = Appender::new(writer, repeats);
    let imported = match choice % 17 {
        0 => lackey::import(input, 4096, &mut out),
        1 => oracle::import(input, &mut out),
        2 => pages::import(input, &mut out),
        3 => words::import(input, &mut out).map(drop),
        4 => import_csv(input, &form(Vec::new()), &mut out),
        5 => {
            let columns = vec![
                (Role::Address, Column::Number(1)),
                (Role::Bytes, Column::Number(2)),
                (Role::Time, Column::Name("t".into())),
            ];
            import_csv(input, &form(columns), &mut out)
        }
        6 => lcs::import(input, &mut out),
        7 => vscsi::import(input, 4096, &mut out).map(drop),
        8 => lis::import(input, &mut out),
        9 => perf::import(input, 4096, &mut out).map(drop),
        10 => damon::Report::open(input).and_then(|report| report.import(4096, &mut out)),
        11 => drmemtrace::import(input, 4096, &mut out),
        12 => champsim::import(input, 4096, &mut out),
        13 => pinatrace::import(input, 4096, &mut out),
        14 => words::import_wide(input, &mut out),
        15 => {
            let _ = (foreign::find_marked(input), foreign::find_likely(input));
            let columns = vec![
                (Role::Key, Column::Number(1)),
                (Role::Kinds, Column::Number(2)),
            ];
            import_csv(input, &form(columns), &mut out)
        }
        _ => import::open(input).and_then(|input| pages::import(input, &mut out)),
    };
    if imported.is_err() {
        return;
    }
    if let Ok(trace) = out.finish() {
        let mut reader = Reader::new(&trace[..]).expect("it was written");
        let mut block = Block::default();
        while reader.next_block(&mut block).expect("it was written") {}
    }
});

fn import_csv(input: &[u8], form: &Form, out: &mut Appender<Vec<u8>>) -> Result<(), Error> {
    Table::open(input, form)?.import(out)
}

fn form(columns: Vec<(Role, Column)>) -> Form {
    Form {
        delimiter: b',',
        is_hexadecimal: false,
        page_bytes: 4096,
        time: Clock::In(Scale::Microseconds),
        columns,
    }
}
