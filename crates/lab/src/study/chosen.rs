//! A choice of processes: what of a trace is looked at.
//!
//! Processes are chosen by their numbers in the trace, by their numbers in the system, or by the
//! programs that they ran. What others did is left out, and their time does not pass.

use std::collections::BTreeMap;
use std::fmt;

use tidemark_results::analysis::{Chosen, ChosenProcess};
use tidemark_trace::{Block, Blocks, Error, Event, LifeEvent, Unpacker};

use super::opened::Opened;

/// The number of processes that a refusal names.
const NAMED_MAX: usize = 8;

/// A process as its trace names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Its number in the trace.
    pub process: u32,
    /// Its number in the system, if that is known.
    pub pid: Option<u32>,
    /// The programs that it ran, one after the other.
    pub programs: Vec<String>,
}

/// The reason why processes can't be chosen.
#[derive(Debug)]
pub enum Unchosen {
    /// The trace can't be read.
    Trace(Error),
    /// There is no such process.
    Unknown {
        /// The requested name.
        asked: String,
        /// The processes that there are.
        known: Vec<Known>,
    },
}

impl Opened {
    /// Looks at those processes alone that are `asked` for: a number in the trace, or else in the
    /// system, or the name or the path of a program. One who asks for nothing gets all.
    ///
    /// # Errors
    /// The trace can't be read, or has no such process.
    pub fn choose(&mut self, asked: &[String]) -> Result<(), Unchosen> {
        if asked.is_empty() {
            return Ok(());
        }
        let known = collect_known(&self.blocks).map_err(Unchosen::Trace)?;
        let mut numbers = vec![];
        for asked in asked {
            let found = find(&known, asked.trim());
            if found.is_empty() {
                let asked = asked.clone();
                return Err(Unchosen::Unknown { asked, known });
            }
            numbers.extend(found);
        }
        numbers.sort_unstable();
        numbers.dedup();
        let described = numbers.iter().map(|&number| {
            let known = &known[number as usize];
            ChosenProcess {
                process: known.process,
                pid: known.pid,
                program: known.programs.last().cloned().unwrap_or_default(),
            }
        });
        self.facts.chosen = Some(Chosen {
            of: known.len() as u64,
            processes: described.collect(),
        });
        self.take_only(numbers).map_err(Unchosen::Trace)
    }
}

/// The processes of a trace, by their numbers.
fn collect_known(blocks: &Blocks) -> Result<Vec<Known>, Error> {
    let mut known: BTreeMap<u32, Known> = BTreeMap::new();
    let mut unpacker = Unpacker::new()?;
    let mut block = Block::default();
    for (place, entry) in blocks.index().entries.iter().enumerate() {
        let process = entry.process;
        let known = known.entry(process).or_insert_with(|| Known {
            process,
            ..Known::default()
        });
        if entry.events == 0 {
            continue;
        }
        blocks.read(place, &mut unpacker, &mut block)?;
        for placed in &block.events {
            match &placed.event {
                Event::Life(LifeEvent::Start { pid, program, .. }) => {
                    known.pid = Some(*pid);
                    known.programs.push(program.clone());
                }
                Event::Life(LifeEvent::Exec { program }) => known.programs.push(program.clone()),
                _ => {}
            }
        }
    }
    let mut known: Vec<Known> = known.into_values().collect();
    for one in &mut known {
        one.programs.retain(|program| !program.is_empty());
    }
    Ok(known)
}

/// The numbers of the processes that are asked for.
fn find(known: &[Known], asked: &str) -> Vec<u32> {
    let numbers = |is_asked: &dyn Fn(&Known) -> bool| -> Vec<u32> {
        let found = known.iter().filter(|one| is_asked(one));
        found.map(|one| one.process).collect()
    };
    if let Ok(number) = asked.parse::<u32>() {
        let by_number = numbers(&|one| one.process == number);
        return match by_number.is_empty() {
            true => numbers(&|one| one.pid == Some(number)),
            false => by_number,
        };
    }
    let is_named = |program: &String| program == asked || file_name(program) == asked;
    numbers(&|one| !asked.is_empty() && one.programs.iter().any(is_named))
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

impl fmt::Display for Known {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.process)?;
        if let Some(program) = self.programs.last() {
            write!(formatter, " {}", file_name(program))?;
        }
        match self.pid {
            Some(pid) => write!(formatter, " (pid {pid})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Unchosen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, known) = match self {
            Unchosen::Trace(error) => return error.fmt(formatter),
            Unchosen::Unknown { asked, known } => (asked, known),
        };
        let named = known.iter().take(NAMED_MAX).map(Known::to_string);
        let named: Vec<String> = named.collect();
        write!(
            formatter,
            "no process {asked:?}; there are {}",
            named.join(", ")
        )?;
        match known.len().saturating_sub(NAMED_MAX) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more: `tidemark info` lists them"),
        }
    }
}

impl std::error::Error for Unchosen {}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<Known> {
        let known = |process, pid, programs: &[&str]| Known {
            process,
            pid,
            programs: programs.iter().map(|&program| program.into()).collect(),
        };
        vec![
            known(0, Some(700), &["/usr/bin/make"]),
            known(1, Some(2), &["/usr/bin/make", "/usr/bin/cc1"]),
            known(2, None, &[]),
            known(3, Some(701), &["/usr/bin/cc1"]),
        ]
    }

    #[test]
    fn found_m4_processes_are_found_by_number_pid_and_name() {
        let find = |asked| find(&known(), asked);
        assert_eq!((find("1"), find("700")), (vec![1], vec![0]));
        // A number in the trace goes before one in the system.
        assert_eq!(find("2"), [2]);
        assert_eq!((find("cc1"), find("make")), (vec![1, 3], vec![0, 1]));
        assert_eq!(find("/usr/bin/cc1"), [1, 3]);
        for unknown in ["4", "cc", "", "-1"] {
            assert_eq!(find(unknown), Vec::<u32>::new(), "{unknown}");
        }
    }

    #[test]
    fn found_m4_who_asks_for_no_process_is_told_which_there_are() {
        let told = |known| {
            let asked = "gcc".into();
            Unchosen::Unknown { asked, known }.to_string()
        };
        assert_eq!(
            told(known()),
            "no process \"gcc\"; there are 0 make (pid 700), 1 cc1 (pid 2), 2, 3 cc1 (pid 701)"
        );
        let many = (0..30).map(|process| Known {
            process,
            ..Known::default()
        });
        let told = told(many.collect());
        let end = "6, 7 and 22 more: `tidemark info` lists them";
        assert!(told.ends_with(end), "{told}");
    }
}
