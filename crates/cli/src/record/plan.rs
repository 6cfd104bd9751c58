//! The needs of a recording: Valgrind, the recorder, and a program that both can run.

use std::path::PathBuf;

use tidemark_recording::Settings;
use tidemark_results::quantity;
use tidemark_supervisor::recorder::Recordable;

use super::Arguments;
use crate::exit::{Refusal, refuse};

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
    /// The program, and how it is run.
    pub recorded: Recordable,
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
        Ok(Plan {
            settings: Settings {
                page_shift: page_bytes.trailing_zeros(),
                quantum,
                is_live: false,
            },
            output: arguments.output_path(),
            page_bytes,
            recorded: Recordable::find(&arguments.program)?,
        })
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
