//! Scenarios of the steward: prose over a small table of records.

use tidemark_core::time::Time;
use tidemark_partition::{Divider, FIRST_FRAMES, FLOOR_FRAMES, INTERVAL_NS};
use tidemark_tasks::{Action, Counts, Reading, Record, Records, Remains, Stage, Steward, TaskId};

/// A table of records whose engines do at once what they are told.
#[derive(Default)]
struct Table {
    total: u64,
    readings: Vec<Reading>,
    suspended: Vec<Record>,
    children: Vec<Record>,
    unassigned: u64,
}

impl Table {
    fn of(total: u64) -> Table {
        Table {
            total,
            readings: vec![Reading::default(); 8],
            ..Table::default()
        }
    }

    fn at(&mut self, record: Record) -> &mut Reading {
        &mut self.readings[record.0 as usize]
    }
}

impl Records for Table {
    fn frames_total(&self) -> u64 {
        self.total
    }

    fn frames_resident(&self) -> u64 {
        self.readings.iter().map(|it| it.resident).sum()
    }

    fn hold_unassigned(&mut self) {
        self.unassigned = 0;
    }

    fn release_unassigned(&mut self, frames: u64) {
        self.unassigned = frames;
    }

    fn read(&self, record: Record) -> Reading {
        self.readings[record.0 as usize]
    }

    fn change_budget(&mut self, record: Record, from: u64, to: u64) -> bool {
        assert_eq!(self.at(record).budget, from);
        let resident = self.at(record).resident.min(to);
        let reading = self.at(record);
        (reading.budget, reading.understood, reading.resident) = (to, to, resident);
        true
    }

    fn forget_asking(&mut self, record: Record) {
        self.at(record).asked = 0;
    }

    fn suspend(&mut self, record: Record, _: u64) {
        self.suspended.push(record);
    }

    fn resume(&mut self, record: Record) {
        self.suspended.retain(|&it| it != record);
    }

    fn find_children(&mut self) -> Vec<Record> {
        self.children.clone()
    }

    fn counts(&self, _: Record, _: bool) -> Counts {
        Counts::default()
    }

    fn size(&self, record: Record) -> u64 {
        self.readings[record.0 as usize].resident
    }
}

/// Admits those that wait, in the records from 0 on, and answers what each may use.
fn admit(steward: &mut Steward, table: &mut Table) -> Vec<(TaskId, u64)> {
    let mut admitted = vec![];
    while let Some(action) = steward.poll_action() {
        if let Action::Admit { task, frames } = action {
            let record = Record(steward.len() as u32 - 1);
            *table.at(record) = Reading {
                budget: frames,
                understood: frames,
                ..Reading::default()
            };
            steward.handle_admitted(task, record);
            admitted.push((task, frames));
        }
    }
    admitted
}

fn begin(total: u64) -> (Steward, Table, TaskId) {
    let mut table = Table::of(total);
    let mut steward = Steward::new(Divider::default(), Time(INTERVAL_NS));
    let first = steward.handle_arrival(Time(0), None);
    steward.handle_change(Time(0), &mut table);
    assert_eq!(admit(&mut steward, &mut table), [(first, total)]);
    (steward, table, first)
}

#[test]
fn one_that_comes_later_begins_with_no_more_than_most_programs_use() {
    let (mut steward, mut table, _) = begin(40_000);
    let second = steward.handle_arrival(Time(1), None);
    // What the first has not used is taken from it, and is there for the second.
    steward.handle_change(Time(1), &mut table);
    let mut admitted = admit(&mut steward, &mut table);
    if admitted.is_empty() {
        steward.handle_change(Time(2), &mut table);
        admitted = admit(&mut steward, &mut table);
    }
    assert_eq!(admitted, [(second, FIRST_FRAMES)]);
    let given: u64 = table.readings.iter().map(|it| it.budget).sum();
    assert!(given + table.unassigned <= 40_000);
}

#[test]
fn a_forked_child_holds_what_its_parent_has_left_it_from_then_on() {
    let (mut steward, mut table, _) = begin(1024);
    let child = Record(1);
    // Its parent looks for frames: as long as it has none, they are not looked for here.
    table.children.push(child);
    steward.handle_change(Time(1), &mut table);
    assert_eq!(
        (table.at(Record(0)).budget, table.at(child).budget),
        (1024, 0)
    );
    // It has been left something, and has said nothing yet: that is taken from nobody.
    table.at(Record(0)).budget = 512;
    *table.at(child) = Reading {
        budget: 512,
        understood: 512,
        resident: 500,
        ..Reading::default()
    };
    table.at(Record(0)).asked = 4096;
    steward.handle_change(Time(2), &mut table);
    assert_eq!(
        (table.at(Record(0)).budget, table.at(child).budget),
        (512, 512)
    );
    // It says hello, and is admitted with what it has.
    let task = steward.handle_arrival(Time(3), Some(child));
    steward.handle_change(Time(3), &mut table);
    let mut actions = std::iter::from_fn(|| steward.poll_action());
    assert!(actions.any(|it| it == Action::Admit { task, frames: 512 }));
}

#[test]
fn a_task_that_is_suspended_has_what_it_still_holds_and_is_owed_what_it_had() {
    let (mut steward, mut table, first) = begin(2000);
    let record = Record(0);
    (table.at(record).resident, table.at(record).asked) = (1500, 4000);
    steward.handle_request(Time(1), &mut table, first, true);
    assert_eq!(table.suspended, [record]);
    assert_eq!((table.at(record).budget, table.at(record).asked), (1500, 0));
    assert_eq!(steward.stage(first), Some(Stage::Suspended));
    table.at(record).resident = 0;
    steward.handle_change(Time(2), &mut table);
    assert!(table.at(record).budget < FLOOR_FRAMES);
    steward.handle_request(Time(3), &mut table, first, false);
    assert!(table.suspended.is_empty());
    assert!(table.at(record).budget >= 1500 + FLOOR_FRAMES);
}

#[test]
fn what_one_leaves_behind_is_others_at_once() {
    let (mut steward, mut table, first) = begin(1000);
    table.at(Record(0)).resident = 1000;
    let second = steward.handle_arrival(Time(1), None);
    steward.handle_gone(first, Remains::default());
    *table.at(Record(0)) = Reading::default();
    steward.handle_change(Time(1), &mut table);
    assert_eq!(admit(&mut steward, &mut table), [(second, 1000)]);
}
