//! The regions of two versions of a program, matched by what they hold.

use super::{RegionChange, RegionUse, order};

/// A rule by which a region of one side is a region of the other.
type Rule<'a> = &'a dyn Fn(&RegionUse, &RegionUse) -> bool;

/// Matches the regions of both sides; those whose pages differ most come first.
///
/// Regions are the same if they have one label. Of the rest, the file of the program itself is one
/// region on both sides, whatever it is called, and files are the same that have one name and lie
/// in different folders, if there is just one of that name on each side: a library of another
/// build.
pub(super) fn matched(before: Vec<RegionUse>, after: Vec<RegionUse>) -> Vec<RegionChange> {
    let mut gone: Vec<Option<RegionUse>> = before.into_iter().map(Some).collect();
    let mut fresh: Vec<Option<RegionUse>> = after.into_iter().map(Some).collect();
    let mut changes = vec![];
    let same_label = |one: &RegionUse, other: &RegionUse| one.label == other.label;
    let both_programs = |one: &RegionUse, other: &RegionUse| one.is_program && other.is_program;
    let same_file = |one: &RegionUse, other: &RegionUse| {
        file_name(&one.label).is_some() && file_name(&one.label) == file_name(&other.label)
    };
    let rules: [Rule<'_>; 3] = [&same_label, &both_programs, &same_file];
    for rule in rules {
        pair_up(&mut gone, &mut fresh, rule, &mut changes);
    }
    let gone = gone.into_iter().flatten().map(|it| change(Some(it), None));
    let fresh = fresh.into_iter().flatten().map(|it| change(None, Some(it)));
    changes.extend(gone.chain(fresh));
    changes.sort_by_key(|change| {
        let order = order(change.pages(), change.both(|it| it.references));
        (order, change.name.clone())
    });
    changes
}

/// Takes out pairs that are the same by `rule`, where just one of each side is.
fn pair_up(
    gone: &mut [Option<RegionUse>],
    fresh: &mut [Option<RegionUse>],
    rule: Rule<'_>,
    changes: &mut Vec<RegionChange>,
) {
    for place in 0..gone.len() {
        let Some(one) = &gone[place] else { continue };
        let alike = only(fresh, |other| rule(one, other));
        let Some(found) = alike else { continue };
        let Some(other) = &fresh[found] else { continue };
        if only(gone, |one| rule(one, other)) == Some(place) {
            changes.push(change(gone[place].take(), fresh[found].take()));
        }
    }
}

/// The place of the only region that is meant.
fn only(regions: &[Option<RegionUse>], is_meant: impl Fn(&RegionUse) -> bool) -> Option<usize> {
    let meant = |region: &Option<RegionUse>| region.as_ref().is_some_and(&is_meant);
    let mut places = (0..regions.len()).filter(|place| meant(&regions[*place]));
    let first = places.next()?;
    places.next().is_none().then_some(first)
}

fn change(before: Option<RegionUse>, after: Option<RegionUse>) -> RegionChange {
    let named = after.as_ref().or(before.as_ref());
    RegionChange {
        name: named.map_or(String::new(), |it| it.label.clone()),
        before,
        after,
        is_beyond: false,
    }
}

/// The name of a file without its folders; `None` of what is no file.
fn file_name(label: &str) -> Option<&str> {
    label.starts_with('/').then(|| label.rsplit('/').next())?
}
