//! Reading a module: the file, its form, and what it says of itself.
//!
//! A module is checked once, when it is read, by being started for a memory of one frame. What
//! passes here can be started again for any memory.

use std::fmt;
use std::path::Path;

use tidemark_core::seams::policy::{Description, Sees};
use wasmi::errors::{ErrorKind, InstantiationError, LinkerError};
use wasmi::{CompilationMode, Config, Engine, Instance, Linker, Module, Store, TypedFunc};

use crate::abi::{self, SEES, State};
use crate::guest::{Bounds, Guest};

/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The longest text a module can say of itself, in bytes.
const TEXT_BYTES_MAX: usize = 160;
/// The most bytes of values on the interpreter's stack, and the most calls within each other.
const STACK_BYTES_MAX: usize = 64 << 10;
const DEPTH_MAX: usize = 200;

/// A file that can't serve as a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadError {
    /// The file, as it was named.
    pub name: String,
    /// The fault.
    pub wrong: Wrong,
}

/// The faults of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// The file can't be read.
    Unreadable(String),
    /// The file is longer than any policy.
    TooLong {
        /// Its length, in bytes.
        bytes: u64,
    },
    /// The module is neither the text nor the binary form of a module, or breaks their rules.
    NotAModule(String),
    /// The module imports a function that is unknown or has another type.
    WrongImport {
        /// Its module and name.
        name: String,
    },
    /// The module lacks a function that every policy has.
    MissingExport {
        /// The function.
        name: &'static str,
        /// The function's type.
        signature: &'static str,
    },
    /// A function has another type.
    WrongExport {
        /// The function.
        name: &'static str,
        /// The type it must have.
        signature: &'static str,
    },
    /// The least it must see is no known number.
    WrongSees(i32),
    /// The module lacks a function that policies must have that see as much as this one.
    MissingSight {
        /// The function.
        name: &'static str,
    },
    /// The module can't be started: it traps, goes on too long, or wants too much memory.
    NoStart(String),
    /// The description is no text.
    NoText {
        /// The function that should point to one.
        name: &'static str,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        write!(formatter, "`{name}`: ")?;
        match &self.wrong {
            Wrong::Unreadable(why) => write!(formatter, "can't be read: {why}"),
            Wrong::TooLong { bytes } => write!(
                formatter,
                "has {bytes} bytes; a policy's module has at most {FILE_BYTES_MAX}"
            ),
            Wrong::NotAModule(why) => write!(formatter, "is no WebAssembly module: {why}"),
            Wrong::WrongImport { name } => write!(
                formatter,
                "imports `{name}`, which a policy is not offered like that; \
                 docs/formats/policy-module-v1.md has what is"
            ),
            Wrong::MissingExport { name, signature } => write!(
                formatter,
                "has no function `{name}`; export it as `{signature}`"
            ),
            Wrong::WrongExport { name, signature } => write!(
                formatter,
                "its function `{name}` has another type; it must be `{signature}`"
            ),
            Wrong::WrongSees(number) => write!(
                formatter,
                "`{SEES}` answers {number}; 0 is faults, 1 bits, 2 references, 3 the future"
            ),
            Wrong::MissingSight { name } => write!(
                formatter,
                "sees more than bits and has no function `{name}`; export it, or see less"
            ),
            Wrong::NoStart(why) => write!(formatter, "can't be started: {why}"),
            Wrong::NoText { name } => write!(
                formatter,
                "`{name}` points to no text; a text is at most {TEXT_BYTES_MAX} bytes of UTF-8 \
                 and a zero in the exported `memory`"
            ),
        }
    }
}

impl std::error::Error for LoadError {}

/// Reads the module in the file `path`, in its text or its binary form, into its binary form.
///
/// # Errors
/// If there is no such file, it is too long, or its text is none.
pub fn read(path: &str) -> Result<Vec<u8>, LoadError> {
    let error = |wrong| LoadError {
        name: path.to_owned(),
        wrong,
    };
    let unreadable = |why: std::io::Error| {
        let text = why.to_string();
        let words = text.split(" (os error").next().unwrap_or(&text);
        error(Wrong::Unreadable(words.to_lowercase()))
    };
    let bytes = std::fs::metadata(Path::new(path))
        .map_err(unreadable)?
        .len();
    if bytes > FILE_BYTES_MAX {
        return Err(error(Wrong::TooLong { bytes }));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    binary_of(bytes).map_err(error)
}

/// The binary form of a module that is in its text or its binary form.
#[cfg(feature = "text")]
fn binary_of(bytes: Vec<u8>) -> Result<Vec<u8>, Wrong> {
    let binary = wat::parse_bytes(&bytes);
    let binary = binary.map_err(|why| Wrong::NotAModule(plain(&why.to_string())))?;
    Ok(binary.into_owned())
}

/// The module as it is: a text is found to be no module where that is read.
#[cfg(not(feature = "text"))]
fn binary_of(bytes: Vec<u8>) -> Result<Vec<u8>, Wrong> {
    Ok(bytes)
}

/// Reads the description of the module in `bytes`, which is called `name`.
///
/// # Errors
/// If it can't serve as a policy.
pub fn describe(name: &'static str, bytes: &[u8]) -> Result<Description, Wrong> {
    let mut guest = Guest::new(bytes, Bounds::new(1))?;
    let number = no_start(guest.tell(guest.calls.sees, ()))?;
    let sees = abi::sees(number).ok_or(Wrong::WrongSees(number))?;
    if let Some(name) = guest.calls.find_missing(sees) {
        return Err(Wrong::MissingSight { name });
    }
    let summary = read_text(&mut guest, "summary")?;
    let lineage = read_text(&mut guest, "lineage")?;
    if let Some(start) = guest.calls.start {
        no_start(guest.tell(start, (1, 1, 1)))?;
    }
    Ok(leak(name, sees, summary, lineage))
}

/// An engine that runs modules within bounds, and starts none of them.
pub fn engine() -> Engine {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        // Choices are made with integers, the same on every machine.
        .floats(false)
        .compilation_mode(CompilationMode::Eager)
        .set_max_recursion_depth(DEPTH_MAX)
        .set_max_stack_height(STACK_BYTES_MAX);
    Engine::new(&config)
}

/// An instance of the module in `bytes` in `store`.
///
/// # Errors
/// If it breaks the rules of its format, imports what is not offered, or needs too much.
pub fn instantiate(store: &mut Store<State>, bytes: &[u8]) -> Result<Instance, Wrong> {
    let engine = store.engine().clone();
    let module =
        Module::new(&engine, bytes).map_err(|why| Wrong::NotAModule(plain(&why.to_string())))?;
    let mut linker = Linker::new(&engine);
    abi::link(&mut linker).expect("no import is defined twice");
    let instance = linker.instantiate_and_start(store, &module);
    instance.map_err(|error| match error.kind() {
        ErrorKind::Linker(
            LinkerError::MissingDefinition { name, .. }
            | LinkerError::InvalidTypeDefinition { name, .. },
        )
        | ErrorKind::Instantiation(
            InstantiationError::ImportTypeMismatch { name, .. }
            | InstantiationError::FuncTypeMismatch { name, .. },
        ) => Wrong::WrongImport {
            name: format!("{}.{}", name.module(), name.name()),
        },
        _ => Wrong::NoStart(plain(&error.to_string())),
    })
}

/// The first line of `text`, which is to stand in a line of ours.
pub fn plain(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

fn no_start<T>(answer: Result<T, crate::guest::Setback>) -> Result<T, Wrong> {
    answer.map_err(|setback| Wrong::NoStart(setback.to_string()))
}

/// The text that the function `name` points to in the module's memory, if there is one.
fn read_text(guest: &mut Guest, name: &'static str) -> Result<Option<String>, Wrong> {
    let Some(text): Option<TypedFunc<(), i32>> = abi::find(&guest.store, guest.instance, name)?
    else {
        return Ok(None);
    };
    let at = no_start(guest.tell(text, ()))?.cast_unsigned() as usize;
    let found = || {
        let memory = guest.instance.get_memory(&guest.store, "memory")?;
        let bytes = memory.data(&guest.store).get(at..)?;
        let length = bytes
            .iter()
            .take(TEXT_BYTES_MAX + 1)
            .position(|&byte| byte == 0)?;
        let text = str::from_utf8(&bytes[..length]).ok()?;
        (!text.chars().any(char::is_control)).then(|| text.to_owned())
    };
    Ok(Some(found().ok_or(Wrong::NoText { name })?))
}

/// Descriptions live as long as the program: policies have static ones.
fn leak(
    name: &'static str,
    sees: Sees,
    summary: Option<String>,
    lineage: Option<String>,
) -> Description {
    let summary = summary.map_or("a policy read from a file", |text| text.leak());
    let lineage: Vec<&'static str> = lineage.into_iter().map(|text| &*text.leak()).collect();
    Description {
        name,
        summary,
        lineage: lineage.leak(),
        sees,
        knobs: &[],
    }
}
