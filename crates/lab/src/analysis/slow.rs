//! The definitions of the variable-space policies, tick by tick: slow, and obviously right.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::reference_string::{ReferenceString, Touch};
use super::references::Departure;
use super::residence::{Arrival, Totals, Watcher};

/// A string that owns its columns.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    pub(super) pages: Vec<u32>,
    pub(super) times: Vec<u64>,
    pub(super) page_count: u32,
    pub(super) touch: Touch,
    pub(super) departures: Vec<Departure>,
}

impl Owned {
    pub(super) fn string(&self) -> ReferenceString<'_> {
        ReferenceString::new(&self.pages, self.page_count)
            .at(&self.times)
            .lasting(self.touch)
            .departing(&self.departures)
    }

    /// First and last tick of each use.
    fn uses(&self) -> Vec<(u32, u64, u64)> {
        let time = |i: usize| self.times.get(i).copied().unwrap_or(i as u64);
        let last = |i: usize| match self.touch {
            Touch::UntilNext if i + 1 < self.pages.len() => {
                time(i).max(time(i + 1).saturating_sub(1))
            }
            _ => time(i),
        };
        let place = |(i, &page)| (page, time(i), last(i));
        self.pages.iter().enumerate().map(place).collect()
    }
}

/// Strings of every kind: with and without times, with several uses in a tick and long silences.
pub(super) fn strings() -> impl Strategy<Value = Owned> {
    let pages = prop::collection::vec(0u32..8, 0..60);
    let gaps = prop::collection::vec(prop_oneof![0u64..3, 0u64..3, 0u64..40], 60);
    let touch = prop_oneof![Just(Touch::Momentary), Just(Touch::UntilNext)];
    (pages, gaps, touch, 0u64..5, any::<bool>()).prop_map(
        |(pages, gaps, touch, start, has_times)| {
            let mut time = start;
            let stamp = |gap: &u64| {
                time += gap;
                time
            };
            let times = match has_times {
                true => gaps[..pages.len()].iter().map(stamp).collect(),
                false => Vec::new(),
            };
            Owned {
                pages,
                times,
                page_count: 8,
                touch,
                departures: Vec::new(),
            }
        },
    )
}

/// Strings as [`strings`], some of whose pages depart after their last uses.
pub(super) fn departing_strings() -> impl Strategy<Value = Owned> {
    let some = prop::collection::vec((any::<u8>(), 0usize..20), 60);
    (strings(), 1usize..20, some).prop_map(|(mut owned, part, some)| {
        owned.page_count = 20;
        for (place, page) in owned.pages.iter_mut().enumerate() {
            *page += (place / part * 3).min(12) as u32;
        }
        let mut gone: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for page in 0..owned.page_count {
            let last = owned.pages.iter().rposition(|&other| other == page);
            let (chance, wait) = some[page as usize];
            if let (Some(last), true) = (last, chance < 180) {
                let before = last + 1 + wait * wait / 20;
                gone.entry(before as u64).or_default().push(page);
            }
        }
        let gone = gone.into_iter();
        owned.departures = gone
            .map(|(before, pages)| Departure { before, pages })
            .collect();
        owned
    })
}

/// The working set, damped if `age` says so.
pub(super) fn working_set(owned: &Owned, window: u64, age: Option<u64>) -> Totals {
    let uses = owned.uses();
    let mut totals = Totals::default();
    let mut resident: BTreeMap<u32, (u64, usize)> = BTreeMap::new();
    let mut seen: Vec<u32> = Vec::new();
    let mut place = 0;
    let mut departures = owned.departures.iter().peekable();
    for tick in owned.string().start()..owned.string().end() {
        let mut late = Vec::new();
        // What still lasts from before.
        if place > 0 && uses[place - 1].2 >= tick {
            resident.insert(uses[place - 1].0, (tick, place - 1));
        }
        // What leaves in this tick may be used in it.
        resident.retain(|_, last| last.0 + window >= tick);
        while place < uses.len() && uses[place].1 == tick {
            let page = uses[place].0;
            while let Some(departure) = departures.next_if(|next| next.before <= place as u64) {
                // What is used in a tick stays for it.
                let in_use = |page: &u32| resident.get(page).is_some_and(|last| last.0 == tick);
                let (used, unused) = departure
                    .pages
                    .iter()
                    .partition::<Vec<u32>, _>(|it| in_use(it));
                late.extend(used);
                resident.retain(|page, _| !unused.contains(page));
            }
            if !resident.contains_key(&page) {
                let oldest = resident.iter().map(|(&page, &last)| (last, page)).min();
                if let (Some(age), Some((last, oldest))) = (age, oldest)
                    && tick - last.0 > age
                {
                    resident.remove(&oldest);
                }
                resident.insert(page, (tick, place));
                fault(&mut totals, &mut seen, page, resident.len());
            }
            resident.insert(page, (tick, place));
            place += 1;
        }
        // Of the ticks from the use on this is the last, or one after it.
        resident.retain(|_, last| last.0 + window > tick);
        totals.stayed(tick, tick + 1, resident.len() as u64);
        resident.retain(|page, _| !late.contains(page));
    }
    totals
}

/// VMIN.
pub(super) fn vmin(owned: &Owned, window: u64) -> Totals {
    let uses = owned.uses();
    let next = |i: usize| (i + 1..uses.len()).find(|&j| uses[j].0 == uses[i].0);
    let stays = |i: usize| next(i).is_some_and(|j| uses[j].1 - uses[i].2 <= window);
    let mut totals = Totals::default();
    let mut seen = Vec::new();
    let mut place = 0;
    for tick in owned.string().start()..owned.string().end() {
        let count = |upto: usize| {
            let here = |page: u32| {
                let mut of_page = (0..upto).filter(|&i| uses[i].0 == page && uses[i].1 <= tick);
                of_page
                    .next_back()
                    .is_some_and(|i| uses[i].2 >= tick || stays(i))
            };
            (0..owned.page_count).filter(|&page| here(page)).count()
        };
        while place < uses.len() && uses[place].1 == tick {
            let before = (0..place).rev().find(|&i| uses[i].0 == uses[place].0);
            place += 1;
            if !before.is_some_and(stays) {
                fault(&mut totals, &mut seen, uses[place - 1].0, count(place));
            }
        }
        totals.stayed(tick, tick + 1, count(place) as u64);
    }
    totals
}

/// PFF.
pub(super) fn pff(owned: &Owned, critical: u64) -> Totals {
    let uses = owned.uses();
    let mut totals = Totals::default();
    let mut resident: BTreeMap<u32, bool> = BTreeMap::new();
    let mut seen = Vec::new();
    let mut place = 0;
    let mut fault_before = None;
    for tick in owned.string().start()..owned.string().end() {
        while place < uses.len() && uses[place].1 == tick {
            let page = uses[place].0;
            place += 1;
            if !resident.contains_key(&page) {
                if fault_before.is_some_and(|before| tick - before >= critical) {
                    resident.retain(|_, is_used| *is_used);
                }
                resident.values_mut().for_each(|is_used| *is_used = false);
                fault_before = Some(tick);
                fault(&mut totals, &mut seen, page, resident.len() + 1);
            }
            resident.insert(page, true);
        }
        totals.stayed(tick, tick + 1, resident.len() as u64);
    }
    totals
}

fn fault(totals: &mut Totals, seen: &mut Vec<u32>, page: u32, size: usize) {
    let cause = match seen.contains(&page) {
        true => Arrival::Return,
        false => Arrival::First,
    };
    seen.push(page);
    totals.faulted(size as u64, cause);
}
