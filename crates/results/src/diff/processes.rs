//! The processes of two versions of a program, matched by what they run and in which order.

use std::collections::BTreeMap;

use super::{ProcessChange, ProcessUse, order};

/// Matches the processes of both sides; those whose pages differ most come first.
///
/// Processes are the same that run a program of one name, the first with the first, the second with
/// the second and so on, in the order of their traces. The first processes of both traces are the
/// same whatever they run, if they have no other match: two builds of one program. There are none
/// where neither side has several.
pub(super) fn matched(before: Vec<ProcessUse>, after: Vec<ProcessUse>) -> Vec<ProcessChange> {
    if before.len() <= 1 && after.len() <= 1 {
        return vec![];
    }
    let first = |side: &[ProcessUse]| side.first().map(|it| it.process);
    let firsts = (first(&before), first(&after));
    let (mut gone, mut fresh) = (numbered(before), numbered(after));
    let mut changes = vec![];
    let keys: Vec<Key> = gone
        .keys()
        .filter(|key| fresh.contains_key(*key))
        .cloned()
        .collect();
    for key in keys {
        changes.push(change(&key, gone.remove(&key), fresh.remove(&key)));
    }
    let (one, other) = (taken(&mut gone, firsts.0), taken(&mut fresh, firsts.1));
    match (one, other) {
        (Some((_, one)), Some((key, other))) => changes.push(change(&key, Some(one), Some(other))),
        (one, other) => {
            gone.extend(one);
            fresh.extend(other);
        }
    }
    changes.extend(
        gone.into_iter()
            .map(|(key, it)| change(&key, Some(it), None)),
    );
    changes.extend(
        fresh
            .into_iter()
            .map(|(key, it)| change(&key, None, Some(it))),
    );
    changes.sort_by_key(|change| {
        let order = order(change.pages(), change.both(|it| it.references));
        (order, change.name.clone(), change.nth)
    });
    changes
}

/// The name of a process, and its number among those of that name, from 1.
type Key = (String, u32);

fn numbered(processes: Vec<ProcessUse>) -> BTreeMap<Key, ProcessUse> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let key = |process: ProcessUse| {
        let name = name(&process);
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        ((name, *count), process)
    };
    processes.into_iter().map(key).collect()
}

/// Takes out the process of that number in its trace.
fn taken(side: &mut BTreeMap<Key, ProcessUse>, process: Option<u32>) -> Option<(Key, ProcessUse)> {
    let is_meant = |it: &ProcessUse| Some(it.process) == process;
    let key = side
        .iter()
        .find(|(_, it)| is_meant(it))
        .map(|(key, _)| key.clone())?;
    side.remove_entry(&key)
}

/// The last program that a process ran, without its folders.
fn name(process: &ProcessUse) -> String {
    match process.program.rsplit('/').next() {
        None | Some("") => "unnamed process".into(),
        Some(name) => name.into(),
    }
}

fn change(key: &Key, before: Option<ProcessUse>, after: Option<ProcessUse>) -> ProcessChange {
    ProcessChange {
        name: key.0.clone(),
        nth: key.1,
        before,
        after,
        is_beyond: false,
    }
}
