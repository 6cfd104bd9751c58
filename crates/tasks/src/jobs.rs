//! The window: how many jobs may be at work at a time, by the memory that jobs turn out to need.
//!
//! It begins small and opens as long as there is room: by one each time that is looked at, twice as
//! wide where room is plenty, and by one for each job that has ended, so that short jobs are soon
//! as many as there may be. What a job needs is what the typical process has, in memory or on the
//! store, where each counts as often as it has pages: shells and drivers of compilers are many and
//! small. While little has ended, or those that run are far larger than those that have, their
//! final size is not known. They are expected to double then, and to need no less than a guess.

/// The jobs that may be at work at first.
const JOBS_FIRST: u32 = 2;

/// The part by which what ended processes had counts less with each that ends.
const FADING: f64 = 1.0 / 64.0;

/// The window doubles at a look if there is room for this many times as many jobs as it allows.
const PLENTY: u32 = 4;

/// The least pages that a job is expected to need: 1 MiB.
const PAGES_LEAST: f64 = 256.0;

/// The pages of a job of which nothing is known: 128 MiB.
const PAGES_GUESSED: f64 = 32768.0;
/// The part of all memory that is guessed instead, if that is less.
const GUESSED_PART: f64 = 0.25;

/// The number of jobs that may be at work, and what it follows from.
#[derive(Debug)]
pub struct Window {
    /// The most jobs that are asked for.
    most: u32,
    /// The jobs that may be at work.
    jobs: u32,
    /// The jobs that there was room for when that was last looked at.
    room: u32,
    ended: Sizes,
    /// The pages of all processes that have ended.
    ended_pages: f64,
}

/// The sizes of processes, in pages.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    sum: f64,
    squares: f64,
}

impl Sizes {
    fn add(&mut self, pages: u64) {
        let pages = pages as f64;
        self.sum += pages;
        self.squares += pages * pages;
    }

    fn fade(&mut self) {
        self.sum -= self.sum * FADING;
        self.squares -= self.squares * FADING;
    }

    /// The typical size, in which each process counts as often as it has pages.
    fn typical(self) -> f64 {
        match self.sum > 0.0 {
            true => self.squares / self.sum,
            false => 0.0,
        }
    }
}

impl Window {
    /// A window for up to `most` jobs.
    pub fn new(most: u32) -> Window {
        let jobs = most.min(JOBS_FIRST);
        Window {
            most,
            jobs,
            room: jobs,
            ended: Sizes::default(),
            ended_pages: 0.0,
        }
    }

    /// The jobs that may be at work.
    pub fn jobs(&self) -> u32 {
        self.jobs
    }

    /// Learns that a process that had `pages` has ended.
    pub fn note_ended_process(&mut self, pages: u64) {
        self.ended.fade();
        self.ended.add(pages);
        self.ended_pages += pages as f64;
    }

    /// Learns that `count` jobs have ended.
    pub fn note_ended_jobs(&mut self, count: u32) {
        self.jobs = (self.jobs + count).min(self.room).max(self.jobs);
    }

    /// Learns the number of jobs at work and the `sizes` of their processes in pages, where
    /// `frames` are for all.
    pub fn look(&mut self, at_work: u32, frames: u64, sizes: &[u64]) {
        let mut present = Sizes::default();
        sizes.iter().for_each(|&pages| present.add(pages));
        let frames = frames as f64;
        let needed = self.needed(frames, present.typical());
        let expected = present.sum.max(f64::from(at_work) * needed);
        let more = (frames - expected) / needed;
        // In whole jobs. Far more than there can be is as good as that.
        let room = (f64::from(at_work) + more).clamp(1.0, f64::from(u32::MAX)) as u32;
        let is_used = at_work >= self.jobs;
        let opened = match (is_used, room / PLENTY >= self.jobs) {
            (false, _) => self.jobs,
            (true, true) => self.jobs * 2,
            (true, false) => self.jobs + 1,
        };
        self.room = room.min(self.most);
        self.jobs = opened.min(self.room);
    }

    /// The pages that a job is expected to need, where the typical process has `now`.
    fn needed(&self, frames: f64, now: f64) -> f64 {
        let guessed = PAGES_GUESSED.min(GUESSED_PART * frames);
        let past = self.ended.typical();
        let is_known = self.ended_pages >= guessed && now <= 2.0 * past;
        let needed = if is_known {
            past.max(now)
        } else {
            guessed.max(2.0 * now)
        };
        needed.max(PAGES_LEAST)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const MIB: u64 = 256;

    #[test]
    fn it_opens_twice_as_wide_where_room_is_plenty() {
        let mut window = Window::new(16);
        let mut seen = vec![];
        for _ in 0..4 {
            seen.push(window.jobs());
            window.look(window.jobs(), 1 << 24, &[4096; 2]);
        }
        assert_eq!(seen, [2, 4, 8, 16]);
    }

    #[test]
    fn it_opens_by_one_for_each_job_that_has_ended() {
        let mut window = Window::new(16);
        window.look(2, 1 << 24, &[10]);
        let before = window.jobs();
        window.note_ended_jobs(3);
        assert_eq!(window.jobs(), before + 3);
    }

    #[test]
    fn it_does_not_open_while_jobs_that_may_begin_do_not() {
        let mut window = Window::new(16);
        window.look(1, 1 << 24, &[4096]);
        assert_eq!(window.jobs(), 2);
    }

    #[test]
    fn a_job_of_which_nothing_is_known_is_expected_to_be_large_and_to_double() {
        let mut window = Window::new(16);
        let look = |window: &mut Window, mib: u64| {
            for _ in 0..8 {
                window.look(window.jobs(), 1000 * MIB, &[mib * MIB; 3]);
            }
            window.jobs()
        };
        assert_eq!(look(&mut window, 5), 7, "seven of 128 MiB fit into 1000");
        assert_eq!(look(&mut window, 100), 5, "five of 200");
        for _ in 0..2 {
            window.note_ended_process(100 * MIB);
        }
        assert_eq!(look(&mut window, 60), 10, "ten of 100");
        assert_eq!(look(&mut window, 120), 8, "eight of 120");
        assert_eq!(look(&mut window, 210), 2, "two that may come to 420");
    }

    #[test]
    fn small_processes_say_nothing_of_what_jobs_need() {
        let mut window = Window::new(16);
        for pages in [150 * MIB, 60, 60, 60, 60, 60] {
            window.note_ended_process(pages);
        }
        for _ in 0..8 {
            window.look(window.jobs(), 700 * MIB, &[90 * MIB, 60, 60]);
        }
        assert_eq!(window.jobs(), 4, "four of 150 MiB fit into 700");
    }

    #[test]
    fn many_small_processes_are_known_in_the_end() {
        let mut window = Window::new(16);
        window.look(2, 100 * MIB, &[256; 8]);
        assert_eq!(
            window.jobs(),
            3,
            "a fourth of memory each, as far as is known"
        );
        for _ in 0..30 {
            window.note_ended_process(MIB);
        }
        for _ in 0..8 {
            window.look(window.jobs(), 100 * MIB, &[256; 8]);
        }
        assert_eq!(window.jobs(), 16);
    }

    #[test]
    fn more_than_there_is_room_for_closes_it_down_to_one() {
        let mut window = Window::new(16);
        window.look(2, 1 << 24, &[10]);
        window.look(8, 1000, &[900; 8]);
        assert_eq!(window.jobs(), 1);
    }
}
