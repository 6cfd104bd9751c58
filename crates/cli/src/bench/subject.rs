//! The subjects of `tidemark bench`: single workloads, and series of them.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValue;
use tidemark_hostbench::workload::Workload;

use crate::exit::{Refusal, refuse};

/// The suite that is `build`, beside the folder of what it builds.
const BUILD: &str = "bench/build.json";
const BUILT: &str = "bench/programs/build";

/// Something to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A workload.
    Workload(Workload),
    /// Random accesses of more and more tasks.
    Thrash,
    /// The cost of each kind of fault.
    PageIn,
    /// A build, as a suite.
    Build,
}

impl ValueEnum for Subject {
    fn value_variants<'a>() -> &'a [Subject] {
        &[
            Subject::Workload(Workload::Sheep),
            Subject::Workload(Workload::Scan),
            Subject::Workload(Workload::Loop),
            Subject::Workload(Workload::Random),
            Subject::Workload(Workload::Zipf),
            Subject::Workload(Workload::Phases),
            Subject::Workload(Workload::Compile),
            Subject::Workload(Workload::Sort),
            Subject::Thrash,
            Subject::PageIn,
            Subject::Build,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Subject::Workload(workload) => workload.to_possible_value(),
            Subject::Thrash => Some(PossibleValue::new("thrash").help(
                "More and more tasks with working sets in the same memory, under each load \
                 control: the thrashing curve",
            )),
            Subject::PageIn => Some(PossibleValue::new("page-in").help(
                "What a page-in, a soft fault, a first touch and the way out of a page cost, \
                 beside a bare loop that does the same and nothing else",
            )),
            Subject::Build => Some(PossibleValue::new("build").help(
                "`make -j16` of a C++ program in a quarter of its memory: the suite \
                 bench/build.json of the sources",
            )),
        }
    }
}

/// The file of the suite that is `build`: of the sources in which this runs, or in which the
/// command lies.
pub fn find_build() -> Result<PathBuf, Refusal> {
    let here = std::env::current_dir().unwrap_or_default();
    let command = std::env::current_exe().unwrap_or_default();
    let folders = here.ancestors().chain(command.ancestors());
    let is_there = |folder: &&Path| folder.join(BUILD).is_file() && folder.join(BUILT).is_dir();
    match { folders }.find(is_there) {
        Some(folder) => Ok(folder.join(BUILD)),
        None => refuse!(
            "`build` needs {BUILD} and {BUILT} of Tidemark's sources; run it in their folder, or \
             name the file with `--suite`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_that_is_not_hidden_can_be_named() {
        let names: Vec<String> = Subject::value_variants()
            .iter()
            .filter_map(|subject| Some(subject.to_possible_value()?.get_name().to_owned()))
            .collect();
        for workload in Workload::value_variants() {
            let value = workload.to_possible_value().unwrap();
            let is_there = names.iter().any(|name| name == value.get_name());
            assert_eq!(is_there, !value.is_hide_set(), "{}", value.get_name());
        }
    }

    #[test]
    fn the_build_is_found_from_within_the_sources() {
        let found = find_build().expect("tests run in the sources");
        assert!(found.ends_with(BUILD));
    }
}
