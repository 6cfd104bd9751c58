//! The reports of an engine on itself: counters, the decision log, the log of references, and the
//! map of memory.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use tidemark_core::vm::Vm;

use super::decisions::Decisions;
use super::drawing::Drawing;
use super::gauges::{Before, Counting, Gauges};
use super::sampling::{Sampling, Windows};
use super::trouble::Trouble;
use crate::ranges::Ranges;
use crate::shared::{Cell, Counter, DrawnMap, Process, Wanted};

/// The reports.
pub struct Telemetry {
    gauges: Gauges,
    /// The counts that a forked child's tables have inherited from its parent, to be subtracted.
    before: Before,
    decisions: Option<Decisions>,
    /// Present while references are recorded.
    sampling: Option<Sampling>,
    drawing: Drawing,
    /// True if the processor time is counted of all that was done.
    is_time_counted: bool,
}

impl Telemetry {
    /// Begins. The `file` that came as the last of a grant by `control` is where references go, if
    /// there are `windows`, or decisions.
    pub fn begin(
        file: Option<OwnedFd>,
        windows: Option<Windows>,
        control: Option<BorrowedFd<'_>>,
        name: &str,
    ) -> Result<Telemetry, Trouble> {
        let (decisions, sampling) = match (file, windows, control) {
            (Some(file), Some(windows), Some(control)) => {
                (None, Some(Sampling::begin(file, control, windows, name)?))
            }
            (file, _, _) => (file.map(Decisions::new), None),
        };
        Ok(Telemetry {
            gauges: Gauges::new(),
            before: Before::default(),
            decisions,
            sampling,
            drawing: Drawing::default(),
            is_time_counted: false,
        })
    }

    /// Goes on logging in a forked child, to the file that came as the last of its grant.
    pub fn go_on_logging(
        &mut self,
        file: Option<OwnedFd>,
        control: BorrowedFd<'_>,
        name: &str,
    ) -> Result<(), Trouble> {
        let log = self.decisions.take();
        match (self.sampling.take(), file) {
            (Some(sampling), Some(file)) => {
                self.sampling = Some(sampling.resume_in_child(file, control, name)?);
            }
            (Some(sampling), None) => sampling.abandon(),
            (None, file) => self.decisions = file.map(Decisions::new),
        }
        std::mem::forget(log);
        Ok(())
    }

    /// Goes on in a forked child without a supervisor, with its own file for decisions.
    pub fn go_on_deciding(&mut self, file: Option<OwnedFd>) {
        let before = std::mem::replace(&mut self.decisions, file.map(Decisions::new));
        std::mem::forget(before);
    }

    /// Counts from zero on, in a forked child.
    pub fn restart_counts(&mut self, counting: Counting<'_>) {
        self.gauges = Gauges::new();
        self.before = Before::of(counting);
        self.is_time_counted = false;
    }

    /// Returns true if events are logged: references, or decisions.
    pub fn is_logging(&self) -> bool {
        self.sampling.is_some() || self.decisions.is_some()
    }

    /// Returns true if decisions are logged.
    pub fn has_decisions(&self) -> bool {
        self.decisions.is_some()
    }
}

// Counters.
impl Telemetry {
    /// Counts on.
    pub fn add(&mut self, counter: Counter, count: u64) {
        self.gauges.add(counter, count);
    }

    /// Sets a level.
    pub fn set(&mut self, counter: Counter, count: u64) {
        self.gauges.set(counter, count);
    }

    /// The count of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.gauges.get(counter)
    }

    /// The counts, for a part that counts itself.
    pub fn gauges_mut(&mut self) -> &mut Gauges {
        &mut self.gauges
    }

    /// Takes over what others have counted. `charged` pages are charged now.
    pub fn take_counts_over(&mut self, counting: Counting<'_>, charged: u32) {
        self.gauges.take_over(&self.before, counting);
        self.gauges.note_charged(charged, &self.before, counting);
    }

    /// Writes all counters into a record.
    pub fn show(&self, record: &Process<'_>) {
        self.gauges.show(record);
    }

    /// Appends all counters to a file.
    pub fn write_counters(&self, path: &Path, elapsed_ns: u64) {
        self.gauges.write(path, elapsed_ns);
    }

    /// Learns the processor time that the program has used, and its engine, in nanoseconds.
    pub fn note_processor_time(&mut self, program_ns: u64, own_ns: u64) {
        self.gauges.set(Counter::ProgramNs, program_ns);
        self.gauges.set(Counter::EngineProcessorNs, own_ns);
        self.is_time_counted = true;
    }

    /// Begins a turn, whose processor time is not counted yet.
    pub fn begin_turn(&mut self) {
        self.is_time_counted = false;
    }

    /// Returns true if the processor time is counted of all that was done.
    pub fn is_time_counted(&self) -> bool {
        self.is_time_counted
    }
}

// Logs, and the map.
impl Telemetry {
    /// Takes the decisions that the core has come to, if they are logged.
    pub fn take_decisions(&mut self, vm: &mut Vm) {
        if let Some(decisions) = &mut self.decisions {
            decisions.take(vm);
        }
    }

    /// Writes the decisions that wait to be written.
    pub fn flush_decisions(&mut self) {
        if let Some(decisions) = &mut self.decisions {
            decisions.flush();
        }
    }

    /// Returns true while references are recorded.
    pub fn is_recording(&self) -> bool {
        self.sampling.is_some()
    }

    /// The recording of references, if there is one.
    pub fn sampling(&self) -> Option<&Sampling> {
        self.sampling.as_ref()
    }

    /// The recording of references, if there is one, to change it.
    pub fn sampling_mut(&mut self) -> Option<&mut Sampling> {
        self.sampling.as_mut()
    }

    /// Ends the recording of references, as its log has no reader any more.
    pub fn end_recording(&mut self) {
        self.sampling = None;
    }

    /// Publishes what there is of references: something else is about to happen that comes after
    /// it.
    pub fn publish_samples(&mut self) {
        if let Some(sampling) = &mut self.sampling {
            sampling.publish_news();
        }
    }

    /// Draws a map, unless it was drawn already: see [`Drawing::draw`].
    pub fn draw(
        &mut self,
        wanted: Wanted,
        managed: &Ranges,
        look_at: impl Fn(usize, &mut Cell),
    ) -> Option<DrawnMap> {
        self.drawing.draw(wanted, managed, look_at)
    }
}
