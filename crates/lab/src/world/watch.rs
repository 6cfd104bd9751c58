//! Watching the world: samples of it while it runs, and the outcome in the end.

use tidemark_core::memory::frame::State as FrameState;
use tidemark_core::vm::Vm;

use super::engine::World;
use super::memory::Memory;
use super::outcome::{Outcome, ProcessOutcome, ProgramOutcome, Sample};
use super::process::Life;
use super::thread::{State, Thread};

impl World<'_> {
    pub(super) fn take_sample(&mut self, now: u64) {
        let mut resident = vec![0; self.scenario.programs.len()];
        for (number, process) in self.processes.iter().enumerate() {
            resident[process.program] += self.mapped_by(number);
        }
        let is_ready = |thread: &&Thread<'_>| thread.state == State::Ready;
        let ready = self.threads.iter().filter(is_ready).count() as u32;
        let sum = |part: fn(&Vm) -> u32| self.memories().map(|memory| part(&memory.vm)).sum();
        let sample = Sample {
            time_ns: now,
            frames_free: sum(|vm| vm.frames().count(FrameState::Free)),
            laundry: sum(Vm::laundry),
            external: sum(|vm| vm.frames().resident_external()),
            resident,
            queues: self.disks.iter().map(|disk| disk.depth()).collect(),
            ready,
        };
        self.samples.push(sample);
    }

    /// The outcome, if the time limit comes before all processes have ended.
    pub(super) fn cut(mut self) -> Outcome {
        self.memories().for_each(Memory::check);
        let now = self.scenario.limit_ns.unwrap_or(u64::MAX);
        for number in 0..self.processes.len() {
            if self.processes[number].life == Life::Alive {
                self.close(number, now);
                self.processes[number].outcome.was_cut = true;
            }
        }
        self.outcome(false)
    }

    /// The outcome, when everybody has ended.
    pub(super) fn finish(self) -> Outcome {
        for memory in self.memories() {
            memory.check();
            // Memory of processes goes with them; pages of files stay.
            let frames = memory.vm.frames();
            let resident = frames.count(FrameState::Resident);
            assert_eq!(
                resident,
                frames.resident_external(),
                "a program left pages behind"
            );
        }
        self.outcome(true)
    }

    fn outcome(self, is_complete: bool) -> Outcome {
        let programs = self.collect_programs();
        let start_ns = programs.iter().map(|program| program.start_ns).min();
        let end_ns = programs.iter().map(|program| program.end_ns).max();
        let elapsed_ns = end_ns.unwrap_or(0) - start_ns.unwrap_or(0);
        let capacity_ns = elapsed_ns * self.processors.len() as u64;
        let tally = &self.tally;
        let sums = self.sum_memories();
        Outcome {
            system: self.system.name,
            policy: self.memory.vm.policy().describe().name.to_owned(),
            load: match self.scenario.is_divided {
                true => self.scenario.load_of_tasks().to_owned(),
                false => self.memory.vm.load_control().describe().name.to_owned(),
            },
            is_complete,
            elapsed_ns,
            user_ns: tally.user_ns,
            system_ns: tally.system_ns,
            idle_ns: capacity_ns.saturating_sub(tally.user_ns + tally.system_ns),
            policy_ns: tally.policy_ns,
            counters: sums.counters,
            swap_ins: tally.swap_ins,
            swap_outs: tally.swap_outs,
            swap_pages_read: tally.swap_pages_read,
            swap_pages_written: tally.swap_pages_written,
            is_compressing: self.scenario.compressed.is_some(),
            compressed: sums.compressed,
            compressed_memory_peak: sums.compressed_peak,
            file_ins: tally.file_ins,
            file_outs: tally.file_outs,
            messages: tally.messages,
            switches: tally.switches,
            mappings: tally.mappings,
            reverse_map_bytes_max: sums.reverse_map_bytes_max,
            mappings_max: sums.mappings_max,
            table_pages_max: sums.table_pages_max,
            frames_used_max: tally.frames_used_max,
            irregular: tally.irregular,
            bytes_copied: tally.bytes_copied,
            programs,
            disks: self.disks.iter().map(|disk| disk.usage().clone()).collect(),
            samples: self.samples.taken,
            decisions: self.decisions,
            suspensions: self.suspensions,
        }
    }

    fn collect_programs(&self) -> Vec<ProgramOutcome> {
        let numbered = self.scenario.programs.iter().enumerate();
        let programs = numbered.map(|(number, program)| {
            let own = self.processes.iter().filter(|p| p.program == number);
            let born = own.filter(|process| process.life == Life::Ended);
            let processes: Vec<ProcessOutcome> = born.map(|p| p.outcome.clone()).collect();
            ProgramOutcome {
                name: program.name.clone(),
                start_ns: processes.iter().map(|p| p.start_ns).min().unwrap_or(0),
                end_ns: processes.iter().map(|p| p.end_ns).max().unwrap_or(0),
                processes,
            }
        });
        programs.collect()
    }
}
