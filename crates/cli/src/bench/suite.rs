//! A suite: its cases or programs, the options for it, and a dated record.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tidemark_hostbench::plan::Plan;
use tidemark_hostbench::programs::file::{self, Choice};
use tidemark_hostbench::programs::{self, Measured, ratios};
use tidemark_hostbench::suite::{Options, SuiteRecord, lines, read_cases};
use tidemark_hostbench::{measure, table};
use tidemark_supervisor::interrupt::Interrupt;
use tidemark_supervisor::program::plain;

use super::{json, own_contenders, verdict};
use crate::exit::{Exit, Refusal, refuse};
use crate::output::say;
use crate::{dated, output};

/// The forms in which results are given out.
pub struct Forms {
    /// The folder for the dated record.
    pub record: Option<PathBuf>,
    /// True if JSON is printed.
    pub is_json: bool,
}

/// The text of a suite's file.
pub fn read(file: &Path) -> Result<String, Refusal> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => refuse!(
            "`--suite {}`: there is no such file; `bench/programs.json` and others are in the \
             folder `bench` of Tidemark's sources",
            file.display()
        ),
        Err(error) => refuse!("`--suite {}`: {}", file.display(), plain(&error)),
    }
}

/// Runs the cases of `file` one after the other.
pub fn run(
    file: &Path,
    text: &str,
    options: &Options,
    forms: &Forms,
    interrupt: &Interrupt,
) -> Result<Exit, Refusal> {
    let cases = read_cases(file, text, |name| options.is_wanted(name))?;
    let plans = cases
        .iter()
        .map(|case| {
            case.plan(
                options,
                own_contenders(
                    &case.policy,
                    (&case.load_control, &case.division),
                    case.in_thread,
                )?,
            )
        })
        .collect::<Result<Vec<Plan>, Refusal>>()?;
    let mut records = Vec::new();
    let mut is_fine = true;
    for (case, plan) in cases.iter().zip(&plans) {
        say!("{}", case.name);
        let bench = measure(plan, interrupt.flag())?;
        is_fine &= matches!(verdict(&bench), Ok(Exit::Fine));
        let record = case.record(bench);
        is_fine &= record.findings.iter().all(|finding| finding.holds);
        if !forms.is_json {
            let shown = table::text(&record.bench, output::terminal_width());
            let found = lines(&record.findings);
            output::print(&format!("{}: {shown}{found}\n", case.name));
        }
        records.push(record);
    }
    let record = SuiteRecord::new(records);
    if forms.is_json {
        output::print(&json(&record));
    }
    if let Some(folder) = &forms.record {
        dated::write(folder, &record.date, "", &json(&record))?;
    }
    Ok(if is_fine { Exit::Fine } else { Exit::Found })
}

/// Runs the programs of `file` one after the other.
pub fn run_programs(
    file: &Path,
    text: &str,
    (options, choice): (&Options, &Choice),
    forms: &Forms,
    interrupt: &Interrupt,
) -> Result<Exit, Refusal> {
    let plan = file::plan_of(file, text, options, choice)?;
    let date = dated::now();
    let measured = programs::measure(&plan, interrupt.flag())?;
    let record = measured.record(date);
    output::print(&if forms.is_json {
        json(&record)
    } else {
        ratios::text(&measured, output::terminal_width())
    });
    if let Some(folder) = &forms.record {
        dated::write(folder, &record.date, "-programs", &json(&record))?;
    }
    verdict_on(&measured)
}

/// Tells if everything of ours came to its end with the same output.
fn verdict_on(measured: &Measured) -> Result<Exit, Refusal> {
    if measured.is_interrupted {
        refuse!("interrupted; what was changed is put back");
    }
    if measured.programs.is_empty() {
        refuse!("no program came to its end natively");
    }
    let failures = measured.own_failures();
    if let Some(failure) = failures.first() {
        let count = failures.len();
        say!("tidemark bench: {count} runs of ours failed, the first so: {failure}");
        return Ok(Exit::Found);
    }
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_cases_of_the_repository_can_be_planned() {
        let file = Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../bench/cases.json"
        ));
        let mut options = Options {
            only: Vec::new(),
            rounds: None,
            limit: Duration::from_secs(1),
            folder: "/var/tmp".into(),
        };
        let text = read(file).expect("the file can be read");
        let wanted = |options: &Options| read_cases(file, &text, |name| options.is_wanted(name));
        let cases = wanted(&options).expect("the file is well formed");
        for case in &cases {
            let ways = (&*case.load_control, &*case.division);
            let own =
                own_contenders(&case.policy, ways, case.in_thread).expect("the policies exist");
            case.plan(&options, own).expect("the case is possible");
        }
        options.only = vec!["no such case".to_owned()];
        assert!(wanted(&options).is_err());
    }
}
