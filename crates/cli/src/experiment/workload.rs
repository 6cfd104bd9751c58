//! Workloads: the traces of an experiment, recorded or generated where they are missing.
//!
//! A trace lies in its folder under a name made of all that goes into it, so that a change of the
//! experiment's file, or of what traces tell, makes another. It appears under that name only when
//! it is whole. Programs run in a folder of their own beside it, which is gone afterwards.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use tidemark_trace::container::VERSION;

use super::catalog::Catalog;
use super::file::{Need, Trace};
use super::plan::Mode;
use crate::exit::{Refusal, refuse};
use crate::run::program::{self, plain};

/// Where traces are, and what they are made of.
pub struct Workshop<'a> {
    /// Where traces lie.
    pub folder: PathBuf,
    /// Where the files of workloads are.
    pub catalog: &'a Catalog,
    /// Which traces are meant.
    pub mode: Mode,
}

/// How a trace is made in one mode.
#[derive(Debug)]
struct Recipe {
    /// `record` or `generate`.
    verb: &'static str,
    words: Vec<String>,
    prepare: Vec<Vec<String>>,
}

impl Workshop<'_> {
    /// The folder for traces unless another is named: the user's cache.
    pub fn usual_folder() -> PathBuf {
        let is_set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = is_set("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || is_set("HOME").map(|home| Path::new(&home).join(".cache"));
        let cache = cache.or_else(home).unwrap_or_else(std::env::temp_dir);
        cache.join("tidemark/traces")
    }

    /// The trace's file, made if it is missing.
    pub fn trace(&self, trace: &Trace) -> Result<PathBuf, Refusal> {
        let recipe = self.recipe(trace)?;
        let mut files = vec![];
        for name in &trace.files {
            match self.catalog.workload_file(name) {
                Some(contents) => files.push((name.as_str(), contents)),
                None => refuse!("`files`: there is no `{name}` in bench/workloads"),
            }
        }
        let print = fingerprint(&format!(
            "{recipe:?} {:?} {:?} {files:?} {VERSION}",
            trace.options, trace.environment
        ));
        let stem = format!("{}-{print:016x}", trace.name);
        let path = self.folder.join(format!("{stem}.tide"));
        if path.is_file() {
            return Ok(path);
        }
        trace.needs.iter().try_for_each(check_need)?;
        let make = || -> std::io::Result<PathBuf> {
            let work = self.folder.join(format!("{stem}.work"));
            // What a run cut short has left behind.
            let _ = fs::remove_dir_all(&work);
            fs::create_dir_all(&work)?;
            files
                .iter()
                .try_for_each(|(name, contents)| fs::write(work.join(name), contents))?;
            work.canonicalize()
        };
        let work = make().map_err(|error| {
            let folder = self.folder.display();
            Refusal::new(format!("`--traces {folder}`: {}", plain(&error)))
        })?;
        let made = make_trace(trace, &recipe, &work, &path);
        let _ = fs::remove_dir_all(&work);
        made.map(|()| path)
    }

    fn recipe(&self, trace: &Trace) -> Result<Recipe, Refusal> {
        let full = trace.full.as_ref().filter(|_| self.mode == Mode::Full);
        let record = full
            .and_then(|full| full.record.as_ref())
            .or(trace.record.as_ref());
        let generate = full
            .and_then(|full| full.generate.as_ref())
            .or(trace.generate.as_ref());
        let prepare = full
            .and_then(|full| full.prepare.as_ref())
            .unwrap_or(&trace.prepare);
        let (verb, words) = match (record, generate) {
            (Some(words), None) if !words.is_empty() => ("record", words),
            (None, Some(words)) if !words.is_empty() => ("generate", words),
            _ => refuse!(
                "trace `{}`: needs one of `record` and `generate`",
                trace.name
            ),
        };
        Ok(Recipe {
            verb,
            words: words.clone(),
            prepare: prepare.clone(),
        })
    }
}

fn check_need(need: &Need) -> Result<(), Refusal> {
    let package = &need.package;
    if let Some(name) = &need.program
        && program::find(OsStr::new(name)).is_err()
    {
        refuse!("`{name}` is not installed; as root: `apt-get install {package}`");
    }
    match &need.file {
        Some(file) if !Path::new(file).exists() => {
            refuse!("`{file}` is not there; as root: `apt-get install {package}`")
        }
        _ => Ok(()),
    }
}

fn make_trace(trace: &Trace, recipe: &Recipe, work: &Path, path: &Path) -> Result<(), Refusal> {
    let begin = Instant::now();
    let name = &trace.name;
    eprintln!("{name}: {} {}", recipe.verb, recipe.words.join(" "));
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => refuse!("this command's own file can't be found: {}", plain(&error)),
    };
    for words in &recipe.prepare {
        let Some((program, arguments)) = words.split_first() else {
            refuse!("trace `{name}`: `prepare` has a command without words");
        };
        let mut command = Command::new(program);
        command.args(arguments);
        run_in(work, trace, &mut command, &words.join(" "))?;
    }
    let part = path.with_extension("part");
    let mut command = Command::new(own);
    command.arg(recipe.verb);
    match recipe.verb {
        "record" => command
            .args(&trace.options)
            .arg("-o")
            .arg(&part)
            .arg("--")
            .args(&recipe.words),
        _ => command.args(&recipe.words).arg("-o").arg(&part),
    };
    run_in(work, trace, &mut command, &recipe.words.join(" "))?;
    if let Err(error) = fs::rename(&part, path) {
        refuse!("`{}`: {}", path.display(), plain(&error));
    }
    eprintln!("{name}: made in {:.0} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a command to its end in `work`. What it says on stderr is told if it fails.
fn run_in(work: &Path, trace: &Trace, command: &mut Command, told: &str) -> Result<(), Refusal> {
    let log = work.join(".stderr");
    let spawned = File::create(&log).and_then(|file| {
        let command = command.current_dir(work).envs(&trace.environment);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .status()
    });
    let status = match spawned {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.to_string(),
        Err(error) => plain(&error),
    };
    let said = fs::read_to_string(&log).unwrap_or_default();
    let last = said
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    refuse!("trace `{}`: `{told}` failed ({status}): {last}", trace.name)
}

/// A hash that stays the same on every machine (FNV-1a, 64 bits).
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_published_one() {
        assert_eq!(fingerprint(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint("a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn what_is_missing_is_told_with_its_package() {
        let need = |program: Option<&str>, file: Option<&str>| Need {
            program: program.map(String::from),
            file: file.map(String::from),
            package: "some-package".into(),
        };
        assert!(check_need(&need(Some("sh"), Some("/proc"))).is_ok());
        for need in [
            need(Some("no-such-program"), None),
            need(None, Some("/no/such/file")),
        ] {
            let told = check_need(&need).unwrap_err().to_string();
            assert!(told.contains("apt-get install some-package"), "{told}");
        }
    }
}
