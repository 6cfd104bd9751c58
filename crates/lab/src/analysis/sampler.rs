//! Samples of a trace that is not kept: takes its blocks as they come.
//!
//! As in [`references`](super::references), a page is distinguished by its process, its number and
//! the program it belongs to. Here the three become one word by a hash; that two pages share a word
//! is as likely as that two hashes of 64 bits are equal.

use rayon::prelude::*;
use tidemark_trace::{Block, Event, LifeEvent};

use super::shards::{Estimate, Sample, Sampling, mix, summarize};

/// Samples in the making.
///
/// # Bounds
/// Memory: what the samples keep, a word for each process, and the words of one block.
pub struct Sampler {
    samples: Vec<Sample>,
    /// The salt with which each process's pages are mixed; another word after an exec.
    salts: Vec<u64>,
    /// The number of programs, over all processes.
    programs: u64,
    /// The names of the pages of the block at hand.
    names: Vec<u64>,
}

impl Sampler {
    /// Samples of nothing yet.
    ///
    /// # Panics
    /// If the share is 0 or above 1, or there are no samples.
    pub fn new(sampling: &Sampling) -> Sampler {
        Sampler {
            samples: Sample::several(sampling),
            salts: Vec::new(),
            programs: 0,
            names: Vec::new(),
        }
    }

    /// Takes the next block of the trace.
    pub fn take(&mut self, block: &Block) {
        let process = block.process as usize;
        while self.salts.len() <= process {
            self.salts.push(mix(self.programs));
            self.programs += 1;
        }
        self.names.clear();
        let mut from = 0;
        for placed in &block.events {
            if let Event::Life(LifeEvent::Exec { .. }) = placed.event {
                self.name(&block.pages[from..placed.after as usize], process);
                from = placed.after as usize;
                self.salts[process] = mix(self.programs);
                self.programs += 1;
            }
        }
        self.name(&block.pages[from..], process);
        let names = &self.names;
        self.samples.par_iter_mut().for_each(|sample| {
            for &name in names {
                sample.refer(name);
            }
        });
    }

    /// About how many different pages there were.
    pub fn pages(&self) -> u64 {
        // No memory is so large that first references would not miss.
        let first = self.estimate(&[u64::MAX]).points[0];
        first.misses.round() as u64
    }

    /// About how many references missed under LRU in memories of `sizes` pages.
    pub fn estimate(&self, sizes: &[u64]) -> Estimate {
        summarize(&self.samples, sizes)
    }

    fn name(&mut self, pages: &[u64], process: usize) {
        let salt = self.salts[process];
        self.names.extend(pages.iter().map(|page| page ^ salt));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::shards::Share;
    use tidemark_trace::{Kinds, Placed};

    /// Samples of every page: exact for sizes that are counted one by one.
    fn whole() -> Sampler {
        Sampler::new(&Sampling {
            share: Share::Rate(1.0),
            samples: 2,
            seed: 1,
        })
    }

    fn block(process: u32, pages: &[u64]) -> Block {
        let mut block = Block {
            process,
            ..Block::default()
        };
        for page in pages {
            block.push(*page, Kinds::LOAD, 1);
        }
        block
    }

    fn misses(sampler: &Sampler, pages: u64) -> f64 {
        sampler.estimate(&[pages]).points[0].misses
    }

    #[test]
    fn processes_share_no_page() {
        let mut sampler = whole();
        sampler.take(&block(0, &[1, 2, 1]));
        sampler.take(&block(1, &[1, 2]));
        sampler.take(&block(0, &[2]));
        assert_eq!(sampler.pages(), 4);
        assert_eq!((misses(&sampler, 2), misses(&sampler, 4)), (5.0, 4.0));
    }

    #[test]
    fn after_an_exec_the_same_addresses_are_other_pages() {
        let mut with_exec = block(0, &[1, 2, 1, 1]);
        with_exec.events.push(Placed {
            after: 2,
            time: 2,
            event: Event::Life(LifeEvent::Exec {
                program: "true".into(),
            }),
        });
        let mut sampler = whole();
        sampler.take(&with_exec);
        assert_eq!(sampler.pages(), 3);
    }
}
