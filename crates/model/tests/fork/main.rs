//! Forks, explored: a small model of the kernel, of the engine of `tidemark-live`, of two threads
//! that change their memory and one that forks. Every order in which their steps can follow each
//! other is tried, and after each the law must hold: a read gives what was last written.
//!
//! [`kernel`] is one side, [`engine`] the other, [`world`] has the steps and the law. Each rule of
//! the engine is left out once ([`Flaw`]): the exploration must then find a fault.
//!
//! Left out are rights, files, pages that MADV_FREE empties later, and how pages leave: in one
//! step.
#![forbid(unsafe_code)]

mod engine;
mod kernel;
mod world;

use std::collections::HashMap;
use std::rc::Rc;

use engine::Flaw;
use kernel::{Content, Page};
use world::{Case, Op, Order, State, Step};

/// The page of each thread, and one where nothing is at first.
const OWN: [Page; 3] = [0, 1, 2];
const VACANT: Page = 3;

/// Tries every order. An error is what breaks the law, and the steps to there.
fn explore(case: &Case) -> Result<usize, String> {
    let start = Rc::new(State::new(&case.mapped));
    let mut numbers = HashMap::from([(start.clone(), 0)]);
    // From where, and by which step, each state was found first.
    let mut found: Vec<Option<(usize, Step)>> = vec![None];
    let (mut edges, mut ends) = (Vec::new(), Vec::new());
    let mut open = vec![(start, 0)];
    while let Some((state, number)) = open.pop() {
        let mut is_end = true;
        for step in state.steps() {
            let mut next = State::clone(&state);
            let fail = |error| tell(&found, number, Some(step), error, case);
            if !next.take(step, case).map_err(fail)? {
                continue;
            }
            is_end = false;
            let next = Rc::new(next);
            let to = *numbers.entry(next.clone()).or_insert_with(|| {
                found.push(Some((number, step)));
                open.push((next, found.len() - 1));
                found.len() - 1
            });
            edges.push((to, number));
        }
        if is_end {
            let fail = |error| tell(&found, number, None, error, case);
            state.check_end().map_err(fail)?;
            ends.push(number);
        }
    }
    match find_endless(edges, ends, found.len()) {
        None => Ok(found.len()),
        Some(number) => Err(tell(&found, number, None, "no end from here".into(), case)),
    }
}

/// A state from which no end can be reached.
fn find_endless(mut edges: Vec<(usize, usize)>, ends: Vec<usize>, count: usize) -> Option<usize> {
    edges.sort_unstable();
    let mut reaches_end = vec![false; count];
    let mut open = ends;
    while let Some(to) = open.pop() {
        if !std::mem::replace(&mut reaches_end[to], true) {
            let first = edges.partition_point(|edge| edge.0 < to);
            let before = edges[first..].iter().take_while(|edge| edge.0 == to);
            open.extend(before.map(|edge| edge.1));
        }
    }
    reaches_end.iter().position(|reaches| !reaches)
}

fn tell(
    found: &[Option<(usize, Step)>],
    mut number: usize,
    last: Option<Step>,
    error: String,
    case: &Case,
) -> String {
    let mut steps: Vec<Step> = last.into_iter().collect();
    while let Some((before, step)) = found[number] {
        steps.push(step);
        number = before;
    }
    steps.reverse();
    format!("{error}, in {case:?}, after {steps:?}")
}

/// Every script of so many operations for a thread.
fn scripts(thread: usize, length: usize) -> Vec<Vec<Op>> {
    let mut scripts = vec![(vec![], vec![OWN[thread]])];
    for index in 0..length {
        let content = (16 * (thread + 1) + index) as Content;
        let extend = |(script, held): (Vec<Op>, Vec<Page>)| {
            let next = operations(&held, content).into_iter();
            next.map(move |(op, held)| ([script.clone(), vec![op]].concat(), held))
        };
        scripts = scripts.into_iter().flat_map(extend).collect();
    }
    scripts.into_iter().map(|(script, _)| script).collect()
}

/// The operations of a thread that has these pages, and what it has then.
fn operations(held: &[Page], content: Content) -> Vec<(Op, Vec<Page>)> {
    let free = [OWN[0], OWN[1], VACANT]
        .into_iter()
        .filter(|page| !held.contains(page));
    let mut found: Vec<_> = free
        .clone()
        .map(|to| (Op::Map(to), [held, &[to]].concat()))
        .collect();
    for &page in held {
        let rest: Vec<Page> = held.iter().copied().filter(|held| *held != page).collect();
        let same = [Op::Read(page), Op::Write(page, content), Op::Discard(page)];
        found.extend(same.map(|op| (op, held.to_vec())));
        found.push((Op::Unmap(page), rest.clone()));
        found.extend(
            free.clone()
                .map(|to| (Op::Move(page, to), [&rest[..], &[to]].concat())),
        );
    }
    found
}

/// The scripts that are tried.
#[derive(Clone, Copy, Debug)]
struct Scope {
    /// The numbers of operations of the two threads.
    lengths: [usize; 2],
    forks: usize,
    /// The thread that forks needs a page on its way.
    has_stack: bool,
    order: Order,
}

impl Scope {
    const fn new(lengths: [usize; 2], forks: usize, has_stack: bool, order: Order) -> Scope {
        Scope {
            lengths,
            forks,
            has_stack,
            order,
        }
    }

    /// All pairs of scripts.
    fn cases(self, flaw: Option<Flaw>) -> impl Iterator<Item = Case> {
        let [first, second] = self.lengths;
        let pairs = scripts(0, first).into_iter().flat_map(move |first| {
            let second = scripts(1, second).into_iter();
            second.map(move |second| (first.clone(), second))
        });
        let fork = Op::Fork(self.has_stack.then_some((OWN[2], 77)));
        let mapped = &OWN[..2 + usize::from(self.has_stack)];
        pairs.map(move |(first, second)| Case {
            mapped: mapped.to_vec(),
            scripts: [first, second, vec![fork; self.forks]],
            order: self.order,
            flaw,
        })
    }
}

const SCOPES: [Scope; 6] = [
    Scope::new([1, 1], 1, false, Order::Together),
    Scope::new([1, 1], 1, false, Order::PagesFirst),
    Scope::new([1, 1], 1, false, Order::EngineFirst),
    Scope::new([1, 1], 1, true, Order::Together),
    Scope::new([1, 1], 2, false, Order::Together),
    Scope::new([2, 1], 1, false, Order::Together),
];

#[test]
fn every_order_of_a_fork_and_two_threads_keeps_contents() {
    for scope in SCOPES {
        let start = std::time::Instant::now();
        let explored = scope.cases(None).map(|case| explore(&case));
        let states = explored.map(|states| states.unwrap_or_else(|error| panic!("{error}")));
        println!(
            "{scope:?}: {} states, {:?}",
            states.sum::<usize>(),
            start.elapsed()
        );
    }
}

#[test]
fn each_rule_left_out_breaks_contents() {
    for flaw in Flaw::ALL {
        let cases = SCOPES.iter().flat_map(|scope| scope.cases(Some(flaw)));
        let error = cases.filter_map(|case| explore(&case).err()).next();
        let error = error.unwrap_or_else(|| panic!("without one rule, {flaw:?}, all is well"));
        println!("{flaw:?}: {error}");
    }
}
