//! Things that several threads want and the first of them makes, once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tidemark_results::Refusal;

/// The progress of a file: `None` while it is being made, then its result.
type State = Option<Result<(), Refusal>>;

/// Files that are made once, and what came of them.
#[derive(Default)]
pub struct Once {
    states: Mutex<BTreeMap<PathBuf, State>>,
    changed: Condvar,
}

/// Ends what was begun, also if its maker panics, so that no thread waits for ever.
struct Begun<'a> {
    once: &'a Once,
    path: &'a Path,
    result: Result<(), Refusal>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let result = Some(self.result.clone());
        self.once.states().insert(self.path.to_owned(), result);
        self.once.changed.notify_all();
    }
}

impl Once {
    /// Makes `path`, unless a thread has begun to: then its result is awaited.
    pub fn make(
        &self,
        path: &Path,
        make: impl FnOnce() -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if let Some(result) = self.make_first(path, make) {
            return result;
        }
        let mut states = self.states();
        loop {
            if let Some(Some(result)) = states.get(path) {
                return result.clone();
            }
            let woken = self.changed.wait(states);
            states = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Makes `path` if no thread has begun to; nothing otherwise.
    pub fn make_first(
        &self,
        path: &Path,
        make: impl FnOnce() -> Result<(), Refusal>,
    ) -> Option<Result<(), Refusal>> {
        {
            let mut states = self.states();
            if states.contains_key(path) {
                return None;
            }
            states.insert(path.to_owned(), None);
        }
        let result = Err(Refusal::new(format!("`{}` was given up", path.display())));
        let mut begun = Begun {
            once: self,
            path,
            result,
        };
        begun.result = make();
        Some(begun.result.clone())
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<PathBuf, State>> {
        // A state is whole at every moment, also after a panic.
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_many_want_is_made_once_and_all_are_told_what_came_of_it() {
        let (once, made) = (Once::default(), AtomicU32::new(0));
        let fail = || {
            made.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(50));
            Err(Refusal::new("no disk"))
        };
        std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| once.make(Path::new("a"), fail)));
            for thread in threads {
                let told = thread.join().unwrap().unwrap_err().to_string();
                assert_eq!(told, "no disk");
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
        assert!(once.make_first(Path::new("a"), || Ok(())).is_none());
        assert!(once.make(Path::new("b"), || Ok(())).is_ok());
    }

    #[test]
    fn nobody_waits_for_a_maker_that_panicked() {
        let once = Once::default();
        std::thread::scope(|scope| {
            let maker = scope.spawn(|| once.make(Path::new("a"), || panic!("a bug")));
            assert!(maker.join().is_err());
        });
        let told = once
            .make(Path::new("a"), || Ok(()))
            .unwrap_err()
            .to_string();
        assert!(told.contains("given up"), "{told}");
    }
}
