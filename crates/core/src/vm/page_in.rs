//! Fetching: which pages are read with one that is wanted, and in front of a reader.
//!
//! What a detected walk is about to come to is read in front of it
//! ([`streams`](crate::readahead::streams) follows walks). With a page that belongs to none goes
//! what is beside it.
//!
//! # Invariants
//! 1. The pages of one request are beside each other with their pager, and none was in memory.
//! 2. A request with a waiting fault has that fault's page.

use crate::memory::object::{Backing, Entry};
use crate::paging::attempt::{Group, Need, Scene, Step};
use crate::seams::pager::Place;
use alloc::vec::Vec;

use crate::decision::Decision;
use crate::id::{FrameId, PageId, Ticket};
use crate::memory::address_space::Advice;
use crate::memory::frame::State;
use crate::memory::page_run::PageRun;
use crate::paging::transfers::Origin;
use crate::readahead::fates::Fate;
use crate::readahead::streams::Heading;
use crate::seams::machine::Machine;
use crate::vm::Vm;

/// The most requests one fault may start: the wanted cluster and those ahead of it.
const GROUPS_MAX: usize = 16;
/// The pages in front of a reader where its part of memory is less, and their share of a very small
/// memory, as a divisor.
const AHEAD_LEAST: u32 = 8;
const AHEAD_PART_LEAST: u32 = 8;

impl Vm {
    /// The stream that a fault on `page` belongs to.
    pub(crate) fn follow(
        &mut self,
        page: PageId,
        advice: Advice,
        window_max: u32,
    ) -> Option<usize> {
        let object = self.memory.objects().get(page.object);
        let is_resident = |index| object.entry(index).frame().is_some();
        let (id, index) = (page.object, page.index);
        self.streams
            .follow(id, index, advice, window_max, is_resident)
    }

    /// The wanted page is with its pager: reads it, and what is expected to be wanted next.
    pub(crate) fn start_page_in(&mut self, machine: &mut dyn Machine, scene: Scene) -> Step {
        let PageId { object, index } = scene.found.page;
        let advice = scene.region.advice;
        let cluster = self.config.cluster_pages;
        if let Some(step) = self.read_as_kernel(machine, &scene) {
            return step;
        }
        let stream = self.follow(scene.found.page, advice, cluster);
        let window = stream.map_or(1, |number| self.streams.get(number).window);
        let is_following = window > 1;
        if is_following {
            for frame in self.collect_passed(stream.expect("followed")) {
                self.memory.frames_mut().change_fate(frame, Fate::passed);
            }
        }
        let group = if is_following {
            let heading = self.streams.get(stream.expect("followed")).heading;
            self.measure_stored(&scene, index, window.min(cluster), heading)
        } else {
            self.measure_around(&scene, advice)
        };
        let run = group.of(object);
        let Some(ticket) = self.start_fetch(machine, &scene, run, Some(index), is_following) else {
            return Step::Stall;
        };
        self.paging_in.push(scene.fault.space);
        if let Some(number) = stream {
            let run = self.transfers.get(ticket).run();
            self.streams.get_mut(number).cover(run.first, run.end());
            self.read_ahead(machine, &scene, number);
        }
        Step::Wait(ticket)
    }

    /// A reader has come to a page that was read ahead for it: notes how far it is, and keeps the
    /// reads in front of it going.
    pub(crate) fn advance_stream(&mut self, machine: &mut dyn Machine, scene: Scene) {
        let PageId { object, index } = scene.found.page;
        let Some(number) = self.streams.find(object, index) else {
            return;
        };
        self.streams.advance(number, index);
        for frame in self.collect_passed(number) {
            self.memory.frames_mut().take_ahead(frame);
            self.memory.frames_mut().change_fate(frame, Fate::passed);
        }
        self.read_ahead(machine, &scene, number);
    }

    /// The resident pages that a stream's reader has just gone past: of use, as far as can be told.
    fn collect_passed(&self, number: usize) -> Vec<FrameId> {
        let stream = self.streams.get(number);
        let (first, end) = stream.passed();
        let bound = u64::from(self.config.ahead_pages_max + 2 * self.config.cluster_pages);
        let object = self.memory.objects().get(stream.object);
        let passed = object.collect(first, end.min(first + bound)).into_iter();
        let frames = passed.filter_map(|(_, entry)| entry.frame());
        frames
            .filter(|&frame| self.memory.frames().state(frame) == State::Resident)
            .collect()
    }

    /// Starts reads in front of a stream's reader until they are far enough ahead.
    fn read_ahead(&mut self, machine: &mut dyn Machine, scene: &Scene, number: usize) {
        let cluster = self.config.cluster_pages;
        if self.streams.get(number).window < cluster {
            return;
        }
        let lead = self.lead_of(number);
        let (low, high) = scene.reach();
        for _ in 1..GROUPS_MAX {
            let stream = *self.streams.get(number);
            let edge = match stream.heading {
                Heading::Forward if stream.high < (stream.reader + lead).min(high) => stream.high,
                Heading::Backward if stream.low > stream.reader.saturating_sub(lead).max(low) => {
                    stream.low - 1
                }
                Heading::Forward | Heading::Backward => return,
            };
            let (start, passed) = self.skip_unstored(scene, edge, stream.heading);
            self.streams.get_mut(number).cover(passed.0, passed.1);
            let Some(start) = start else { continue };
            let group = self.measure_stored(scene, start, cluster, stream.heading);
            let run = group.of(scene.found.page.object);
            let Some(ticket) = self.start_fetch(machine, scene, run, None, true) else {
                return;
            };
            let run = self.transfers.get(ticket).run();
            self.streams.get_mut(number).cover(run.first, run.end());
        }
    }

    /// The distance that reads run in front of a stream's reader: its part of what memory has for
    /// that.
    fn lead_of(&self, number: usize) -> u64 {
        let limit = self.memory.frames().limit();
        let readers = self.streams.readers(self.config.cluster_pages).max(1);
        let part = limit / self.config.ahead_part / readers;
        let least = AHEAD_LEAST.min(limit / AHEAD_PART_LEAST);
        let most = self.config.ahead_pages_max.min(part.max(least));
        // Most walks are short: how far one will go is best told by how far it has come.
        u64::from(most).min(self.streams.get(number).walked / 2)
    }

    /// The first page at or past `edge` that is with its pager and not in memory, within a
    /// cluster's length, and the stretch that was looked at before it.
    fn skip_unstored(
        &self,
        scene: &Scene,
        edge: u64,
        heading: Heading,
    ) -> (Option<u64>, (u64, u64)) {
        let (low, high) = scene.reach();
        let object = self.memory.objects().get(scene.found.page.object);
        for step in 0..u64::from(self.config.cluster_pages) {
            let index = match heading {
                Heading::Forward => Some(edge + step),
                Heading::Backward => edge.checked_sub(step),
            };
            let Some(index) = index.filter(|index| (low..high).contains(index)) else {
                return match heading {
                    Heading::Forward => (None, (edge, high.max(edge + 1))),
                    Heading::Backward => (None, (low.min(edge), edge + 1)),
                };
            };
            if self.is_fetchable(object.entry(index), object.has_pager()) {
                return match heading {
                    Heading::Forward => (Some(index), (edge, index + 1)),
                    Heading::Backward => (Some(index), (index, edge + 1)),
                };
            }
        }
        let length = u64::from(self.config.cluster_pages);
        match heading {
            Heading::Forward => (None, (edge, edge + length)),
            Heading::Backward => (None, (edge + 1 - length.min(edge + 1), edge + 1)),
        }
    }

    pub(crate) fn is_fetchable(&self, entry: Entry, has_pager: bool) -> bool {
        entry.frame().is_none() && (entry.slot().is_some() || has_pager)
    }

    /// Measures the number of pages from `index` on, itself included, that one request can bring:
    /// all with the pager, none in memory, and next to each other there too.
    fn measure_stored(&self, scene: &Scene, index: u64, want: u32, heading: Heading) -> Group {
        let (low, high) = scene.reach();
        let object = self.memory.objects().get(scene.found.page.object);
        let slot = object.entry(index).slot();
        let mut pages = 1;
        while pages < want {
            let step = u64::from(pages);
            let (next, expected) = match heading {
                Heading::Forward => (Some(index + step), slot.map(|s| u64::from(s.0) + step)),
                Heading::Backward => {
                    let expected = slot.map(|s| u64::from(s.0).wrapping_sub(step));
                    (index.checked_sub(step), expected)
                }
            };
            let Some(next) = next.filter(|next| (low..high).contains(next)) else {
                break;
            };
            let entry = object.entry(next);
            let is_adjacent = entry.slot().map(|s| u64::from(s.0)) == expected;
            if !self.is_fetchable(entry, object.has_pager()) || !is_adjacent {
                break;
            }
            pages += 1;
        }
        let first = match heading {
            Heading::Forward => index,
            Heading::Backward => index + 1 - u64::from(pages),
        };
        Group { first, pages }
    }

    /// Starts reading `run`, shortened to the frames there are. One that contains `wanted` keeps it
    /// and may take the last frame; one read ahead may not.
    pub(crate) fn start_fetch(
        &mut self,
        machine: &mut dyn Machine,
        scene: &Scene,
        run: PageRun,
        wanted: Option<u64>,
        is_stream: bool,
    ) -> Option<Ticket> {
        let is_mapped = is_stream
            && self.config.is_ahead_mapped
            && !scene.found.is_below
            && !scene.region.is_window;
        let object = run.object;
        let wanted = wanted.map(|index| PageId { object, index });
        self.fetch_pages(machine, scene, run.iter().collect(), wanted, is_mapped)
    }

    /// Starts reading pages that are consecutive with their pager, of whatever objects they are.
    pub(crate) fn fetch_pages(
        &mut self,
        machine: &mut dyn Machine,
        scene: &Scene,
        mut pages: Vec<PageId>,
        wanted: Option<PageId>,
        is_mapped: bool,
    ) -> Option<Ticket> {
        let need = match wanted {
            Some(_) => Need::Awaited,
            None => Need::Ahead,
        };
        let frames = self.take_frames(machine, pages.len() as u32, need);
        let got = frames.len();
        if got == 0 {
            return None;
        }
        let at = pages.iter().position(|&page| Some(page) == wanted);
        let first = (at.unwrap_or(0) + 1).saturating_sub(got);
        pages.truncate(first + got);
        pages.drain(..first);
        let place = self.place_of(pages[0]);
        let origin = Origin {
            space: scene.fault.space,
            base: scene.fault.at.0.wrapping_sub(scene.found.page.index),
            is_mapped,
        };
        if self.outbox.is_logging() {
            for run in PageRun::divide(pages.iter().copied()) {
                self.outbox
                    .log(match wanted.filter(|&wanted| run.contains(wanted)) {
                        Some(_) => Decision::PageIn(run),
                        None => Decision::Ahead(run),
                    });
            }
        }
        Some(self.begin_fetch(pages, frames, place, wanted, origin))
    }

    /// The pages that are read along with one that belongs to no stream, itself included: its
    /// neighbours in an aligned block. All are with the pager side by side, and none is in memory.
    fn measure_around(&self, scene: &Scene, advice: Advice) -> Group {
        let index = scene.found.page.index;
        let few = self
            .config
            .default_cluster_pages
            .min(self.config.cluster_pages);
        let before = (index % u64::from(few)) as u32;
        match advice {
            Advice::Random => self.measure_both_ways(scene, 0, 1),
            Advice::Normal | Advice::Sequential | Advice::Reverse => {
                self.measure_both_ways(scene, before, few - before)
            }
        }
    }

    /// The pages that one request can bring: up to `before` before the wanted one, and up to
    /// `from` from it on.
    pub(crate) fn measure_both_ways(&self, scene: &Scene, before: u32, from: u32) -> Group {
        let index = scene.found.page.index;
        let up = self.measure_stored(scene, index, from, Heading::Forward);
        let down = self.measure_stored(scene, index, before + 1, Heading::Backward);
        Group {
            first: down.first,
            pages: down.pages + up.pages - 1,
        }
    }

    /// The place of the request for a page, and for those beside it.
    pub(crate) fn place_of(&self, page: PageId) -> Place {
        let object = self.memory.objects().get(page.object);
        match (object.entry(page.index).slot(), object.backing()) {
            (Some(first), _) => Place::Swap { first },
            (None, Backing::External(pager) | Backing::Copy(pager)) => Place::External { pager },
            (None, Backing::Swap) => unreachable!("a stored page has a slot"),
        }
    }
}
