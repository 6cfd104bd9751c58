//! Running the command, and looking into what it has recorded.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::recording::{Process, Recording};
use crate::support::{Folder, TIDEMARK, stderr};
use crate::tool::finish;

/// Returns true if programs can be recorded here; says why if they can't.
pub fn is_permitted() -> bool {
    static WHY: OnceLock<Option<String>> = OnceLock::new();
    let why = WHY.get_or_init(|| {
        let folder = Folder::new("live-permitted");
        let output = finish(&mut live(&["-o", &folder.path("trace.tide"), "true"]));
        (!output.status.success()).then(|| stderr(&output))
    });
    if let Some(why) = why {
        tidemark_testing::skip(why);
    }
    why.is_none()
}

/// `tidemark record --live` with these arguments, to be changed and run.
pub fn live(arguments: &[&str]) -> Command {
    let mut command = Command::new(TIDEMARK);
    command
        .args(["record", "--live"])
        .args(arguments)
        .stdin(Stdio::null());
    command
}

/// Records a program that is to succeed, and reads the trace.
pub fn recorded(folder: &Folder, arguments: &[&str]) -> (Output, Recording) {
    let trace = folder.path("trace.tide");
    let mut all = vec!["-o", &trace];
    all.extend(arguments);
    let output = finish(&mut live(&all));
    assert!(output.status.success(), "{output:?}");
    (output, Recording::read(&trace))
}

/// The numbers that a program has printed, as pages.
pub fn printed_pages(output: &Output) -> Vec<u64> {
    let text = String::from_utf8_lossy(&output.stdout);
    let address = |word: &str| {
        let word = word.trim_start_matches("0x");
        u64::from_str_radix(word, 16).unwrap_or_else(|_| panic!("{text}"))
    };
    text.split_whitespace()
        .map(|word| address(word) >> 12)
        .collect()
}

impl Process {
    /// The times at which each page in `range` was touched.
    pub fn times_in(&self, range: Range<u64>) -> BTreeMap<u64, Vec<u64>> {
        let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for record in self.records.iter().filter(|it| range.contains(&it.page)) {
            found.entry(record.page).or_default().push(record.time);
        }
        found
    }
}
