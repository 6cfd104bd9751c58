//! The report of Valgrind on a process, in its own log.

use std::path::Path;

/// The report of Valgrind on a process.
#[derive(Debug)]
pub struct Account {
    text: String,
}

/// The signal that an illegal instruction raises.
const ILLEGAL: u32 = 4;
/// The first byte of instructions of AVX-512 and nothing else.
const EVEX: &str = "0x62";
/// Before an instruction that Valgrind can't translate. It does not say so of those that are
/// illegal on every processor.
const UNHANDLED: &str = "unhandled instruction bytes: ";
/// After it, and in front of an illegal one.
const UNRECOGNISED: &str = "Unrecognised instruction at address ";

impl Account {
    /// Reads the report on process `pid`; nothing if that can't be read.
    pub fn read(spool: &Path, pid: u32) -> Account {
        let bytes = std::fs::read(spool.join(format!("valgrind.{pid}"))).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Account { text }
    }

    /// The signal that ended the process.
    pub fn signal(&self) -> Option<u32> {
        let (_, rest) = self.text.rsplit_once("default action of signal ")?;
        rest.split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    }

    /// The reason for which the process ended, if it did because Valgrind does not know an
    /// instruction, and what to do.
    pub fn unknown_instruction(&self) -> Option<String> {
        if self.signal() != Some(ILLEGAL) {
            return None;
        }
        // An illegal one may have come after one that is not known, and was caught.
        let (before, after) = self.text.rsplit_once(UNRECOGNISED)?;
        let (_, bytes) = before.rsplit_once(UNHANDLED)?;
        if bytes.contains(UNRECOGNISED) {
            return None;
        }
        let bytes: Vec<&str> = bytes.lines().next()?.split_whitespace().collect();
        let family = match bytes.first() {
            Some(&EVEX) => "an instruction of AVX-512",
            Some(_) | None => "an instruction",
        };
        let address = after.lines().next()?.trim_end_matches('.');
        let command = self.line_after("Command: ").unwrap_or("the program");
        let bytes: Vec<&str> = bytes.iter().map(|byte| &byte[2..]).collect();
        Some(format!(
            "`{command}` ended by SIGILL: Valgrind does not know {family} that it uses, at \
             {address} ({}); record it with `--live`, or build it for an older processor",
            bytes.join(" ")
        ))
    }

    fn line_after(&self, mark: &str) -> Option<&str> {
        let (_, rest) = self.text.split_once(mark)?;
        rest.lines().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "==38== Nulgrind\n==38== Command: ./sums 3\n==38== \n";
    const UNKNOWN: &str = "vex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7D\n\
        vex amd64->IR:   REX=0 REX.W=0\n\
        ==38== valgrind: Unrecognised instruction at address 0x10916b.\n\
        ==38==    at 0x10916B: main (in /tmp/sums)\n";
    const ILLEGAL_EVERYWHERE: &str = "==38== valgrind: Unrecognised instruction at address 0x92.\n\
        ==38==    at 0x109200: main (in /tmp/sums)\n";
    const ENDED: &str = "==38== Process terminating with default action of signal 4 (SIGILL)\n";

    fn told(parts: &[&str]) -> Option<String> {
        let text = parts.concat();
        Account { text }.unknown_instruction()
    }

    #[test]
    fn found_h7_an_instruction_that_valgrind_does_not_know_is_told_with_a_remedy() {
        let found = told(&[HEAD, UNKNOWN, ENDED]).unwrap();
        assert_eq!(
            found,
            "`./sums 3` ended by SIGILL: Valgrind does not know an instruction of AVX-512 that it \
             uses, at 0x10916b (62 F1 7D); record it with `--live`, or build it for an older \
             processor"
        );
    }

    #[test]
    fn found_h7_what_is_illegal_everywhere_is_not_blamed_on_valgrind() {
        assert_eq!(told(&[HEAD, ILLEGAL_EVERYWHERE, ENDED]), None);
        assert_eq!(told(&[HEAD, UNKNOWN, ILLEGAL_EVERYWHERE, ENDED]), None);
        assert!(told(&[HEAD, ILLEGAL_EVERYWHERE, UNKNOWN, ENDED]).is_some());
        // Caught: how a program finds out what its processor can do.
        assert_eq!(told(&[HEAD, UNKNOWN]), None);
        assert_eq!(told(&[]), None);
    }
}
