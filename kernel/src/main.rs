//! Tidemark's third machine: a kernel that boots under an emulator, sets up virtual memory, runs
//! programs in user mode and takes their page faults to the core.
//!
//! [`arch`] is the machine and holds all unsafe code; [`machine`] is the core's `Machine` on tables
//! of pages; [`store`] is what stands behind its pagers, with the files of [`volume`]; [`kernel`]
//! is the loop around both;
//! [`calls`] and [`execute`] are what programs ask for.
#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod calls;
mod execute;
mod kernel;
mod machine;
mod parameters;
mod process;
mod program;
mod store;
mod volume;

use arch::Board;
use arch::panic::{Ending, exit};
use kernel::Kernel;

/// Reads the parameters, has the machine make itself ready with that many frames, and runs.
fn start(command_line: &str, prepare: impl FnOnce(u32) -> Board) -> ! {
    let parameters = match parameters::parse(command_line) {
        Ok(parameters) => parameters,
        Err(mistake) => {
            say!("kernel: `{}`: needs {}", mistake.given, mistake.needs);
            exit(Ending::Refused)
        }
    };
    let board = prepare(parameters.frames);
    let mut kernel = match Kernel::new(board, &parameters) {
        Ok(kernel) => kernel,
        Err(refusal) => {
            say!("kernel: {refusal}");
            exit(Ending::Refused)
        }
    };
    let ending = kernel.run(parameters.run);
    kernel.report();
    exit(ending)
}
