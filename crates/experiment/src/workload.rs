//! Workloads: the traces of an experiment, recorded or generated where they are missing.
//!
//! A trace has a name with a hash of its recipe, so that a change of the experiment's file, or of
//! the trace format, makes another. It appears under that name only when it is whole. Programs run
//! in a folder of their own beside it, which is gone afterwards.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tidemark_hostbench::child;
use tidemark_hostbench::plan::Prepared;
use tidemark_results::{Refusal, refuse};
use tidemark_supervisor::host;
use tidemark_supervisor::interrupt::Interrupt;
use tidemark_supervisor::program::{self, plain};
use tidemark_trace::container::VERSION;

use crate::catalog::Catalog;
use crate::file::{Mode, Need, Trace};
use crate::once::Once;

/// Progress that is shown: what is being done, and the share that is done, from 0 to 1.
pub type Progress = Box<dyn FnMut(&str, f64) + Send>;

/// The means to tell what is being done.
#[derive(Clone, Copy)]
pub struct Teller {
    /// Takes a line.
    pub say: fn(&str),
    /// Begins to show progress, until it is dropped.
    pub progress: fn() -> Progress,
}

/// The places of traces, and the means to make them.
pub struct Workshop<'a> {
    /// The folder of traces.
    pub folder: PathBuf,
    /// The catalog of the files of workloads.
    pub catalog: &'a Catalog,
    /// The mode whose traces are meant.
    pub mode: Mode,
    /// The means to tell what is being done.
    pub teller: Teller,
    /// The request to end the command.
    pub interrupt: Interrupt,
    made: Once,
}

/// The way a trace is made in one mode.
#[derive(Debug)]
struct Recipe {
    /// `record` or `generate`.
    verb: &'static str,
    words: Vec<String>,
    prepare: Vec<Vec<String>>,
}

/// A trace to be made, and where it will lie.
struct Task<'t> {
    trace: &'t Trace,
    recipe: Recipe,
    files: Vec<(&'t str, Vec<u8>)>,
    stem: String,
    path: PathBuf,
}

/// The longest time that a command may take, on a machine that has other work: ten times what the
/// longest of the catalogue takes alone. What has not ended by then hangs.
const QUICK_LIMIT: Duration = Duration::from_secs(30 * 60);
const FULL_LIMIT: Duration = Duration::from_secs(4 * 3600);

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

impl<'a> Workshop<'a> {
    /// A workshop that keeps its traces in `folder`.
    pub fn new(
        folder: PathBuf,
        catalog: &'a Catalog,
        mode: Mode,
        teller: Teller,
    ) -> Result<Self, Refusal> {
        // Programs run elsewhere: a path from here would be another there.
        let made = fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
        let folder = match made {
            Ok(folder) => folder,
            Err(error) => refuse!("folder of traces `{}`: {}", folder.display(), plain(&error)),
        };
        Ok(Workshop {
            folder,
            catalog,
            mode,
            teller,
            interrupt: Interrupt::open()?,
            made: Once::default(),
        })
    }

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
        let task = self.task(trace)?;
        self.made.make(&task.path, || self.carry_out(&task))?;
        Ok(task.path)
    }

    /// Does `work` while another thread makes these traces, the first first, for when they are
    /// wanted: a program that is recorded leaves a processor idle for most of the time.
    pub fn ahead<T>(&self, traces: &[&Trace], work: impl FnOnce() -> T) -> T {
        let is_over = AtomicBool::new(false);
        let make_all = || {
            for trace in traces {
                if is_over.load(Ordering::Relaxed) || self.interrupt.is_wanted() {
                    return;
                }
                // A refusal is reported to every thread that wants the trace.
                if let Ok(task) = self.task(trace) {
                    self.made.make_first(&task.path, || self.carry_out(&task));
                }
            }
        };
        std::thread::scope(|scope| {
            if host::processors() > 1 {
                scope.spawn(make_all);
            }
            let done = work();
            is_over.store(true, Ordering::Relaxed);
            done
        })
    }

    fn task<'t>(&self, trace: &'t Trace) -> Result<Task<'t>, Refusal> {
        let recipe = self.recipe(trace)?;
        let files = self.files(trace)?;
        let print = fingerprint(&format!(
            "{recipe:?} {:?} {:?} {files:?} {VERSION}",
            trace.options, trace.environment
        ));
        let stem = format!("{}-{print:016x}", trace.name);
        Ok(Task {
            path: self.folder.join(format!("{stem}.tide")),
            trace,
            recipe,
            files,
            stem,
        })
    }

    fn carry_out(&self, task: &Task<'_>) -> Result<(), Refusal> {
        if task.path.is_file() {
            return Ok(());
        }
        let work = self.open(task.trace, &task.files, &task.stem)?;
        self.prepare_in(task.trace, &task.recipe, &work.path)?;
        self.make_trace(task, &work.path)
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
        self.prepare_in(trace, &recipe, &work.path)?;
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
                refuse!("folder of traces `{folder}`: {}", plain(&error))
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

    /// Runs the commands that come before a program.
    fn prepare_in(&self, trace: &Trace, recipe: &Recipe, work: &Path) -> Result<(), Refusal> {
        let name = &trace.name;
        for words in &recipe.prepare {
            let Some((program, arguments)) = words.split_first() else {
                refuse!("trace `{name}`: `prepare` has a command without words");
            };
            let mut command = Command::new(program);
            command.args(arguments);
            self.run_in(work, trace, &mut command, &words.join(" "))?;
        }
        Ok(())
    }

    fn make_trace(&self, task: &Task<'_>, work: &Path) -> Result<(), Refusal> {
        let begin = Instant::now();
        let (recipe, path, name) = (&task.recipe, &task.path, &task.trace.name);
        (self.teller.say)(&format!(
            "{name}: {} {}",
            recipe.verb,
            recipe.words.join(" ")
        ));
        let own = match std::env::current_exe() {
            Ok(own) => own,
            Err(error) => refuse!("this command's own file can't be found: {}", plain(&error)),
        };
        let part = path.with_extension("part");
        // A recording would keep what one that was cut short has left.
        let _ = fs::remove_file(&part);
        let mut command = Command::new(own);
        command.arg(recipe.verb);
        match recipe.verb {
            // How fast it is by itself is nothing to the lab.
            "record" => command
                .arg("--time=never")
                .args(&task.trace.options)
                .arg("-o")
                .arg(&part)
                .arg("--")
                .args(&recipe.words),
            _ => command.args(&recipe.words).arg("-o").arg(&part),
        };
        self.run_in(work, task.trace, &mut command, &recipe.words.join(" "))?;
        if let Err(error) = fs::rename(&part, path) {
            refuse!("`{}`: {}", path.display(), plain(&error));
        }
        let seconds = begin.elapsed().as_secs_f64();
        (self.teller.say)(&format!("{name}: made in {seconds:.0} s"));
        Ok(())
    }

    /// Runs a command to its end in `work`. Its text on stderr is shown if it fails.
    fn run_in(
        &self,
        work: &Path,
        trace: &Trace,
        command: &mut Command,
        told: &str,
    ) -> Result<(), Refusal> {
        command.current_dir(work).envs(&trace.environment);
        command.stdout(Stdio::null());
        let limit = match self.mode {
            Mode::Quick => QUICK_LIMIT,
            Mode::Full => FULL_LIMIT,
        };
        let interrupt = &self.interrupt;
        match interrupt.holding(|| child::run_command(command, limit, interrupt.flag())) {
            Ok(_) => Ok(()),
            Err(reason) => refuse!("trace `{}`: `{told}`: {reason}", trace.name),
        }
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
