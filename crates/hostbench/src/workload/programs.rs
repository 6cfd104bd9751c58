//! Real programs as workloads: a C++ compiler and GNU sort.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tidemark_core::random::mix;

use super::outcome::WorkloadOutcome;
use super::random::Random;

/// The program that `compile` compiles.
const COMPILE_SOURCE: &str = include_str!("../../../../bench/workloads/eigen.cpp");
/// The folder into which Debian's `libeigen3-dev` puts its headers.
const EIGEN_HEADERS: &str = "/usr/include/eigen3";
const LINE_BYTES: usize = 100;
/// The memory that GNU sort keeps for each line beside its text, with two threads: two line
/// records.
const LINE_RECORD_BYTES: u64 = 64;

/// Writes what `compile` reads, and checks that it can run at all.
pub fn prepare_compile(scratch: &Path) -> Result<(), String> {
    if !Path::new(EIGEN_HEADERS).is_dir() {
        return Err(format!(
            "`compile` needs {EIGEN_HEADERS}; run: apt-get install libeigen3-dev"
        ));
    }
    if Command::new("g++").arg("--version").output().is_err() {
        return Err("`compile` needs g++; run: apt-get install g++".to_owned());
    }
    std::fs::write(scratch.join("eigen.cpp"), COMPILE_SOURCE)
        .map_err(|error| format!("{}: {error}", scratch.display()))
}

/// Compiles the prepared source. The checksum is that of the object file.
pub fn compile(scratch: &Path) -> Result<WorkloadOutcome, String> {
    let object = scratch.join("eigen.o");
    let mut command = Command::new("g++");
    // Run in the folder, so that no path of this machine gets into the object.
    command
        .current_dir(scratch)
        .args(["-O2", "-std=c++17", "-c", "eigen.cpp", "-o", "eigen.o"]);
    command.arg("-I").arg(EIGEN_HEADERS);
    time_to_file(command, &object)
}

/// Writes the text that `sort` sorts, so large that text and line records fill `bytes`.
pub fn prepare_sort(scratch: &Path, bytes: u64) -> Result<(), String> {
    let path = scratch.join("sort.txt");
    write_lines(&path, bytes / (LINE_BYTES as u64 + LINE_RECORD_BYTES))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Sorts the prepared text in memory. The checksum is that of the output.
pub fn sort(scratch: &Path, bytes: u64) -> Result<WorkloadOutcome, String> {
    let sorted = scratch.join("sorted.txt");
    let mut command = Command::new("sort");
    // The buffer is a little larger than what is needed, so that nothing spills into files.
    command
        .arg("-S")
        .arg(format!("{}b", bytes + bytes / 16))
        .arg("--parallel=2");
    command
        .arg("-T")
        .arg(scratch)
        .arg("-o")
        .arg(&sorted)
        .arg(scratch.join("sort.txt"));
    command.env("LC_ALL", "C");
    time_to_file(command, &sorted)
}

/// The name of the file of a program's standard output, in its own folder.
const OUTPUT: &str = ".output";

/// Copies the files of `scratch` into a folder of its own in it, so that programs that run at the
/// same time keep out of each other's way.
pub fn prepare_copy(scratch: &Path, number: u64) -> Result<PathBuf, String> {
    let folder = scratch.join(format!("run-{number}"));
    let copy = || -> std::io::Result<()> {
        // What a contender before has left there.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder)?;
        for entry in fs::read_dir(scratch)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::copy(entry.path(), folder.join(entry.file_name()))?;
            }
        }
        Ok(())
    };
    match copy() {
        Ok(()) => Ok(folder),
        Err(error) => Err(format!("{}: {error}", folder.display())),
    }
}

/// Runs a program in its folder. The checksum is that of all files that lie there afterwards, its
/// output included.
pub fn program(folder: &Path, words: &[OsString]) -> Result<WorkloadOutcome, String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    let Some((name, arguments)) = words.split_first() else {
        return Err("`program` needs a program after `--`".to_owned());
    };
    let output = folder.join(OUTPUT);
    let mut command = Command::new(name);
    command.args(arguments).current_dir(folder);
    command.stdout(File::create(&output).map_err(told)?);
    let mut outcome = time_to_file(command, &output)?;
    let files = fs::read_dir(folder).map_err(told)?;
    let files = files.map(|entry| entry.map(|entry| entry.path()));
    let mut files: Vec<PathBuf> = files.collect::<Result<_, _>>().map_err(told)?;
    files.sort();
    files.retain(|file| file.is_file());
    let checksum = checksum_of_all(&files)?;
    outcome.checksum = checksum;
    Ok(outcome)
}

/// Folds the contents of all `files` into one checksum.
pub fn checksum_of_all(files: &[PathBuf]) -> Result<String, String> {
    let mut checksum = 0u64;
    for file in files {
        let one = checksum_of(file).map_err(|error| format!("{}: {error}", file.display()))?;
        checksum = mix(checksum ^ one);
    }
    Ok(format!("{checksum:016x}"))
}

fn time_to_file(mut command: Command, output: &Path) -> Result<WorkloadOutcome, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let status = command
        .status()
        .map_err(|error| format!("`{name}` can't be started: {error}"))?;
    let elapsed = start.elapsed();
    if !status.success() {
        return Err(format!("`{name}` ended with {status}"));
    }
    let checksum = checksum_of(output).map_err(|error| format!("{}: {error}", output.display()))?;
    Ok(WorkloadOutcome {
        checksum: format!("{checksum:016x}"),
        elapsed_s: elapsed.as_secs_f64(),
        fill_s: 0.0,
        accesses: 0,
        read_bytes: None,
    })
}

fn write_lines(path: &Path, lines: u64) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut random = Random::new(lines);
    let mut line = [b'.'; LINE_BYTES];
    line[LINE_BYTES - 1] = b'\n';
    for _ in 0..lines {
        for letter in &mut line[..48] {
            *letter = b'a' + u8::try_from(random.below(26)).expect("26 letters fit in a byte");
        }
        file.write_all(&line)?;
    }
    file.into_inner()?.sync_all()
}

fn checksum_of(path: &Path) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0u8; 1 << 16];
    let mut checksum = 0u64;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(mix(checksum));
        }
        for &byte in &buffer[..count] {
            checksum = (checksum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_runs_in_a_copy_and_its_output_counts() {
        let scratch = std::env::temp_dir().join(format!("tidemark-copy-{}", std::process::id()));
        fs::create_dir_all(&scratch).expect("the temporary folder can be written");
        fs::write(scratch.join("in"), "abc").expect("a file can be written");
        let run = |number, script: &str| {
            let folder = prepare_copy(&scratch, number).expect("the folder can be copied");
            let words = ["sh", "-c", script].map(OsString::from);
            program(&folder, &words)
        };
        let first = run(1, "cat in; cp in out").expect("it runs");
        let other = run(2, "cat in; cp in out").expect("it runs");
        let less = run(3, "cp in out").expect("it runs");
        assert_eq!(first.checksum, other.checksum);
        assert_ne!(first.checksum, less.checksum);
        assert!(!scratch.join("out").exists());
        assert!(run(4, "exit 3").is_err() && program(&scratch, &[]).is_err());
        fs::remove_dir_all(&scratch).expect("the folder can be removed");
    }

    #[test]
    fn sorting_gives_the_same_output_each_time() {
        let scratch = std::env::temp_dir().join(format!("tidemark-sort-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).expect("the temporary folder can be written");
        prepare_sort(&scratch, 1 << 20).expect("the text can be written");
        let first = sort(&scratch, 1 << 20).expect("sort runs");
        let again = sort(&scratch, 1 << 20).expect("sort runs");
        assert_eq!(first.checksum, again.checksum);
        let sorted = std::fs::read(scratch.join("sorted.txt")).expect("there is an output");
        let lines: Vec<&[u8]> = sorted.chunks(LINE_BYTES).collect();
        assert_eq!(lines.len(), (1 << 20) / 164);
        assert!(lines.is_sorted());
        std::fs::remove_dir_all(&scratch).expect("the folder can be removed");
    }
}
