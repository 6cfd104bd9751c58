//! The cost of the machine's primitives here, in nanoseconds a page. Numbers vary with the host;
//! they are for reading, not for checking.
//!
//! Run with `cargo run --release -p tidemark-live --example costs`.
#![forbid(unsafe_code)]

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use tidemark_core::id::{FrameId, SlotId, SpaceId, Ticket, VirtPage};
use tidemark_core::seams::machine::{Machine, Rights};
use tidemark_core::seams::pager::{Direction, Outcome};
use tidemark_live::machine::LiveMachine;
use tidemark_live::store::faults::FaultPlan;
use tidemark_live::store::{Means, SwapStore, file};
use tidemark_live::sys::memory::Mapping;
use tidemark_live::sys::uffd::{Message, Messages};
use tidemark_live::sys::{PAGE, socket, thread};

const SPACE: SpaceId = SpaceId(0);
const PAGES: u32 = 16 * 1024;
const FAULTS: u32 = 10_000;

fn main() {
    let mut machine = match LiveMachine::new(PAGES) {
        Ok(machine) => machine,
        Err(error) => {
            eprintln!("no userfaultfd that moves pages: {error:?}");
            std::process::exit(2);
        }
    };
    let region = Arc::new(Mapping::anonymous(PAGES as usize * PAGE).expect("room for the region"));
    let first = VirtPage((region.start() / PAGE) as u64);
    machine
        .register(first, u64::from(PAGES))
        .expect("an ordinary mapping");
    println!("{:28} {:>9}", "primitive", "ns a page");
    batches(&mut machine, &region, first);
    in_pool(&mut machine);
    for cpu in [Some(0), None] {
        faults(&mut machine, &region, first, cpu);
    }
    storing(&mut machine, first);
    // Unmapping a registered range waits until its message is read; nobody would read it.
    drop(machine);
}

fn report(name: &str, start: Instant, pages: u32) {
    println!(
        "{name:28} {:>9.0}",
        start.elapsed().as_nanos() as f64 / f64::from(pages)
    );
}

/// Fills, moves out and moves in, in batches of several sizes.
fn batches(machine: &mut LiveMachine, region: &Mapping, first: VirtPage) {
    for batch in [1, 16, 64] {
        let start = Instant::now();
        in_batches(batch, |frame| machine_enter(machine, first, frame));
        report(&format!("zero fill x{batch}"), start, PAGES);
        for page in 0..PAGES as usize {
            region.set(page * PAGE, 1 + page as u8 % 200);
        }
        let start = Instant::now();
        in_batches(batch, |frame| match frame {
            Some(frame) => machine.restrict(frame, Rights::None),
            None => machine.settle(),
        });
        report(&format!("move out x{batch}"), start, PAGES);
        let start = Instant::now();
        in_batches(batch, |frame| machine_enter(machine, first, frame));
        report(&format!("move in x{batch}"), start, PAGES);
        in_batches(64, |frame| match frame {
            Some(frame) => machine.restrict(frame, Rights::None),
            None => machine.settle(),
        });
        (0..PAGES).for_each(|frame| machine.retire(FrameId(frame)));
        machine.settle();
    }
}

/// Calls `step` for every frame, and with `None` after each batch.
fn in_batches(batch: u32, mut step: impl FnMut(Option<FrameId>)) {
    for start in (0..PAGES).step_by(batch as usize) {
        (start..start + batch).for_each(|frame| step(Some(FrameId(frame))));
        step(None);
    }
}

fn machine_enter(machine: &mut LiveMachine, first: VirtPage, frame: Option<FrameId>) {
    match frame {
        Some(frame) => machine.enter(SPACE, first.plus(u64::from(frame.0)), frame, Rights::Write),
        None => machine.settle(),
    }
}

/// A change made to slots in place.
fn in_pool(machine: &mut LiveMachine) {
    let all: Vec<FrameId> = (0..PAGES).map(FrameId).collect();
    let start = Instant::now();
    all.chunks(64)
        .for_each(|some| machine.prepare(some).expect("memory"));
    report("back x64", start, PAGES);
    let start = Instant::now();
    let sum = all.iter().fold(0, |sum, frame| sum ^ machine.sum(*frame));
    report("sum", start, PAGES);
    assert_eq!(sum, 0, "an even number of pages of zeros");
    let start = Instant::now();
    all.iter().for_each(|frame| machine.zero(*frame));
    report("clear", start, PAGES);
    let start = Instant::now();
    all.iter().for_each(|frame| machine.retire(*frame));
    machine.settle();
    report("drop", start, PAGES);
}

/// Faults of one thread, served by another.
fn faults(machine: &mut LiveMachine, region: &Arc<Mapping>, first: VirtPage, cpu: Option<u32>) {
    let allowed = thread::allowed().expect("the scheduler tells");
    if let Some(cpu) = cpu {
        thread::stay_on(cpu).expect("processor 0");
    }
    let touched = Arc::clone(region);
    let name = if cpu.is_some() {
        "fault, same processor"
    } else {
        "fault, anywhere"
    };
    let start = Instant::now();
    let program = std::thread::spawn(move || {
        (0..FAULTS as usize).for_each(|page| touched.set(page * PAGE, 1));
    });
    let mut messages = Messages::new();
    while !program.is_finished() {
        let fds = [machine.program().as_fd()];
        socket::wait_readable(&fds, Some(50_000_000)).expect("polling works");
        machine
            .program()
            .read(&mut messages)
            .expect("reading works");
        for message in messages.iter() {
            let Message::Fault { at, .. } = message else {
                continue;
            };
            let page = VirtPage((at / PAGE) as u64);
            machine.enter(
                SPACE,
                page,
                FrameId((page.0 - first.0) as u32),
                Rights::Write,
            );
            machine.settle();
        }
    }
    report(name, start, FAULTS);
    thread::stay_anywhere(&allowed).expect("what was allowed before");
    (0..FAULTS).for_each(|frame| machine.restrict(FrameId(frame), Rights::None));
    machine.settle();
    (0..FAULTS).for_each(|frame| machine.retire(FrameId(frame)));
    machine.settle();
}

/// Writes and reads runs of 64 pages.
fn storing(machine: &mut LiveMachine, first: VirtPage) {
    let file = file::create(&std::env::temp_dir(), u64::from(PAGES) * PAGE as u64);
    let file = file.expect("a file in the temporary directory");
    println!(
        "swap file: direct {}, reserved {}",
        file.is_direct, file.is_reserved
    );
    let store = SwapStore::new(file.fd, PAGES, Means::Best, FaultPlan::default());
    let mut store = store.expect("a store");
    let all: Vec<FrameId> = (0..PAGES).map(FrameId).collect();
    machine.prepare(&all).expect("memory");
    for frame in &all {
        let mut page = [0; PAGE];
        page[..4].copy_from_slice(&(frame.0 + 1).to_ne_bytes());
        machine.pool_mut().write(*frame, &page);
    }
    for direction in [Direction::Store, Direction::Fetch] {
        let start = Instant::now();
        for (i, frames) in all.chunks(64).enumerate() {
            let slot = SlotId(i as u32 * 64);
            store.start(Ticket(i as u64), direction, slot, frames, machine);
        }
        let mut left = all.chunks(64).count();
        while left > 0 {
            store.reap(machine).expect("the ring works");
            while let Some(reply) = store.next_reply() {
                assert_eq!(reply.outcome, Outcome::Done);
                left -= 1;
            }
            if left > 0 {
                store.wait(100_000_000);
            }
        }
        report(&format!("{direction:?} x64").to_lowercase(), start, PAGES);
    }
    // The contents are right at the program's address, too.
    machine_enter(machine, first, Some(FrameId(0)));
    machine.settle();
}
