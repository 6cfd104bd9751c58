//! The bare loop, through the same laps and watched by the same observer as the engine.

use std::path::Path;

use tidemark_live::sys::bare::{Bare, Failure, Way};
use tidemark_live::sys::thread;
use tidemark_supervisor::swap;

use super::lap::{Busy, Heap, Lap, Order, Pages, Touch};
use super::observer::{Cost, Counted, Observer};
use super::record::ONE_PROCESSOR;
use super::{PLAIN_PERCENT, PageInPlan};
use crate::workload::array::PAGE_BYTES;
use crate::workload::faults::{Beside, Phase, Work};
use crate::workload::heap;

impl Pages for Bare {
    fn word(&self, page: u32, place: usize) -> u64 {
        Bare::word(self, page, place)
    }

    fn set_word(&mut self, page: u32, place: usize, value: u64) {
        Bare::set_word(self, page, place, value);
    }
}

/// The results of all kinds of faults.
pub struct Made {
    /// One phase for each kind.
    pub phases: Vec<Phase>,
    /// The percentage of their size that pages were packed to.
    pub packed_percent: f64,
}

/// Takes faults of each kind, with this company.
pub fn measure(plan: &PageInPlan, beside: Beside, scratch: &Path) -> Result<Made, String> {
    let allowed = thread::allowed().map_err(|error| error.to_string())?;
    let here = thread::current_cpu();
    let elsewhere = (0..1024).find(|&cpu| cpu != here && allowed.is_set(cpu as usize));
    let busy = match (beside, elsewhere) {
        (Beside::Busy, None) => return Err(ONE_PROCESSOR.to_owned()),
        (Beside::Busy, Some(cpu)) => Some(Busy::start(move || {
            // Where it can't be had, the kernel finds another place.
            let _ = thread::stay_on(cpu);
        })),
        (Beside::Alone | Beside::Fork, _) => None,
    };
    thread::stay_on(here).map_err(|error| error.to_string())?;
    let made = measure_here(plan, scratch, busy.as_ref().map(Busy::number));
    thread::stay_anywhere(&allowed).map_err(|error| error.to_string())?;
    made
}

fn measure_here(plan: &PageInPlan, scratch: &Path, busy: Option<u32>) -> Result<Made, String> {
    let pages = plan.pages();
    let mut phases = vec![];
    let lap = |number: u64, touch| Lap {
        pages,
        touches: pages * plan.laps,
        order: Order::Random(plan.seed ^ (number << 32)),
        touch,
        limit: plan.limit,
    };
    let plain = pages as usize * PLAIN_PERCENT / 100;
    let own = own_costs(&lap(2, Touch::ReadAndWrite))?;
    let bare = start(Way::Compressed, pages, plain)?;
    let way_out = bare.way_out();
    phases.push(Phase {
        work: Work::WayOut,
        faults: way_out.pages,
        others: 0,
        pages: way_out.pages,
        cost: Cost {
            engine_ns: way_out.ns,
            elapsed_ns: way_out.elapsed_ns,
            ..Cost::default()
        },
        counted_faults: 0,
        counted: Counted::default(),
    });
    let random = |touch| move |number| lap(number, touch);
    phases.push(take(
        Work::PageIn,
        bare,
        &random(Touch::ReadAndWrite),
        (&own, busy),
    )?);
    let file = swap::create(Some(scratch), Some(plan.size_bytes), plan.size_bytes);
    let file = file.map_err(|refusal| refusal.to_string())?.file;
    let own = own_costs(&lap(2, Touch::Read))?;
    let bare = start(Way::Disk(file.into()), pages, plain)?;
    phases.push(take(
        Work::PageInFromDisk,
        bare,
        &random(Touch::Read),
        (&own, busy),
    )?);
    let once = Lap {
        touches: pages,
        order: Order::EachOnce,
        ..lap(0, Touch::ReadAndWrite)
    };
    let own = own_costs(&once)?;
    let soft = || start(Way::Soft, pages, 0);
    phases.push(take_twice(Work::SoftFault, &soft, once, (&own, busy))?);
    let first = Lap {
        pages: pages / 2,
        touches: pages / 2,
        order: Order::Upwards,
        touch: Touch::First,
        ..once
    };
    let own = own_costs(&first.again())?;
    let new = || start(Way::FirstTouch, pages / 2, pages as usize / 2);
    phases.push(take_twice(Work::FirstTouch, &new, first, (&own, busy))?);
    let plain_bytes = way_out.pages.max(1) * PAGE_BYTES;
    Ok(Made {
        phases,
        packed_percent: 100.0 * way_out.bytes as f64 / plain_bytes as f64,
    })
}

fn start(way: Way, pages: u32, plain: usize) -> Result<Bare, String> {
    let started = Bare::start(way, pages as usize, plain, &mut heap::fill);
    started.map_err(|failure| match failure {
        Failure::Open(error) => format!("the userfaultfd can't be had: {error:?}"),
        Failure::Call(error) => format!("a system call failed: {error}"),
        Failure::Page(stop) => format!("a page can't be moved: {stop:?}"),
        Failure::Contents => "the file can't be written".to_owned(),
    })
}

/// The cost of a lap by itself.
fn own_costs(lap: &Lap) -> Result<Cost, String> {
    let mut memory = Heap::new(lap.pages);
    match lap.touch {
        Touch::Again => (0..lap.pages).for_each(|page| memory.set_word(page, 0, 0)),
        _ => memory.fill(lap.pages),
    }
    let observer = Observer::of_thread(thread::current());
    let cost = observer.time(|| lap.follow(&mut memory))?;
    Ok(cost)
}

/// A lap to come to rest, one for the time, and one for the counts.
fn take(
    work: Work,
    mut bare: Bare,
    lap: &dyn Fn(u64) -> Lap,
    (own, busy): (&Cost, Option<u32>),
) -> Result<Phase, String> {
    let observer = Observer::of_thread(bare.engine()).beside(busy);
    lap(1).follow(&mut bare)?;
    let before = bare.faults();
    let cost = observer.time(|| lap(2).follow(&mut bare))?;
    let between = bare.faults();
    let counted = observer.count(|| lap(3).follow(&mut bare))?;
    let after = bare.faults();
    Ok(Phase {
        work,
        faults: between - before,
        others: 0,
        pages: between - before,
        cost: cost.without(own, 1.0),
        counted_faults: after - between,
        counted,
    })
}

/// Measures laps in which each page faults once: two loops, one for the time and one for the
/// counts.
fn take_twice(
    work: Work,
    start: &dyn Fn() -> Result<Bare, String>,
    lap: Lap,
    (own, busy): (&Cost, Option<u32>),
) -> Result<Phase, String> {
    let mut bare = start()?;
    let observer = Observer::of_thread(bare.engine()).beside(busy);
    let cost = observer.time(|| lap.follow(&mut bare))?;
    let faults = bare.faults();
    let mut bare = start()?;
    let observer = Observer::of_thread(bare.engine()).beside(busy);
    let counted = observer.count(|| lap.follow(&mut bare))?;
    Ok(Phase {
        work,
        faults,
        others: 0,
        pages: faults,
        cost: cost.without(own, 1.0),
        counted_faults: bare.faults(),
        counted,
    })
}
