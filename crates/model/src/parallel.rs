//! Long tables, counted by all processors.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What `work` makes of each of `items`, in their order. Each processor takes the next that nobody
/// has taken.
///
/// Panics if `work` does.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let places = std::iter::repeat_with(|| next.fetch_add(1, Relaxed));
        let done = places.map_while(|place| Some((place, work(items.get(place)?))));
        done.collect::<Vec<_>>()
    };
    let mut done = std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(take)).collect();
        let parts = workers.into_iter().map(|worker| {
            let part = worker.join();
            part.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        parts.flatten().collect::<Vec<_>>()
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_is_done_once_and_stands_in_its_place() {
        let items: Vec<usize> = (0..1000).collect();
        let squares: Vec<usize> = items.iter().map(|item| item * item).collect();
        assert_eq!(super::map(&items, |item| item * item), squares);
        assert_eq!(super::map(&[0; 0], |item| *item), []);
    }
}
