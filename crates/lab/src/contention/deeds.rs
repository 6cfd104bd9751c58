//! The steps of a system for each request: which locks it takes, and what it does under them.

use super::work::Deed;
use super::{Charges, Setup};

/// A lock, by what it protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    /// The free pages.
    Free,
    /// The page queues.
    Queue,
    /// A part of the windows.
    Windows(u32),
    /// The pages of a file.
    File(u32),
}

/// A step of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The program computes.
    Compute(u64),
    /// The system works.
    Work(u64),
    /// The system counts, among the counters all processors share if they do.
    Count,
    /// A lock is taken, as soon as it can be.
    Take(Lock),
    /// A lock is given back.
    Give(Lock),
    /// A page is taken from the free ones for a program; filled with zeros where it is not yet.
    Fill,
    /// A page goes back to the free ones.
    Return,
    /// A window is looked for, its lock being held.
    Find(u32),
    /// An idle processor takes the lock of the free pages, if it is free and there is a page to
    /// fill with zeros.
    Try,
    /// An idle processor has filled a page and put it back.
    Filled,
    /// The next of the remaining pages is given back.
    FreeMore(u32),
}

/// A processor's own small stocks, where it has any.
#[derive(Clone, Copy, Default)]
pub(super) struct Stock {
    /// Free pages it has taken.
    taken: u32,
    /// Pages it has still to put back.
    to_return: u32,
    /// Pages it has still to move between queues.
    to_move: u32,
}

/// Writes down what is done for `deed`, in order.
pub(super) fn plan(
    deed: Deed,
    stock: &mut Stock,
    setup: &Setup,
    charges: &Charges,
    actions: &mut Vec<Action>,
) {
    let costs = &charges.costs;
    match deed {
        Deed::Compute(ns) => actions.push(Action::Compute(ns)),
        Deed::Fill | Deed::Copy => {
            let fault_ns = match setup.has_own_queues {
                true => charges.own_fault_ns,
                false => costs.fault_ns,
            };
            actions.extend([Action::Work(fault_ns), Action::Count]);
            take_page(stock, setup, charges, actions);
            actions.push(match deed {
                Deed::Copy => Action::Work(costs.copy_ns),
                _ => Action::Fill,
            });
            enqueue_own(stock, setup, charges, actions);
            actions.push(Action::Work(costs.page_table_ns));
        }
        Deed::Map { file, pages } => {
            let lock = Lock::File(file);
            let each_ns = charges.search_ns + costs.page_table_ns;
            actions.extend([Action::Work(costs.fault_ns), Action::Count]);
            actions.push(Action::Take(lock));
            actions.push(Action::Work(each_ns * u64::from(pages)));
            enqueue(pages, stock, setup, charges, actions);
            actions.push(Action::Give(lock));
        }
        Deed::Read(piece) => {
            let lock = Lock::Windows(piece % setup.window_parts);
            actions.extend([Action::Count, Action::Take(lock)]);
            actions.extend([Action::Find(piece), Action::Give(lock)]);
            // A window is two pages.
            actions.push(Action::Work(2 * costs.copy_ns));
            under(lock, 1, charges, actions);
        }
        Deed::Free(pages) => actions.push(Action::FreeMore(pages)),
    }
}

/// Gives back one page of a program, whatever comes after it.
pub(super) fn free_page(
    stock: &mut Stock,
    setup: &Setup,
    charges: &Charges,
    actions: &mut Vec<Action>,
) {
    enqueue_own(stock, setup, charges, actions);
    if setup.has_own_queues {
        actions.extend([Action::Work(charges.list_ns), Action::Return]);
        return;
    }
    stock.to_return += 1;
    if stock.to_return < setup.batch {
        return;
    }
    let pages = std::mem::take(&mut stock.to_return);
    under(Lock::Free, pages, charges, actions);
    let last = actions.pop();
    actions.extend((0..pages).map(|_| Action::Return));
    actions.extend(last);
}

/// Plans the step of an idle processor once it has the lock of the free pages.
pub(super) fn plan_zeroing(charges: &Charges, actions: &mut Vec<Action>) {
    let list = Action::Work(charges.list_ns);
    actions.extend([list, Action::Count, Action::Give(Lock::Free)]);
    actions.push(Action::Work(charges.costs.zero_ns));
    under(Lock::Free, 1, charges, actions);
    actions.extend([Action::Filled, Action::Try]);
}

fn take_page(stock: &mut Stock, setup: &Setup, charges: &Charges, actions: &mut Vec<Action>) {
    if setup.has_own_queues {
        actions.push(Action::Work(charges.list_ns));
        return;
    }
    if stock.taken == 0 {
        under(Lock::Free, setup.batch, charges, actions);
        stock.taken = setup.batch;
    }
    stock.taken -= 1;
}

/// Moves a page of a program's own between queues.
fn enqueue_own(stock: &mut Stock, setup: &Setup, charges: &Charges, actions: &mut Vec<Action>) {
    match setup.has_own_queues {
        true => actions.push(Action::Work(charges.list_ns)),
        false => enqueue(1, stock, setup, charges, actions),
    }
}

/// Moves pages between queues, or notes that they are to be moved.
fn enqueue(
    pages: u32,
    stock: &mut Stock,
    setup: &Setup,
    charges: &Charges,
    actions: &mut Vec<Action>,
) {
    stock.to_move += pages;
    if stock.to_move >= setup.batch {
        let pages = std::mem::take(&mut stock.to_move);
        under(Lock::Queue, pages, charges, actions);
    }
}

/// Moves `pages` under a lock, and counts them.
fn under(lock: Lock, pages: u32, charges: &Charges, actions: &mut Vec<Action>) {
    actions.extend([
        Action::Take(lock),
        Action::Work(charges.list_ns * u64::from(pages)),
        Action::Count,
        Action::Give(lock),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::tests::{CHARGES, SETUP};

    fn takes(deeds: &[Deed], batch: u32) -> Vec<Lock> {
        let (mut stock, mut actions) = (Stock::default(), vec![]);
        let setup = Setup { batch, ..SETUP };
        for &deed in deeds {
            plan(deed, &mut stock, &setup, &CHARGES, &mut actions);
        }
        let takes = actions.iter().filter_map(|action| match action {
            Action::Take(lock) => Some(*lock),
            _ => None,
        });
        takes.collect()
    }

    #[test]
    fn a_first_touch_takes_both_locks_and_a_batch_spares_them() {
        assert_eq!(takes(&[Deed::Fill], 1), [Lock::Free, Lock::Queue]);
        let four = [Deed::Fill, Deed::Copy, Deed::Fill, Deed::Fill];
        assert_eq!(takes(&four, 4), [Lock::Free, Lock::Queue]);
        assert_eq!(takes(&four, 1).len(), 8);
    }

    #[test]
    fn a_file_s_pages_are_queued_under_its_lock() {
        let map = Deed::Map { file: 3, pages: 8 };
        assert_eq!(takes(&[map], 1), [Lock::File(3), Lock::Queue]);
    }

    #[test]
    fn queues_of_its_own_need_no_lock_but_a_file_s_pages_do() {
        let (mut stock, mut actions) = (Stock::default(), vec![]);
        let setup = Setup {
            has_own_queues: true,
            ..SETUP
        };
        let deeds = [Deed::Fill, Deed::Copy, Deed::Map { file: 3, pages: 8 }];
        for deed in deeds {
            plan(deed, &mut stock, &setup, &CHARGES, &mut actions);
        }
        free_page(&mut stock, &setup, &CHARGES, &mut actions);
        let takes = actions
            .iter()
            .filter(|action| matches!(action, Action::Take(_)));
        let expected = [Action::Take(Lock::File(3)), Action::Take(Lock::Queue)];
        assert!(takes.eq(&expected));
        let faults = actions
            .iter()
            .filter(|&&act| act == Action::Work(CHARGES.own_fault_ns));
        assert_eq!(faults.count(), 2);
    }

    #[test]
    fn pages_go_back_in_batches() {
        let (mut stock, mut actions) = (Stock::default(), vec![]);
        let setup = Setup { batch: 2, ..SETUP };
        for _ in 0..4 {
            free_page(&mut stock, &setup, &CHARGES, &mut actions);
        }
        let count = |wanted: Action| actions.iter().filter(|action| **action == wanted).count();
        assert_eq!(count(Action::Take(Lock::Free)), 2);
        assert_eq!(count(Action::Return), 4);
    }
}
