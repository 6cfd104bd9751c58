//! A suite of programs as a file, and what is asked for beside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use tidemark_results::Refusal;

use super::{Cache, Entrant, Plan, Program};
use crate::suite::Options;

/// The choices in place of what the file says.
pub struct Choice {
    /// The memory, in percent of what each program takes by itself.
    pub shares: Vec<u32>,
    /// The names of contenders.
    pub contenders: Vec<String>,
    /// Options for every `tidemark run`.
    pub run_options: Vec<String>,
    /// Tells if the page cache stays as it is.
    pub is_warm: bool,
}

/// A suite's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    shares: Vec<u32>,
    contenders: Vec<String>,
    /// The variables set in the environment of all programs.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    programs: Vec<Program>,
}

/// Tells if a file's text is a suite of programs, and not one of cases, which is a list.
pub fn is_one(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// The plan of the suite whose `text` is that of `file`.
///
/// # Errors
/// The line that says what is wrong with it.
pub fn plan_of(
    file: &Path,
    text: &str,
    options: &Options,
    choice: &Choice,
) -> Result<Plan, Refusal> {
    let shown = file.display();
    let wrong = |told: &dyn std::fmt::Display| Refusal::new(format!("`{shown}`: {told}"));
    let mut suite: File = serde_json::from_str(text).map_err(|error| wrong(&error))?;
    suite.programs.retain(|one| options.is_wanted(&one.name));
    if suite.programs.is_empty() {
        return Err(wrong(&"no program to run"));
    }
    for program in &mut suite.programs {
        for (name, value) in &suite.environment {
            let own = program.environment.entry(name.clone());
            own.or_insert_with(|| value.clone());
        }
    }
    let shares = match choice.shares.is_empty() {
        true => suite.shares,
        false => choice.shares.clone(),
    };
    let entrants = match choice.contenders.is_empty() {
        true => entrants_of(&suite.contenders, &choice.run_options).map_err(|told| wrong(&told)),
        false => entrants_of(&choice.contenders, &choice.run_options).map_err(Refusal::new),
    }?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let folder = Path::new(".").join(folder);
    let plan = Plan {
        programs: suite.programs,
        shares,
        entrants,
        rounds: options.rounds.unwrap_or(1),
        cache: if choice.is_warm {
            Cache::Warm
        } else {
            Cache::Cold
        },
        limit: options.limit,
        folder: options.folder.clone(),
        suite: fs::canonicalize(folder).map_err(|error| wrong(&error))?,
    };
    plan.check().map_err(|told| wrong(&told))?;
    Ok(plan)
}

/// The contenders beside the native run, which is always there.
fn entrants_of(names: &[String], run_options: &[String]) -> Result<Vec<Entrant>, String> {
    let names = names.iter().filter(|name| *name != "native");
    let mut entrants = names
        .map(|name| name.parse())
        .collect::<Result<Vec<Entrant>, String>>()?;
    for entrant in &mut entrants {
        if let Entrant::Own { options, .. } = entrant {
            options.splice(0..0, run_options.iter().cloned());
        }
    }
    Ok(entrants)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn options(only: &[&str]) -> Options {
        Options {
            only: only.iter().map(|&name| name.to_owned()).collect(),
            rounds: None,
            limit: Duration::from_secs(1),
            folder: "/var/tmp".into(),
        }
    }

    fn choice(contenders: &[&str]) -> Choice {
        Choice {
            shares: Vec::new(),
            contenders: contenders.iter().map(|&name| name.to_owned()).collect(),
            run_options: Vec::new(),
            is_warm: false,
        }
    }

    #[test]
    fn the_programs_of_the_repository_can_be_planned() {
        let file = Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../bench/programs.json"
        ));
        let text = fs::read_to_string(file).expect("the file can be read");
        assert!(is_one(&text) && !is_one("\n[{}]"));
        let plan = |only: &[&str], choice| plan_of(file, &text, &options(only), &choice);
        let all = plan(&[], choice(&[])).expect("the file is well formed");
        assert_eq!(all.shares, [50, 25]);
        let names = all.entrants.iter().map(Entrant::name);
        let names: Vec<String> = names.collect();
        assert_eq!(names, ["tidemark", "kernel-swap", "zswap", "zram"]);
        for program in &all.programs {
            assert_eq!(program.environment["LC_ALL"], "C", "{}", program.name);
            // A prepared file of the suite has to be there under its name.
            let prepare = program.prepare.as_deref().unwrap_or_default();
            for path in prepare.split("\"$SUITE/").skip(1) {
                let (path, _) = path.split_once('"').expect("the quotes are closed");
                assert!(all.suite.join(path).is_file(), "{path}");
            }
        }
        let some = plan(&["sort", "redis"], choice(&[])).expect("they are there");
        assert_eq!(some.programs.len(), 2);
        assert!(plan(&["no such program"], choice(&[])).is_err());
    }

    #[test]
    fn the_build_of_the_repository_can_be_planned() {
        let file = Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../bench/build.json"
        ));
        let text = fs::read_to_string(file).expect("the file can be read");
        let plan = plan_of(file, &text, &options(&[]), &choice(&[])).expect("it is well formed");
        assert_eq!(plan.shares, [25]);
        assert!(plan.suite.join("programs/build/Makefile").is_file());
        let with_jobs = plan.entrants.iter().filter(|entrant| match entrant {
            Entrant::Own { options, .. } => options.iter().any(|it| it == "--jobserver=16"),
            Entrant::KernelSwap { .. } | Entrant::Zswap | Entrant::Zram => false,
        });
        assert_eq!(with_jobs.count(), 2);
    }

    #[test]
    fn options_go_to_each_run_of_ours() {
        let mut choice = choice(&["native", "tidemark", "tidemark:--in-thread", "zswap"]);
        choice.run_options = vec!["--policy=clock".to_owned()];
        let entrants = entrants_of(&choice.contenders, &choice.run_options).expect("they are");
        let names = entrants.iter().map(Entrant::name);
        assert_eq!(
            names.collect::<Vec<String>>(),
            [
                "tidemark:--policy=clock",
                "tidemark:--policy=clock --in-thread",
                "zswap"
            ]
        );
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told() {
        let wrong = |text: &str, choice: Choice| {
            plan_of(Path::new("own.json"), text, &options(&[]), &choice)
                .unwrap_err()
                .to_string()
        };
        let one = r#""programs": [{"name": "a", "command": ["true"]}]"#;
        let all = |shares| format!(r#"{{"shares": {shares}, "contenders": ["zswap"], {one}}}"#);
        assert!(wrong(&all("[0]"), choice(&[])).contains("share 0"));
        assert!(wrong(&all("[50]"), choice(&["zswop"])).starts_with("`zswop`"));
        let twice = wrong(&all("[50]"), choice(&["zswap", "zswap"]));
        assert!(twice.contains("`zswap` is there twice"), "{twice}");
        assert!(wrong(r#"{"shares": [50]}"#, choice(&[])).contains("own.json"));
    }
}
