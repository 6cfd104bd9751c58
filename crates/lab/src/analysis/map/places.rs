//! The map of a program's memory: the events of a trace as an address space for each process.

use std::collections::{BTreeMap, HashMap};

use tidemark_trace::Event;
use tidemark_trace::regions::name_of;

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
    /// The end and the label of each mapping, by its first page. They do not overlap.
    mappings: BTreeMap<u64, (u64, u32)>,
    programs: Vec<String>,
}

const ANONYMOUS: &str = "anonymous";
const HEAP: &str = "[heap]";
const STACK: &str = "[stack]";

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
        let before = space.mappings.range(..=page).next_back();
        let label = before.and_then(|(_, (end, label))| (page < *end).then_some(*label));
        Place {
            process,
            program: space.programs.len().saturating_sub(1) as u32,
            label,
        }
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
            Event::Start {
                pid,
                parent,
                program,
            } => self.start(process, *pid, *parent, program),
            Event::Map {
                start, pages, file, ..
            } => self.map(process, *start, *pages, file),
            Event::Unmap { start, pages } => self.unmap(process, *start, *pages),
            Event::Remap {
                from,
                from_pages,
                to,
                to_pages,
            } => self.remap(process, (*from, *from_pages), (*to, *to_pages)),
            Event::Break { end } => self.set_break(process, *end),
            Event::StackGrowth { start, pages } => self.map(process, *start, *pages, STACK),
            Event::Exec { program } => {
                let space = self.space(process);
                space.mappings.clear();
                space.programs.push(program.clone());
                self.generation += 1;
            }
            Event::Mark { name } => return Some(name.clone()),
            Event::Protect { .. }
            | Event::ThreadStart { .. }
            | Event::ThreadExit { .. }
            | Event::ThreadSwitch { .. }
            | Event::Fork { .. }
            | Event::Wait { .. }
            | Event::Exit { .. }
            | Event::Killed { .. }
            | Event::FileRead { .. }
            | Event::FileWrite { .. }
            | Event::FileCut { .. }
            | Event::Windows { .. } => {}
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
        let inherited = inherited.map(|parent| self.space(parent).mappings.clone());
        let space = self.space(process);
        if let Some(mappings) = inherited
            && space.mappings.is_empty()
        {
            space.mappings = mappings;
        }
        space.programs.push(program.to_owned());
        self.space_of_pid.insert(pid, process);
        self.generation += 1;
    }

    fn map(&mut self, process: u32, start: u64, pages: u64, file: &str) {
        let label = self.label(name_of(file, ANONYMOUS));
        self.unmap(process, start, pages);
        if pages > 0 {
            let end = start.saturating_add(pages);
            self.space(process).mappings.insert(start, (end, label));
        }
    }

    fn unmap(&mut self, process: u32, start: u64, pages: u64) {
        self.generation += 1;
        let end = start.saturating_add(pages);
        let mappings = &mut self.space(process).mappings;
        let overlapping: Vec<u64> = mappings
            .range(..end)
            .rev()
            .take_while(|(_, (mapping_end, _))| *mapping_end > start)
            .map(|(mapping_start, _)| *mapping_start)
            .collect();
        for mapping_start in overlapping {
            let (mapping_end, label) = mappings[&mapping_start];
            mappings.remove(&mapping_start);
            if mapping_start < start {
                mappings.insert(mapping_start, (start, label));
            }
            if mapping_end > end {
                mappings.insert(end, (mapping_end, label));
            }
        }
    }

    fn remap(&mut self, process: u32, from: (u64, u64), to: (u64, u64)) {
        let label = self.place(process, from.0).label;
        let name = label.map_or(ANONYMOUS, |label| self.labels[label as usize].as_str());
        let name = name.to_owned();
        self.unmap(process, from.0, from.1);
        self.map(process, to.0, to.1, &name);
    }

    /// The heap ends elsewhere: its mapping grows or shrinks.
    fn set_break(&mut self, process: u32, end: u64) {
        let label = self.label(HEAP);
        let heap = self.space(process).mappings.iter().rev();
        let heap = heap
            .filter(|(_, (_, known))| *known == label)
            .map(|(start, (until, _))| (*start, *until))
            .next();
        match heap {
            Some((start, until)) if end > until => self.map(process, start, end - start, HEAP),
            Some((start, until)) if end > start => self.unmap(process, end, until - end),
            Some(_) | None => {}
        }
    }

    fn label(&mut self, name: &str) -> u32 {
        if let Some(number) = self.label_numbers.get(name) {
            return *number;
        }
        self.labels.push(name.to_owned());
        let number = (self.labels.len() - 1) as u32;
        self.label_numbers.insert(name.to_owned(), number);
        number
    }
}
