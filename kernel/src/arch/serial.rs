//! The console on the first serial port, and the port that logs go to.

use core::fmt;

use super::processor::{read_port, write_port};

const CONSOLE: u16 = 0x3f8;
/// Line status, from the port on: a byte may be sent.
const STATUS: u16 = 5;
const MAY_SEND: u8 = 0x20;
/// The emulator's ports for bytes that go to files: decisions, and what was counted.
const LOG: u16 = 0xe9;
const REPORT: u16 = 0xe8;

/// Sets the port up: 115,200 baud, eight bits, no interrupts.
pub fn start() {
    for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 0xc7), (4, 3)] {
        write_port(CONSOLE + register, value);
    }
}

/// Writes to the console, and waits until that is done.
pub fn write(bytes: &[u8]) {
    for &byte in bytes {
        while read_port(CONSOLE + STATUS) & MAY_SEND == 0 {}
        write_port(CONSOLE, byte);
    }
}

/// Writes to the log of decisions.
pub fn log(text: fmt::Arguments<'_>) {
    // The port takes everything.
    let _ = fmt::Write::write_fmt(&mut ToFile(LOG), text);
}

/// Writes to the text about the run.
pub fn report(text: fmt::Arguments<'_>) {
    // The port takes everything.
    let _ = fmt::Write::write_fmt(&mut ToFile(REPORT), text);
}

/// The console as something to format to.
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write(text.as_bytes());
        Ok(())
    }
}

struct ToFile(u16);

impl fmt::Write for ToFile {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| write_port(self.0, byte));
        Ok(())
    }
}

/// Writes a line to the console.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => {{
        use core::fmt::Write;
        // The console takes everything.
        let _ = writeln!($crate::arch::serial::Console, $($part)*);
    }};
}
