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
use crate::bench::plan::Prepared;
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

/// A folder that a program runs in, gone when it is over.
pub struct Work {
    path: PathBuf,
}

impl Drop for Work {
    fn drop(&mut self) {
        // What stays behind is removed when the folder is wanted again.
        let _ = fs::remove_dir_all(&self.path);
    }
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
        let files = self.files(trace)?;
        let print = fingerprint(&format!(
            "{recipe:?} {:?} {:?} {files:?} {VERSION}",
            trace.options, trace.environment
        ));
        let stem = format!("{}-{print:016x}", trace.name);
        let path = self.folder.join(format!("{stem}.tide"));
        if path.is_file() {
            return Ok(path);
        }
        let work = self.open(trace, &files, &stem)?;
        let made = prepare(trace, &recipe, &work.path)
            .and_then(|()| make_trace(trace, &recipe, &work.path, &path));
        made.map(|()| path)
    }

    /// The trace's program, ready to run by itself, and the folder it runs in.
    pub fn prepare(&self, trace: &Trace) -> Result<(Prepared, Work), Refusal> {
        let recipe = self.recipe(trace)?;
        if recipe.verb != "record" {
            refuse!("trace `{}`: needs `record`: a program to run", trace.name);
        }
        let files = self.files(trace)?;
        let stem = format!("{}-live-{}", trace.name, std::process::id());
        let work = self.open(trace, &files, &stem)?;
        prepare(trace, &recipe, &work.path)?;
        let prepared = Prepared {
            folder: work.path.clone(),
            words: recipe.words.iter().map(Into::into).collect(),
        };
        Ok((prepared, work))
    }

    fn files<'t>(&self, trace: &'t Trace) -> Result<Vec<(&'t str, Vec<u8>)>, Refusal> {
        let each = trace
            .files
            .iter()
            .map(|name| match self.catalog.workload_file(name) {
                Some(contents) => Ok((name.as_str(), contents)),
                None => refuse!("`files`: there is no `{name}` in bench/workloads"),
            });
        each.collect()
    }

    /// A folder of its own with the trace's files.
    fn open(&self, trace: &Trace, files: &[(&str, Vec<u8>)], stem: &str) -> Result<Work, Refusal> {
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
        match make() {
            Ok(path) => Ok(Work { path }),
            Err(error) => {
                let folder = self.folder.display();
                refuse!("`--traces {folder}`: {}", plain(&error))
            }
        }
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

/// Runs the commands that come before a program.
fn prepare(trace: &Trace, recipe: &Recipe, work: &Path) -> Result<(), Refusal> {
    let name = &trace.name;
    for words in &recipe.prepare {
        let Some((program, arguments)) = words.split_first() else {
            refuse!("trace `{name}`: `prepare` has a command without words");
        };
        let mut command = Command::new(program);
        command.args(arguments);
        run_in(work, trace, &mut command, &words.join(" "))?;
    }
    Ok(())
}

fn make_trace(trace: &Trace, recipe: &Recipe, work: &Path, path: &Path) -> Result<(), Refusal> {
    let begin = Instant::now();
    let name = &trace.name;
    eprintln!("{name}: {} {}", recipe.verb, recipe.words.join(" "));
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => refuse!("this command's own file can't be found: {}", plain(&error)),
    };
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
