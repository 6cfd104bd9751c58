//! Names near one that is not known, to be proposed in its place.

use strsim::osa_distance;

/// The names of `known` that differ from `name` by little: the nearest, and those that `name` is a
/// part of. Two letters that changed places are one slip.
pub fn collect_near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<(usize, &str, bool)> = Vec::new();
    for known in known {
        let edits = osa_distance(name, known);
        let is_part = name.len() >= 4 && known.contains(name);
        if edits <= 1 + known.len() / 4 || is_part {
            names.push((edits, known, is_part));
        }
    }
    names.sort();
    let least = names.first().map_or(0, |(edits, ..)| *edits);
    names.retain(|(edits, _, is_part)| *edits == least || *is_part);
    names.into_iter().map(|(_, name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_the_name_that_was_meant() {
        let near = |name| {
            collect_near(
                name,
                ["fifo", "lru", "clock", "random", "gclock"].into_iter(),
            )
        };
        assert_eq!(near("fif"), ["fifo"]);
        assert_eq!(near("clokc"), ["clock"]);
        assert_eq!(near("rand"), ["random"]);
        assert_eq!(near("lur"), ["lru"]);
        assert_eq!(near("fiof"), ["fifo"]);
        assert_eq!(near("lock"), ["clock", "gclock"]);
        assert!(near("completely-else").is_empty());
    }
}
