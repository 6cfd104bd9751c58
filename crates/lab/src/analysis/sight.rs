//! Sight: what a trace can tell that was sampled in windows.
//!
//! Such a trace has a page once in each window that touches it. Nothing tells how soon, or how
//! often, a page was used again within a window, so whatever is said of less memory than a window
//! touches says too little: misses there are fewer than they would be. Between two records of a
//! page that is in constant use, at the end of one window and the beginning of the one before,
//! nearly two windows may lie.
//!
//! So memory counts from the most pages that are touched within the longest window, and a working
//! set from two of these on.

use std::collections::VecDeque;

use super::reference_string::ReferenceString;
use super::references::Name;

/// The least that a trace has an answer for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// The fewest pages of memory: what all processes together touch in a window each.
    pub pages_min: u64,
    /// The shortest window of a working set, in ticks.
    pub window_min: u64,
}

impl Sight {
    /// Of a trace that has every use, or quanta too short to matter.
    pub const FULL: Sight = Sight {
        pages_min: 1,
        window_min: 0,
    };

    /// The sight of a trace that was sampled in windows of at most `window` ticks. `names` has the
    /// process of each page; windows are in the time of that process.
    pub fn in_windows(string: ReferenceString<'_>, names: &[Name], window: u64) -> Sight {
        Sight {
            pages_min: most_touched(string, names, window).max(1),
            window_min: window.saturating_mul(2),
        }
    }
}

/// The pages that one process has touched within a window.
#[derive(Default)]
struct Touched {
    now: u64,
    /// Its references, each with its time.
    recent: VecDeque<(u64, u32)>,
}

/// The most pages at any time that were touched within `window` ticks before, where the time of
/// each process is its own.
fn most_touched(string: ReferenceString<'_>, names: &[Name], window: u64) -> u64 {
    let process_of = |page: u32| {
        names
            .get(page as usize)
            .map_or(0, |name| name.process as usize)
    };
    let processes = names.iter().map(|name| name.process as usize + 1).max();
    let mut all: Vec<Touched> = Vec::new();
    all.resize_with(processes.unwrap_or(1), Touched::default);
    let mut last = vec![None; string.page_count() as usize];
    let mut before = string.start();
    let (mut count, mut most) = (0_u64, 0);
    for (place, &page) in string.pages().iter().enumerate() {
        let time = string.time_at(place);
        let touched = &mut all[process_of(page)];
        touched.now += time - before;
        before = time;
        count += u64::from(last[page as usize].is_none());
        last[page as usize] = Some(touched.now);
        touched.recent.push_back((touched.now, page));
        while let Some(&(then, old)) = touched.recent.front()
            && touched.now - then >= window
        {
            touched.recent.pop_front();
            if last[old as usize] == Some(then) {
                last[old as usize] = None;
                count -= 1;
            }
        }
        most = most.max(count);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(processes: &[u32]) -> Vec<Name> {
        let name = |(page, &process): (usize, &u32)| Name {
            process,
            copy: 0,
            page: page as u64,
        };
        processes.iter().enumerate().map(name).collect()
    }

    #[test]
    fn memory_counts_from_what_a_window_touches() {
        // Windows of 10: three pages, then one of them and another in each.
        let pages = [0, 1, 2, 0, 3, 0, 3];
        let times = [0, 1, 2, 10, 11, 20, 21];
        let string = ReferenceString::new(&pages, 4).at(&times);
        let sight = Sight::in_windows(string, &names(&[0; 4]), 10);
        let expected = Sight {
            pages_min: 3,
            window_min: 20,
        };
        assert_eq!(sight, expected);
        assert_eq!(Sight::in_windows(string, &names(&[0; 4]), 1).pages_min, 1);
        assert_eq!(Sight::in_windows(string, &names(&[0; 4]), 100).pages_min, 4);
    }

    #[test]
    fn the_windows_of_a_process_are_in_its_own_time() {
        // Two processes take turns, each with two pages in ten ticks of its own.
        let pages = [0, 1, 2, 3, 0, 1, 2, 3];
        let times = [5, 9, 14, 18, 23, 27, 32, 36];
        let string = ReferenceString::new(&pages, 4).at(&times);
        assert_eq!(
            Sight::in_windows(string, &names(&[0, 0, 1, 1]), 10).pages_min,
            4
        );
        assert_eq!(Sight::in_windows(string, &names(&[0; 4]), 10).pages_min, 3);
    }
}
