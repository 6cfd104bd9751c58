//! Compression: the sizes of compressed pages that a replay assumes.

use std::sync::Arc;

use tidemark_results::refusal::plain;
use tidemark_results::{Refusal, RunRecord, refuse};

use crate::world::PageSizes;

/// The least ratio, and the most.
const RATIOS: std::ops::RangeInclusive<f64> = 1.0..=100.0;

/// The name of the store without a disk, in records of runs.
const DISKLESS: &str = "compressed";

/// The sizes to which pages compress, and what they are called.
#[derive(Clone, Debug)]
pub struct Compression {
    /// The name.
    pub name: String,
    /// The sizes.
    pub sizes: Arc<PageSizes>,
    /// The memory that a process has beside frames and compressed pages and that counts, in pages.
    pub beside_pages: u32,
    /// True if there is no swap disk behind compressed memory.
    pub is_diskless: bool,
}

impl Compression {
    /// Pages of which as many as `ratio` says take as much as one.
    ///
    /// - Needs: a ratio of 1 at least, and of no more than 100.
    pub fn of_ratio(ratio: f64) -> Compression {
        assert!(RATIOS.contains(&ratio));
        Compression {
            name: format!("ratio {ratio}"),
            sizes: Arc::new(PageSizes::of_ratio((ratio * 1000.0) as u32)),
            beside_pages: 0,
            is_diskless: false,
        }
    }

    /// Pages as they were compressed in a run, with a disk or without as there; nothing if none
    /// was.
    pub fn of_run(name: String, run: &RunRecord) -> Option<Compression> {
        let buckets = run.total.compressed_page_bytes.buckets().iter();
        let counts = buckets.map(|it| (it.from as u32, it.below as u32, it.count));
        let sizes = Arc::new(PageSizes::new(counts)?);
        let beside = run.processes.iter().map(|it| it.statistics.frames_beside);
        Some(Compression {
            name,
            sizes,
            beside_pages: beside.max().unwrap_or(0) as u32,
            is_diskless: run.store.as_deref() == Some(DISKLESS),
        })
    }

    /// The compression that `text` names, a ratio or the file with the statistics of a run, as
    /// the value of `option`.
    pub fn parse(option: &str, text: &str) -> Result<Compression, Refusal> {
        if let Ok(ratio) = text.parse::<f64>() {
            if !RATIOS.contains(&ratio) {
                refuse!("`{option} {text}`: a ratio is from 1 to 100 pages in one");
            }
            return Ok(Compression::of_ratio(ratio));
        }
        let file = match std::fs::read_to_string(text) {
            Ok(file) => file,
            Err(error) => refuse!(
                "`{option} {text}`: {}; takes a ratio like `3`, or a file that `tidemark run \
                 --stats FILE` wrote",
                plain(&error)
            ),
        };
        let record: RunRecord = match serde_json::from_str(&file) {
            Ok(record) => record,
            Err(error) => refuse!("`{option} {text}`: not the statistics of a run: {error}"),
        };
        match Compression::of_run(text.into(), &record) {
            Some(compression) => Ok(compression),
            None => refuse!(
                "`{option} {text}`: no page was compressed in that run; run it in less memory, \
                 with `--store compressed+file`"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_or_the_statistics_of_a_run_are_taken() {
        let named = Compression::parse("--compressed", "2.5").unwrap();
        assert_eq!(named.name, "ratio 2.5");
        for (text, told) in [
            ("0.5", "from 1 to 100"),
            ("nan", "from 1 to 100"),
            ("no/such/file", "takes a ratio"),
            ("Cargo.toml", "not the statistics"),
        ] {
            let refused = Compression::parse("--compressed", text)
                .unwrap_err()
                .to_string();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
