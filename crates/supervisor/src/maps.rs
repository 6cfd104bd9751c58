//! Maps of tasks' memory, by client: each client gets the map that it asked for.

use std::collections::VecDeque;

use tidemark_live::shared::DrawnMap;

/// The number of maps that are kept, and of requests of which it is known what they were for.
const KEPT: usize = 64;

/// The process id of a task, and the number of cells that its map is to have: who looks at the same
/// task may want another number.
type Look = (u32, u32);

/// The maps that were asked for.
#[derive(Debug, Default)]
pub struct Maps {
    /// The number of them.
    asked: u32,
    /// The last of them, by number.
    looks: VecDeque<(u32, Look)>,
    /// The maps that were drawn for each look, the last one at the end.
    drawn: VecDeque<(Look, DrawnMap)>,
}

impl Maps {
    /// Takes in the map that was `drawn` last of a task that began at `start_ns`. The number for
    /// another one, and what was drawn last for the same `look`.
    pub fn exchange(
        &mut self,
        look: Look,
        start_ns: u64,
        drawn: Option<DrawnMap>,
    ) -> (u32, Option<DrawnMap>) {
        if let Some(map) = drawn
            && let Some(&(_, of)) = self.looks.iter().find(|(number, _)| *number == map.number)
        {
            self.drawn.retain(|(other, _)| *other != of);
            self.drawn.push_back((of, map));
        }
        self.asked += 1;
        self.looks.push_back((self.asked, look));
        self.looks.drain(..self.looks.len().saturating_sub(KEPT));
        self.drawn.drain(..self.drawn.len().saturating_sub(KEPT));
        let found = self.drawn.iter().find(|(of, _)| *of == look);
        let map = found.map(|(_, map)| map.clone());
        (self.asked, map.filter(|map| map.drawn_ns >= start_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(number: u32, drawn_ns: u64) -> Option<DrawnMap> {
        Some(DrawnMap {
            number,
            drawn_ns,
            ..DrawnMap::default()
        })
    }

    #[test]
    fn found_b10_each_viewer_has_the_map_it_asked_for() {
        let (wide, narrow, began) = ((7, 200), (7, 4), 10);
        let mut maps = Maps::default();
        assert_eq!(maps.exchange(wide, began, None), (1, None));
        // The wide one is drawn, and the other viewer comes.
        assert_eq!(maps.exchange(narrow, began, drawn(1, 20)), (2, None));
        assert_eq!(maps.exchange(wide, began, drawn(2, 30)), (3, drawn(1, 20)));
        assert_eq!(
            maps.exchange(narrow, began, drawn(3, 40)),
            (4, drawn(2, 30))
        );
        assert_eq!(maps.exchange(wide, began, drawn(4, 50)), (5, drawn(3, 40)));
        // Another process has the number now.
        assert_eq!(maps.exchange(wide, 60, None), (6, None));
        for number in 7..200 {
            assert_eq!(
                maps.exchange((number, 1), began, drawn(number - 1, 70)).1,
                None
            );
        }
        assert!(maps.looks.len() <= KEPT && maps.drawn.len() <= KEPT);
    }
}
