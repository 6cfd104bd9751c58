//! The job server: hands out tokens by GNU make's protocol, as many as memory has room for.
//!
//! A program that may run several jobs at a time (`make`, `cargo`, a linker) runs one without
//! asking, and takes a token for each further one, which it puts back when that job is over. There
//! is one token less than there may be jobs. Tokens are bytes, taken from one descriptor and put
//! back to another, which the variable `MAKEFLAGS` names. Make itself uses one pipe for both. Here
//! they are two, so that each token that comes back passes through the supervisor: what is put back
//! into make's one pipe is taken by the next job before it can be withheld.
//!
//! How many jobs there is room for the [steward](tidemark_tasks::Steward) says.
//!
//! # Invariants
//! 1. Tokens that are kept, offered or with jobs are as many as there were at the start. Bytes that
//!    were not taken are not accepted as tokens.
//! 2. A reader or writer never meets the end of a pipe: programs hold both sides of both. Without
//!    the supervisor they find no more tokens, and go on with one job each.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd, ioctl_fionread, read, write};
use tidemark_results::control::JobsState;
use tidemark_results::record::Jobs;
use tidemark_results::{Refusal, refuse};

use crate::folder::PrivateFolder;
use crate::program::plain;

/// The most jobs that can be asked for: the tokens of all fit into a pipe of one page.
pub const JOBS_MAX: u32 = 4096;

/// A token. Who has one puts the same byte back.
const TOKEN: u8 = b'+';

/// The least number of a descriptor that programs inherit. Shell scripts use the single digits.
const INHERITED_LEAST: i32 = 10;

/// The variable of make's options, and of those that know of it.
const MAKEFLAGS: &str = "MAKEFLAGS";
/// The variable of make's options that cargo reads first.
const CARGO_MAKEFLAGS: &str = "CARGO_MAKEFLAGS";

/// The tokens of a run.
#[derive(Debug)]
pub struct JobServer {
    /// The pipe from which tokens are taken.
    offers: OwnedFd,
    /// The pipe to which tokens are put back.
    returns: OwnedFd,
    /// The descriptors that programs inherit, in the same order.
    inherited: [OwnedFd; 2],
    /// The tokens that there are.
    tokens: u32,
    /// The tokens that are withheld.
    kept: u32,
    /// The jobs that may be at work.
    allowed: u32,
    at_work_peak: u32,
}

impl JobServer {
    /// Begins to serve up to `jobs` jobs at a time, by way of pipes made in `folder`.
    ///
    /// # Errors
    /// The pipes can't be made.
    pub fn begin(folder: &PrivateFolder, jobs: u32) -> Result<JobServer, Refusal> {
        let made = [folder.path().join("offers"), folder.path().join("returns")];
        let pipes = made.iter().map(|path| make_pipe(path));
        match pipes.collect::<rustix::io::Result<Vec<_>>>() {
            Ok(pipes) => Ok(JobServer::of(pipes, jobs)),
            Err(error) => refuse!("pipes for jobs can't be made: {}", plain(&error.into())),
        }
    }

    fn of(pipes: Vec<(OwnedFd, OwnedFd)>, jobs: u32) -> JobServer {
        let [offers, returns] = <[_; 2]>::try_from(pipes).expect("two were made");
        let tokens = jobs - 1;
        JobServer {
            offers: offers.0,
            returns: returns.0,
            inherited: [offers.1, returns.1],
            tokens,
            kept: tokens,
            allowed: 1,
            at_work_peak: 1,
        }
    }

    /// The most jobs at a time.
    pub fn most(&self) -> u32 {
        self.tokens + 1
    }

    /// Has the program that `command` starts know of it, and all that it starts.
    pub fn tell(&self, command: &mut Command) {
        let [offers, returns] = [0, 1].map(|side| self.inherited[side].as_raw_fd());
        let jobs = self.tokens + 1;
        // The first name is that of make before 4.2.
        let ours = format!(
            "-j{jobs} --jobserver-fds={offers},{returns} --jobserver-auth={offers},{returns}"
        );
        let flags = std::env::var_os(MAKEFLAGS).unwrap_or_default();
        command
            .env(MAKEFLAGS, with_options(&flags, &ours))
            .env_remove(CARGO_MAKEFLAGS);
    }

    /// The file to wait for: it can be read when a token is back.
    pub fn source(&self) -> PollFd<'_> {
        PollFd::from_borrowed_fd(self.returns.as_fd(), PollFlags::IN)
    }

    /// Takes in the tokens that are back, and returns their number: one for each ended job.
    pub fn take_back(&mut self) -> u32 {
        // In this order: what is back has been taken before.
        let waiting = waiting_in(&self.returns);
        let at_work = self.at_work();
        self.at_work_peak = self.at_work_peak.max(at_work);
        let returned = take(self.returns.as_fd(), waiting.min(at_work - 1));
        // What is more than was taken is no token.
        take(self.returns.as_fd(), waiting - returned);
        self.kept += returned;
        returned
    }

    /// The state of the tokens, for those who ask.
    pub fn state(&self) -> JobsState {
        JobsState {
            slots: self.tokens + 1,
            allowed: self.allowed,
            at_work: self.at_work(),
        }
    }

    /// The record that it leaves behind.
    pub fn record(&self) -> Jobs {
        Jobs {
            slots: self.tokens + 1,
            at_work_peak: self.at_work_peak,
            tokens_missing: self.at_work() - 1,
        }
    }

    /// The jobs that are at work, with the one that needs no token.
    pub fn at_work(&self) -> u32 {
        1 + (self.tokens - self.kept).saturating_sub(self.offered())
    }

    /// The tokens that wait to be taken.
    fn offered(&self) -> u32 {
        waiting_in(&self.offers)
    }

    /// Lets `allowed` jobs be at work: as many tokens wait to be taken as there may be more jobs,
    /// if there are that many tokens.
    pub fn offer(&mut self, allowed: u32) {
        self.allowed = allowed;
        let (offered, at_work) = (self.offered(), self.at_work());
        self.at_work_peak = self.at_work_peak.max(at_work);
        let wanted = allowed.saturating_sub(at_work);
        if wanted > offered {
            let tokens = vec![TOKEN; self.kept.min(wanted - offered) as usize];
            // A pipe that takes nothing more is full of tokens.
            let written = write(&self.offers, &tokens).unwrap_or(0);
            self.kept -= written as u32;
        } else {
            self.kept += take(self.offers.as_fd(), offered - wanted);
        }
    }
}

/// The number of bytes that wait in a pipe.
fn waiting_in(pipe: &OwnedFd) -> u32 {
    ioctl_fionread(pipe).map_or(0, |bytes| bytes as u32)
}

/// Takes up to `most` bytes that wait in a pipe. Answers how many it got.
fn take(pipe: BorrowedFd<'_>, most: u32) -> u32 {
    let mut tokens = [0; JOBS_MAX as usize];
    let room = &mut tokens[..(most as usize).min(JOBS_MAX as usize)];
    match room.is_empty() {
        true => 0,
        false => read(pipe, room).map_or(0, |count| count as u32),
    }
}

/// Makes a pipe: this process's descriptor of it, and one for programs to inherit. Both are for
/// both sides. Make changes how its own waits, which is not to concern this process.
fn make_pipe(path: &Path) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let own = open(path, flags | OFlags::NONBLOCK, Mode::empty());
    let other = open(path, flags, Mode::empty());
    // A holder of a descriptor needs no name, and there are no others.
    rustix::fs::unlink(path)?;
    let inherited = fcntl_dupfd_cloexec(other?, INHERITED_LEAST)?;
    fcntl_setfd(&inherited, FdFlags::empty())?;
    Ok((own?, inherited))
}

/// Make's options `flags` with those of `ours` behind them, which are the ones that count. Behind
/// two dashes make's variables follow.
fn with_options(flags: &OsStr, ours: &str) -> OsString {
    let flags = flags.as_bytes();
    let variables = flags.windows(4).position(|part| part == b" -- ");
    let (options, variables) = flags.split_at(variables.unwrap_or(flags.len()));
    let mut all = options.to_vec();
    if !options.is_empty() {
        all.push(b' ');
    }
    all.extend(ours.bytes());
    all.extend(variables);
    OsString::from_vec(all)
}

#[cfg(test)]
mod tests {
    use tidemark_core::time::Time;
    use tidemark_partition::Divider;
    use tidemark_tasks::{Record, Remains, Steward};

    use super::*;

    const MIB: u64 = 256;

    /// A server for `jobs` jobs, in `mib` MiB.
    struct Trial {
        server: JobServer,
        steward: Steward,
        frames: u64,
    }

    impl Trial {
        fn new(jobs: u32, mib: u64) -> Trial {
            let server = JobServer::begin(&PrivateFolder::new().unwrap(), jobs).unwrap();
            let mut steward = Steward::new(Divider::default(), Time(0));
            steward.offer_jobs(server.most());
            let frames = mib * MIB;
            let mut trial = Trial {
                server,
                steward,
                frames,
            };
            trial.serve();
            trial
        }

        /// Takes tokens as programs do, and answers how many there were.
        fn take(&self, most: u32) -> u32 {
            let offered = self.server.offered();
            match offered {
                0 => 0,
                // The descriptor that is inherited waits.
                _ => take(self.server.inherited[0].as_fd(), most.min(offered)),
            }
        }

        fn put_back(&mut self, count: usize) {
            let tokens = vec![TOKEN; count];
            write(&self.server.inherited[1], &tokens).unwrap();
            self.serve();
        }

        fn serve(&mut self) {
            self.steward.handle_ended_jobs(self.server.take_back());
            self.server.offer(self.steward.jobs_allowed().unwrap());
        }

        fn look(&mut self, sizes: &[u64]) {
            let sizes: Vec<u64> = sizes.iter().map(|mib| mib * MIB).collect();
            let at_work = self.server.at_work();
            self.steward.handle_jobs(at_work, self.frames, &sizes);
            self.server.offer(self.steward.jobs_allowed().unwrap());
        }

        /// Invariant 1.
        fn check(&self, with_jobs: u32) {
            let server = &self.server;
            assert_eq!(server.kept + server.offered() + with_jobs, server.tokens);
            assert_eq!(server.at_work(), with_jobs + 1);
        }
    }

    #[test]
    fn jobs_that_fit_get_every_token() {
        let mut trial = Trial::new(8, 4096);
        let mut with_jobs = 0;
        for _ in 0..8 {
            with_jobs += trial.take(8);
            trial.check(with_jobs);
            trial.look(&[20; 4]);
        }
        assert_eq!(with_jobs, 7);
        assert_eq!(trial.server.record().at_work_peak, 8);
        trial.put_back(7);
        trial.check(0);
    }

    #[test]
    fn tokens_that_come_back_are_withheld_while_memory_is_short() {
        let mut trial = Trial::new(8, 4096);
        let mut with_jobs = 0;
        for _ in 0..8 {
            with_jobs += trial.take(8);
            trial.look(&[20; 4]);
        }
        // Eight jobs of 900 MiB in 4 GiB. Nothing can be taken from those that run.
        assert_eq!(with_jobs, 7);
        trial.look(&[900; 8]);
        trial.check(7);
        trial.put_back(3);
        assert_eq!(trial.take(8), 0);
        trial.check(4);
        // With two of them in memory there is room for others.
        trial.put_back(3);
        let task = trial.steward.handle_arrival(Time(0), Some(Record(0)));
        let pages = 900 * MIB;
        trial.steward.handle_gone(
            task,
            Remains {
                pages,
                ..Remains::default()
            },
        );
        trial.look(&[900; 2]);
        assert!(trial.take(8) > 0);
    }

    #[test]
    fn one_job_runs_however_little_memory_there_is() {
        let mut trial = Trial::new(4, 16);
        let begun = trial.take(4);
        trial.look(&[500, 500]);
        trial.put_back(begun as usize);
        assert_eq!(trial.take(4), 0);
        assert_eq!(trial.server.state().allowed, 1);
        trial.check(0);
    }

    #[test]
    fn bytes_that_nobody_took_are_no_tokens() {
        let mut trial = Trial::new(3, 4096);
        let begun = trial.take(1);
        trial.put_back(50);
        assert_eq!(begun, 1);
        trial.check(0);
    }

    #[test]
    fn one_slot_has_no_token() {
        let mut trial = Trial::new(1, 64);
        trial.look(&[1]);
        assert_eq!(trial.take(1), 0);
        trial.check(0);
    }

    #[test]
    fn options_come_behind_those_that_were_there_and_before_variables() {
        let with = |flags: &str| with_options(flags.as_ref(), "-j2").into_string().unwrap();
        assert_eq!(with(""), "-j2");
        assert_eq!(with("ks -j4"), "ks -j4 -j2");
        assert_eq!(with("k -j9 -- A=b C=d"), "k -j9 -j2 -- A=b C=d");
    }
}
