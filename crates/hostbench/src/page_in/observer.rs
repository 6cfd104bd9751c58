//! The cost of a stretch of work, to a program and to its engine.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tidemark_live::sys::observed::{Counter, NAMED, Spent, process_ns, thread_ns, thread_spent};
use tidemark_live::sys::program;

/// The name under which all system calls are counted.
pub const ALL: &str = "all";

/// Processor time and time that were taken. Ticks are a hundredth of a second, and tell how the
/// engine's time is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// The program's time in user mode.
    pub program_user_ns: u64,
    /// The program's time in the kernel.
    pub program_system_ns: u64,
    /// The engine's.
    pub engine_ns: u64,
    /// Of that in user mode, in ticks.
    pub engine_user_ticks: u64,
    /// Of that in the kernel, in ticks.
    pub engine_system_ticks: u64,
    /// The time of a busy second thread.
    pub busy_ns: u64,
    /// The time from the beginning to the end, without that of the loop itself.
    pub elapsed_ns: u64,
    /// The time from the beginning to the end, with that of the loop itself.
    pub elapsed_in_all_ns: u64,
}

impl Cost {
    /// The processor time of both.
    pub fn processor_ns(&self) -> u64 {
        self.program_user_ns + self.program_system_ns + self.engine_ns
    }

    /// Without the program's part and the elapsed time of `own`, of which `times` are in it.
    pub fn without(&self, own: &Cost, times: f64) -> Cost {
        let less = |all: u64, own: u64| all.saturating_sub((own as f64 * times) as u64);
        Cost {
            program_user_ns: less(self.program_user_ns, own.program_user_ns),
            program_system_ns: less(self.program_system_ns, own.program_system_ns),
            elapsed_ns: less(self.elapsed_ns, own.elapsed_ns),
            ..*self
        }
    }
}

/// The counts of a stretch of work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The engine's system calls by name, and [all](ALL) of them. Nothing: not counted.
    pub calls: BTreeMap<String, u64>,
    /// The engine's instructions in user mode, if they are counted.
    pub instructions: Option<u64>,
    /// The reason for which system calls are not counted.
    pub calls_refused: Option<String>,
    /// The reason for which instructions are not counted.
    pub instructions_refused: Option<String>,
}

/// The engine, or what stands for one.
pub struct Observer {
    engine: Engine,
    /// The file with how its time is divided.
    stat: PathBuf,
    /// A busy second thread of this process.
    busy: Option<u32>,
}

#[derive(Clone, Copy)]
enum Engine {
    Process(u32),
    Thread(u32),
}

impl Observer {
    /// The engine of this process.
    ///
    /// # Errors
    /// The line that says that there is none.
    pub fn of_own_engine() -> Result<Observer, String> {
        let own = std::process::id();
        let numbers = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
        let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let is_engine = |number: &u32| *number != own && program::shares_memory_with(*number);
        match { numbers }.find(is_engine) {
            Some(number) => Ok(Observer {
                engine: Engine::Process(number),
                stat: format!("/proc/{number}/stat").into(),
                busy: None,
            }),
            None => Err("this process has no engine: run it under `tidemark run`".to_owned()),
        }
    }

    /// A thread of this process that is the engine.
    pub fn of_thread(number: u32) -> Observer {
        Observer {
            engine: Engine::Thread(number),
            stat: format!("/proc/self/task/{number}/stat").into(),
            busy: None,
        }
    }

    /// This observer, which counts a busy thread apart, if there is one.
    pub fn beside(self, busy: Option<u32>) -> Observer {
        Observer { busy, ..self }
    }

    /// Does some work and answers what it took.
    ///
    /// # Errors
    /// Those of the work.
    pub fn time(&self, work: impl FnOnce() -> Result<(), String>) -> Result<Cost, String> {
        let before = self.now();
        let begin = Instant::now();
        work()?;
        let elapsed_ns = begin.elapsed().as_nanos() as u64;
        let after = self.now();
        let ticks = |part: usize| after.ticks[part].saturating_sub(before.ticks[part]);
        let (program, earlier) = (after.program, before.program);
        let program_ns = program.all_ns - earlier.all_ns;
        let user_ns = program.user_ns.saturating_sub(earlier.user_ns);
        let system_ns = program.system_ns.saturating_sub(earlier.system_ns);
        let user_part = user_ns as f64 / (user_ns + system_ns).max(1) as f64;
        let program_user_ns = (program_ns as f64 * user_part) as u64;
        Ok(Cost {
            program_user_ns,
            program_system_ns: program_ns - program_user_ns,
            engine_ns: after.engine_ns.saturating_sub(before.engine_ns),
            engine_user_ticks: ticks(0),
            engine_system_ticks: ticks(1),
            busy_ns: after.busy_ns - before.busy_ns,
            elapsed_ns,
            elapsed_in_all_ns: elapsed_ns,
        })
    }

    /// Does some work and counts what the engine does meanwhile, which takes it longer.
    ///
    /// # Errors
    /// Those of the work.
    pub fn count(&self, work: impl FnOnce() -> Result<(), String>) -> Result<Counted, String> {
        let threads = self.threads();
        let of_all = |open: &dyn Fn(u32) -> Result<Counter, _>| {
            let counters = threads.iter().map(|thread| open(*thread));
            counters.collect::<Result<Vec<Counter>, _>>()
        };
        let mut names: Vec<(&str, Option<i64>)> = vec![(ALL, None)];
        names.extend(NAMED.map(|(name, number)| (name, Some(number))));
        let calls = names.iter().map(|(name, number)| {
            let counters = of_all(&|thread| Counter::of_system_calls(thread, *number));
            counters.map(|counters| (*name, counters))
        });
        let calls: Result<Vec<_>, _> = calls.collect();
        let instructions = of_all(&Counter::of_instructions);
        let sum = |counters: &Vec<Counter>| counters.iter().map(Counter::read).sum::<u64>();
        let first = |counters: &Vec<(&str, Vec<Counter>)>| {
            counters
                .iter()
                .map(|(_, all)| sum(all))
                .collect::<Vec<u64>>()
        };
        let before = calls.as_ref().map(first).unwrap_or_default();
        let instructions_before = instructions.as_ref().map_or(0, sum);
        work()?;
        let instructions_after = instructions.as_ref().map_or(0, sum);
        let mut counted = Counted {
            calls_refused: calls
                .as_ref()
                .err()
                .map(|error| refusal("system calls", *error)),
            ..Counted::default()
        };
        for ((name, counters), before) in calls.iter().flatten().zip(before) {
            let count = sum(counters).saturating_sub(before);
            counted.calls.insert((*name).to_owned(), count);
        }
        match instructions {
            Ok(_) => counted.instructions = Some(instructions_after - instructions_before),
            Err(error) => counted.instructions_refused = Some(refusal("instructions", error)),
        }
        Ok(counted)
    }

    fn threads(&self) -> Vec<u32> {
        match self.engine {
            Engine::Thread(number) => vec![number],
            Engine::Process(number) => {
                let threads = fs::read_dir(format!("/proc/{number}/task"));
                let threads = threads.into_iter().flatten().flatten();
                let threads = threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
                threads.collect()
            }
        }
    }

    fn now(&self) -> Moment {
        let engine_ns = match self.engine {
            Engine::Process(number) => process_ns(number),
            Engine::Thread(number) => thread_ns(number),
        };
        let text = fs::read_to_string(&self.stat).unwrap_or_default();
        Moment {
            program: thread_spent(),
            engine_ns,
            busy_ns: self.busy.map_or(0, thread_ns),
            ticks: ticks_of(&text).unwrap_or_default(),
        }
    }
}

struct Moment {
    program: Spent,
    engine_ns: u64,
    busy_ns: u64,
    ticks: [u64; 2],
}

/// The ticks in user mode and in the kernel: the 14th and 15th field of `proc_pid_stat(5)`.
fn ticks_of(text: &str) -> Option<[u64; 2]> {
    // The name, which is the second, may hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    Some([fields.next()?.parse().ok()?, fields.next()?.parse().ok()?])
}

/// The line that says why something is not counted.
fn refusal(what: &str, error: rustix::io::Errno) -> String {
    use rustix::io::Errno;
    match (what, error) {
        (_, Errno::ACCESS | Errno::PERM) => {
            format!("{what}: the kernel permits that to root alone (kernel.perf_event_paranoid)")
        }
        ("instructions", Errno::NOENT | Errno::OPNOTSUPP) => {
            "instructions: the processor does not count them, or a virtual one does not show it"
                .to_owned()
        }
        (_, Errno::NODEV) => format!("{what}: the kernel has no tracepoints"),
        (_, Errno::NOSYS) => format!("{what}: the kernel has no performance events"),
        (_, error) => format!("{what}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let text = "7 (a) 1 (b) S 1 2 3 4 5 6 7 8 9 10 42 43 0 0";
        assert_eq!(ticks_of(text), Some([42, 43]));
        assert_eq!(ticks_of("7 (a) S 1"), None);
    }

    #[test]
    fn the_loops_own_part_is_taken_off_the_program_alone() {
        let cost = |program: u64, engine_ns| Cost {
            program_user_ns: program,
            engine_ns,
            elapsed_ns: 2 * program,
            ..Cost::default()
        };
        let left = cost(100, 70).without(&cost(20, 5), 2.0);
        assert_eq!(left, cost(60, 70));
        assert_eq!(left.processor_ns(), 130);
        // What took less than the loop alone took nothing.
        assert_eq!(cost(10, 0).without(&cost(20, 0), 1.0).processor_ns(), 0);
    }

    #[test]
    fn a_process_without_engine_is_told() {
        let told = Observer::of_own_engine().err().unwrap();
        assert!(told.contains("no engine"), "{told}");
    }
}
