//! The program to be run: where it is, and whether it can be managed.
//!
//! Management rides on the dynamic linker (`LD_PRELOAD`). Programs that the linker does not load it
//! into are found here, before anything is started: static ones, foreign ones, and those that gain
//! privileges.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tidemark_results::{Refusal, refuse};

pub use tidemark_results::refusal::plain;

/// The most scripts that may name each other as interpreters, as in the kernel.
const INTERPRETERS_MAX: u32 = 5;

/// The part of a file that is looked at, in bytes. Headers of programs lie within the first page.
const HEAD_BYTES: usize = 4096;

const SET_USER: &str = "set-user-id";
const SET_GROUP: &str = "set-group-id";
const CAPABILITIES: &str = "file capabilities";

/// The reason why a program can't be managed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The program has no dynamic linker.
    Static,
    /// The program was built for another machine or word size.
    Foreign,
    /// Its dynamic linker is not the one of glibc.
    OtherLinker(String),
    /// The program runs with more privileges than its caller. A managed copy would not.
    Privileged(&'static str),
    /// The program is neither a program nor a script with an interpreter.
    UnknownFormat,
    /// The program may be executed, but not read.
    Unreadable,
}

/// Finds what a shell would run for `name`.
pub fn find(name: &OsStr) -> Result<PathBuf, Refusal> {
    let shown = name.display();
    if name.as_bytes().contains(&b'/') {
        return match std::fs::metadata(name) {
            Ok(metadata) if is_executable(&metadata, Path::new(name)) => Ok(name.into()),
            Ok(metadata) if metadata.is_dir() => refuse!("`{shown}`: is a directory"),
            Ok(_) => refuse!("`{shown}`: not executable; `chmod +x` it or run its interpreter"),
            Err(error) => refuse!("`{shown}`: {}", plain(&error)),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    for folder in std::env::split_paths(&path) {
        let candidate = folder.join(name);
        let metadata = std::fs::metadata(&candidate);
        if metadata.is_ok_and(|metadata| is_executable(&metadata, &candidate)) {
            return Ok(candidate);
        }
    }
    refuse!("`{shown}`: no such program in $PATH; name its path if it is elsewhere")
}

/// Finds the reason why the program at `path` can't be managed, if there is one.
pub fn find_obstacle(path: &Path) -> Option<Obstacle> {
    let mut path = path.to_path_buf();
    for _ in 0..INTERPRETERS_MAX {
        if let Some(obstacle) = find_privilege(&path) {
            return Some(obstacle);
        }
        let Some(head) = read_head(&path) else {
            return Some(Obstacle::Unreadable);
        };
        match find_interpreter(&head) {
            Some(interpreter) => path = interpreter,
            None => return find_elf_obstacle(&head),
        }
    }
    Some(Obstacle::UnknownFormat)
}

impl Obstacle {
    /// The reason, in words that follow the program's name.
    pub fn reason(&self) -> String {
        match self {
            Obstacle::Static => {
                "is statically linked, so that nothing can be loaded into it".into()
            }
            Obstacle::Foreign => "was built for another kind of machine or word size".into(),
            Obstacle::OtherLinker(linker) => {
                format!("is loaded by `{linker}`, which is not the linker of glibc")
            }
            Obstacle::Privileged(how) => {
                format!(
                    "gains privileges ({how}), so that nothing can be loaded into it; run a copy \
                     of it, which gains none (as root, if it needs them)"
                )
            }
            Obstacle::UnknownFormat => "is neither an ELF program nor a script with `#!`".into(),
            Obstacle::Unreadable => {
                "can't be read to see whether it can be managed; `chmod +r` it".into()
            }
        }
    }
}

fn is_executable(metadata: &Metadata, path: &Path) -> bool {
    metadata.is_file()
        && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
        && metadata.mode() & 0o111 != 0
}

/// Finds whether the kernel would mark a run of the file as one that gains privileges.
fn find_privilege(path: &Path) -> Option<Obstacle> {
    let metadata = std::fs::metadata(path).ok()?;
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let is_gained = |mark: &&'static str| match *mark {
        SET_USER => metadata.uid() != user.as_raw(),
        SET_GROUP => metadata.gid() != group.as_raw(),
        // Root has every capability before: it gains none.
        _ => !user.is_root(),
    };
    let gained = collect_marks(path).into_iter().find(is_gained);
    gained.map(Obstacle::Privileged)
}

/// Collects the marks of a file whose runs have the file's own privileges.
pub fn collect_marks(path: &Path) -> Vec<&'static str> {
    let mode = std::fs::metadata(path).map_or(0, |metadata| metadata.mode());
    let is_set = |bits: u32| mode & bits == bits;
    let mut value = [0u8; 64];
    let capabilities = rustix::fs::getxattr(path, "security.capability", &mut value[..]);
    let marks = [
        (is_set(0o4000), SET_USER),
        (is_set(0o2010), SET_GROUP),
        (capabilities.is_ok_and(|length| length > 0), CAPABILITIES),
    ];
    let marks = marks.into_iter().filter(|(is_there, _)| *is_there);
    marks.map(|(_, mark)| mark).collect()
}

fn read_head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    File::open(path)
        .ok()?
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .ok()?;
    Some(head)
}

/// The program a script wants to be run by; through `env`, the program `env` will run.
fn find_interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head
        .strip_prefix(b"#!")?
        .split(|&byte| byte == b'\n')
        .next()?;
    let mut words = line
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()));
    let interpreter = PathBuf::from(words.next()?);
    if interpreter.file_name() != Some(OsStr::new("env")) {
        return Some(interpreter);
    }
    let is_name =
        |word: &OsString| !word.as_bytes().starts_with(b"-") && !word.as_bytes().contains(&b'=');
    match words.find(is_name).map(|name| find(&name)) {
        Some(Ok(program)) => Some(program),
        Some(Err(_)) | None => Some(interpreter),
    }
}

/// Finds the reason why an ELF file can't be managed. `head` is its beginning.
fn find_elf_obstacle(head: &[u8]) -> Option<Obstacle> {
    let Some(elf) = Elf::parse(head) else {
        let is_elf = head.starts_with(b"\x7fELF");
        return Some(if is_elf {
            Obstacle::Foreign
        } else {
            Obstacle::UnknownFormat
        });
    };
    match elf.linker {
        None => Some(Obstacle::Static),
        Some(linker) if linker.contains("musl") => Some(Obstacle::OtherLinker(linker)),
        Some(_) => None,
    }
}

/// The relevant parts of an ELF file that this machine can run.
struct Elf {
    /// The path of the dynamic linker, if it wants one.
    linker: Option<String>,
}

impl Elf {
    /// Reads the headers. `None` if they are not of a 64-bit little-endian program for this
    /// machine. (Layout: System V ABI, "Object Files".)
    fn parse(head: &[u8]) -> Option<Elf> {
        const CLASS_64: u8 = 2;
        const LITTLE_ENDIAN: u8 = 1;
        const EXECUTABLE: u16 = 2;
        const SHARED: u16 = 3;
        const INTERPRETER: u32 = 3;
        if !head.starts_with(&[0x7f, b'E', b'L', b'F', CLASS_64, LITTLE_ENDIAN]) {
            return None;
        }
        let kind = number(head, 16, 2)? as u16;
        if ![EXECUTABLE, SHARED].contains(&kind) || number(head, 18, 2)? != machine()? {
            return None;
        }
        let (offset, size) = (number(head, 32, 8)? as usize, number(head, 54, 2)? as usize);
        for index in 0..number(head, 56, 2)? as usize {
            let header = head.get(offset.checked_add(index * size)?..)?;
            if number(header, 0, 4)? as u32 == INTERPRETER {
                let (start, length) = (number(header, 8, 8)? as usize, number(header, 32, 8)?);
                // The name may lie beyond the part of the file that is looked at; that it is
                // there suffices.
                let name = head
                    .get(start..start.checked_add(length as usize)?)
                    .unwrap_or_default();
                let name = String::from_utf8_lossy(name);
                return Some(Elf {
                    linker: Some(name.trim_end_matches('\0').into()),
                });
            }
        }
        Some(Elf { linker: None })
    }
}

/// This machine's number in ELF files.
fn machine() -> Option<u64> {
    match std::env::consts::ARCH {
        "x86_64" => Some(62),
        "aarch64" => Some(183),
        _ => None,
    }
}

/// The little-endian number of `length` bytes at `at`.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(length)?)?;
    Some(
        field
            .iter()
            .rev()
            .fold(0, |number, &byte| number << 8 | u64::from(byte)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of an ELF file for this machine with one program header.
    fn elf(linker: Option<&str>) -> Vec<u8> {
        let mut head = vec![0; 64 + 56];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[16] = 3;
        head[18] = machine().unwrap() as u8;
        head[32] = 64;
        head[54] = 56;
        head[56] = 1;
        head[64] = 1;
        if let Some(linker) = linker {
            head[64] = 3;
            head[64 + 8] = head.len() as u8;
            head[64 + 32] = linker.len() as u8 + 1;
            head.extend_from_slice(linker.as_bytes());
            head.push(0);
        }
        head
    }

    #[test]
    fn a_dynamic_program_has_no_obstacle() {
        assert_eq!(
            find_elf_obstacle(&elf(Some("/lib64/ld-linux-x86-64.so.2"))),
            None
        );
    }

    #[test]
    fn a_static_program_can_not_be_managed() {
        assert_eq!(find_elf_obstacle(&elf(None)), Some(Obstacle::Static));
    }

    #[test]
    fn a_program_with_another_linker_is_told_by_it() {
        let linker = "/lib/ld-musl-x86_64.so.1";
        assert_eq!(
            find_elf_obstacle(&elf(Some(linker))),
            Some(Obstacle::OtherLinker(linker.into()))
        );
    }

    #[test]
    fn other_word_sizes_byte_orders_and_machines_are_foreign() {
        for (at, byte) in [(4, 1), (5, 2), (18, 40), (16, 1)] {
            let mut head = elf(None);
            head[at] = byte;
            assert_eq!(
                find_elf_obstacle(&head),
                Some(Obstacle::Foreign),
                "byte {at}"
            );
        }
    }

    #[test]
    fn headers_that_lead_nowhere_are_no_panic() {
        let whole = elf(Some("/lib/ld.so"));
        for length in 0..whole.len() {
            let _ = find_elf_obstacle(&whole[..length]);
        }
        for at in 0..64 {
            let mut head = whole.clone();
            head[at] = 0xff;
            let _ = find_elf_obstacle(&head);
            head[32..40].fill(0xff);
            let _ = find_elf_obstacle(&head);
        }
    }

    #[test]
    fn what_is_no_program_has_an_unknown_format() {
        assert_eq!(
            find_elf_obstacle(b"echo hello\n"),
            Some(Obstacle::UnknownFormat)
        );
        assert_eq!(find_elf_obstacle(b""), Some(Obstacle::UnknownFormat));
    }

    #[test]
    fn a_script_names_its_interpreter() {
        assert_eq!(
            find_interpreter(b"#! /bin/sh -e\nls\n"),
            Some("/bin/sh".into())
        );
        assert_eq!(find_interpreter(b"ls\n"), None);
        let through_env = find_interpreter(b"#!/usr/bin/env -S LANG=C sh -e\n").unwrap();
        assert_eq!(through_env.file_name(), Some(OsStr::new("sh")));
    }

    #[test]
    fn the_shell_can_be_managed_wherever_it_is() {
        let shell = find(OsStr::new("sh")).unwrap();
        assert_eq!(find_obstacle(&shell), None);
    }
}
