//! The needs of a recording: Valgrind, the recorder, and a program that both can run.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use tidemark_recording::Settings;
use tidemark_recording::spool::{Spool, VARIABLE};
use tidemark_results::quantity;
use tidemark_supervisor::program::{self, Obstacle};

use super::Arguments;
use crate::exit::{Refusal, refuse};

/// The variable that tells where the recorder is.
const RECORDER: &str = "TIDEMARK_RECORDER";
/// The recorder's file in its folder: Valgrind makes the name of the tool's and the machine's.
const TOOL: &str = "tidemark-amd64-linux";
const PAGE_BYTES_MIN: u64 = 64;
const PAGE_BYTES_MAX: u64 = 1 << 30;
const QUANTUM_MAX: u64 = 1 << 32;

/// A recording that can begin.
#[derive(Debug)]
pub struct Plan {
    /// The settings common to all processes.
    pub settings: Settings,
    /// The file for the trace.
    pub output: PathBuf,
    /// The size of pages in bytes.
    pub page_bytes: u64,
    valgrind: PathBuf,
    recorder: PathBuf,
    program: PathBuf,
    words: Vec<OsString>,
}

impl Plan {
    /// Finds all that is needed, or refuses.
    pub fn new(arguments: &Arguments) -> Result<Plan, Refusal> {
        let page_bytes = find_page_bytes(&arguments.granularity)?;
        let quantum = match arguments.exact {
            true => None,
            false => Some(arguments.quantum),
        };
        if quantum.is_some_and(|quantum| !(1..=QUANTUM_MAX).contains(&quantum)) {
            refuse!(
                "`--quantum {}`: takes 1 to {QUANTUM_MAX} instructions",
                arguments.quantum
            );
        }
        let name = &arguments.program[0];
        let program = program::find(name)?;
        check_program(name, &program)?;
        let recorder = find_recorder()?;
        let Ok(valgrind) = program::find(OsStr::new("valgrind")) else {
            refuse!("`valgrind` is not installed; as root: `apt-get install valgrind`");
        };
        Ok(Plan {
            settings: Settings {
                page_shift: page_bytes.trailing_zeros(),
                quantum,
                is_live: false,
            },
            output: arguments.output_path(),
            page_bytes,
            valgrind,
            recorder,
            program,
            words: arguments.program[1..].to_vec(),
        })
    }

    /// The program, ...
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// ... and its arguments.
    pub fn words(&self) -> &[OsString] {
        &self.words
    }

    /// The command that runs the program under the recorder.
    pub fn command(&self, spool: &Spool) -> Command {
        let mut command = Command::new(&self.valgrind);
        let option = |name: &str, path: &Path| {
            let mut option = OsString::from(name);
            option.push(path);
            option
        };
        command
            .args(["--tool=tidemark", "--command-line-only=yes", "--vgdb=no"])
            .args(["--trace-children=yes", "--trace-children-skip=*/tidemark"])
            // At the end the C library would give back what it gives back to nobody otherwise.
            .args(["--run-libc-freeres=no", "--run-cxx-freeres=no"])
            .arg(option("--log-file=", &spool.path.join("valgrind.%p")))
            .arg(option("--spool=", &spool.path))
            .arg(&self.program)
            .args(&self.words)
            .env("VALGRIND_LIB", &self.recorder)
            .env(VARIABLE, &spool.path);
        command
    }
}

/// The size of pages that is asked for.
pub fn find_page_bytes(text: &str) -> Result<u64, Refusal> {
    let bytes = quantity::parse("--granularity", text)?;
    if !bytes.is_power_of_two() || !(PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&bytes) {
        refuse!("`--granularity {text}`: takes a power of two from 64 to 1G");
    }
    Ok(bytes)
}

fn check_program(name: &OsStr, program: &Path) -> Result<(), Refusal> {
    // Valgrind runs none of these, for root neither.
    if let Some(mark) = program::collect_marks(program).first() {
        refuse!(
            "`{}`: has privileges of its own ({mark}), which it can't have under Valgrind; record \
             a copy of it, which has none (as root, if it needs them)",
            name.display()
        );
    }
    match program::find_obstacle(program) {
        // Neither loading nor linking matters to what interprets the program's instructions.
        None | Some(Obstacle::Static | Obstacle::OtherLinker(_)) => Ok(()),
        Some(Obstacle::Foreign) => refuse!(
            "`{}`: is no program for a 64-bit x86; record one that is",
            name.display()
        ),
        Some(Obstacle::UnknownFormat) => refuse!(
            "`{}`: {}; name its interpreter before it",
            name.display(),
            Obstacle::UnknownFormat.reason()
        ),
        Some(other @ (Obstacle::Privileged(_) | Obstacle::Unreadable)) => {
            refuse!("`{}`: {}", name.display(), other.reason())
        }
    }
}

/// The folder with the recorder: the one named, beside this command, or where it was built.
fn find_recorder() -> Result<PathBuf, Refusal> {
    if cfg!(not(target_arch = "x86_64")) {
        refuse!("programs can be recorded on x86-64 only");
    }
    if let Some(folder) = std::env::var_os(RECORDER) {
        let folder = PathBuf::from(folder);
        return match std::path::absolute(&folder) {
            Ok(folder) if folder.join(TOOL).is_file() => Ok(folder),
            Ok(_) | Err(_) => refuse!(
                "`{RECORDER}={}`: holds no `{TOOL}`; name the folder that `make -C recorder` fills",
                folder.display()
            ),
        };
    }
    let command = std::env::current_exe().unwrap_or_default();
    let beside = command.parent().unwrap_or(Path::new("/"));
    let places = ["recorder", "../recorder", "../lib/tidemark/recorder"];
    for place in places.map(|place| beside.join(place)) {
        if place.join(TOOL).is_file() {
            return Ok(place.canonicalize().unwrap_or(place));
        }
    }
    refuse!(
        "the recorder is not built; `apt-get install valgrind` and `make -C recorder` build it \
         (or name its folder in {RECORDER})"
    )
}
