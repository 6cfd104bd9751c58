//! The map of a program's memory: the events of a trace as an address space for each process.

use std::collections::HashMap;

use tidemark_trace::regions::{self, Regions};
use tidemark_trace::{Event, LifeEvent};

/// The owner of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The process, as the trace numbers it.
    pub process: u32,
    /// The number of the program, among those that the process ran, counted from 0.
    pub program: u32,
    /// The label, as a number of [`Places`]; `None` where nothing is known to be mapped.
    pub label: Option<u32>,
}

/// The address spaces of all processes.
#[derive(Default)]
pub struct Places {
    spaces: Vec<Space>,
    space_of_pid: HashMap<u32, u32>,
    labels: Vec<String>,
    label_numbers: HashMap<String, u32>,
    generation: u64,
}

/// One address space.
#[derive(Clone, Default)]
struct Space {
    regions: Regions,
    programs: Vec<String>,
}

/// The label of memory without a name.
const ANONYMOUS: &str = "anonymous";

impl Places {
    /// A number that changes whenever a page may belong to another place than before.
    pub fn generation(&self) -> u64 {
        // Entries of an empty table have 0.
        self.generation + 1
    }

    /// Makes whatever was remembered under the present generation stale.
    pub fn forget_recent(&mut self) {
        self.generation += 1;
    }

    /// The place of a page.
    pub fn place(&mut self, process: u32, page: u64) -> Place {
        let space = self.space(process);
        let program = space.programs.len().saturating_sub(1) as u32;
        let name = space.regions.find(page).map(|region| region.name.clone());
        Place {
            process,
            program,
            label: name.map(|name| self.label(&name)),
        }
    }

    /// The mappings of a process.
    pub fn regions(&mut self, process: u32) -> &Regions {
        &self.space(process).regions
    }

    /// The program and the label of a place.
    pub fn names(&self, place: Place) -> (&str, Option<&str>) {
        let space = &self.spaces[place.process as usize];
        let program = space.programs.get(place.program as usize);
        let label = place
            .label
            .map(|label| self.labels[label as usize].as_str());
        (program.map_or("", String::as_str), label)
    }

    /// Follows an event. The answer is the name of a mark.
    pub fn happen(&mut self, process: u32, event: &Event) -> Option<String> {
        match event {
            Event::Life(LifeEvent::Start {
                pid,
                parent,
                program,
            }) => self.start(process, *pid, *parent, program),
            Event::Life(LifeEvent::Exec { program }) => {
                self.space(process).programs.push(program.clone())
            }
            Event::Mark { name } => return Some(name.clone()),
            Event::Mapping(_)
            | Event::Life(_)
            | Event::File(_)
            | Event::Windows { .. }
            | Event::Visit
            | Event::Size { .. } => {}
        }
        if self.space(process).regions.apply(event) {
            self.generation += 1;
        }
        None
    }

    fn space(&mut self, process: u32) -> &mut Space {
        let process = process as usize;
        if process >= self.spaces.len() {
            self.spaces.resize_with(process + 1, Space::default);
        }
        &mut self.spaces[process]
    }

    /// A process begins; what its parent has mapped, it has.
    fn start(&mut self, process: u32, pid: u32, parent: u32, program: &str) {
        let inherited = self.space_of_pid.get(&parent).copied();
        let inherited = inherited.map(|parent| self.space(parent).regions.clone());
        let space = self.space(process);
        if let Some(regions) = inherited
            && space.regions.count() == 0
        {
            space.regions = regions;
        }
        space.programs.push(program.to_owned());
        self.space_of_pid.insert(pid, process);
        self.generation += 1;
    }

    fn label(&mut self, name: &str) -> u32 {
        let name = match name {
            regions::ANONYMOUS => ANONYMOUS,
            name => name,
        };
        if let Some(number) = self.label_numbers.get(name) {
            return *number;
        }
        self.labels.push(name.to_owned());
        let number = (self.labels.len() - 1) as u32;
        self.label_numbers.insert(name.to_owned(), number);
        number
    }
}
