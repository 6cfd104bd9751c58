//! A trace that is being read: its references, its map and its samples, block by block.

use tidemark_trace::{
    Block, Blocks, Error, Event, Granularity, Header, MappingEvent, Placed, Unpacker,
};

use super::extent::Extent;
use super::passing::Passer;
use super::progress::Progress;
use super::wanted::Wanted;
use crate::analysis::map::{AddressMap, Fineness, Mapper};
use crate::analysis::references::Columns;
use crate::analysis::sampled_windows::WindowsReading;
use crate::analysis::sampler::Sampler;
use crate::analysis::{Choice, Loading, References};

/// A trace that is being read.
pub(super) struct Reading {
    loading: Loading,
    mapper: Mapper,
    sampler: Option<Sampler>,
    granularity: Granularity,
    /// The windows of a trace that was sampled.
    pub(super) windows: Option<WindowsReading>,
    has_map: bool,
    pub(super) has_mappings: bool,
    pub(super) has_pages: bool,
    keeps_pages: bool,
    keeps_times: bool,
    /// The columns that are kept.
    kept: Columns,
}

impl Reading {
    /// Begins to read the parts that are `wanted` of a trace, which has `processes`.
    pub(super) fn new(header: &Header, wanted: &Wanted, extent: Extent, processes: u64) -> Reading {
        // Without a map, marks still come from one, of the least size.
        let fineness = wanted.map.unwrap_or(Fineness {
            columns_max: 2,
            rows_max: 1,
        });
        let keeps_pages = wanted.references || wanted.pages;
        let keeps_times = wanted.references && header.time != tidemark_trace::TimeUnit::References;
        let room = |is_kept| match is_kept {
            true => usize::try_from(extent.references).expect("an address has 64 bits"),
            false => 0,
        };
        Reading {
            loading: Loading::of(header, Choice::All, processes as usize),
            mapper: Mapper::new(header.time, fineness),
            sampler: wanted.sampling.as_ref().map(Sampler::new),
            granularity: header.granularity,
            windows: header.granularity.window_ns().map(WindowsReading::new),
            has_map: wanted.map.is_some(),
            has_mappings: false,
            // What processes have in common is known by the numbers of pages.
            has_pages: wanted.has_pages() || wanted.map.is_some() && processes > 1,
            keeps_pages,
            keeps_times,
            kept: Columns {
                pages: Vec::with_capacity(room(keeps_pages)),
                times: Vec::with_capacity(room(keeps_times)),
                departures: Vec::new(),
            },
        }
    }

    /// Takes in all blocks of the processes that are looked at.
    pub(super) fn take_all(
        &mut self,
        blocks: &Blocks,
        chosen: Option<&[u32]>,
        passer: &mut Passer<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        let mut unpacker = Unpacker::new()?;
        let mut block = Block::default();
        let entries = &blocks.index().entries;
        let count = entries.len();
        for (number, entry) in entries.iter().enumerate() {
            if chosen.is_some_and(|chosen| !chosen.contains(&entry.process)) {
                continue;
            }
            blocks.read(number, &mut unpacker, &mut block)?;
            self.take(&block, passer);
            progress("reading", (number + 1) as f64 / count as f64);
        }
        Ok(())
    }

    fn take(&mut self, block: &Block, passer: &mut Passer<'_>) {
        self.granularity = self.granularity.after(block);
        if let Some(windows) = &mut self.windows {
            windows.take(block);
        }
        let is_map =
            |placed: &Placed| matches!(placed.event, Event::Mapping(MappingEvent::Map { .. }));
        self.has_mappings = self.has_mappings || block.events.iter().any(is_map);
        if let Some(sampler) = &mut self.sampler {
            sampler.take(block);
        }
        match self.has_map {
            true => self.mapper.take(block),
            false => self.mapper.take_events(block),
        }
        if !self.has_pages {
            return;
        }
        self.loading.take(block);
        passer.take(|columns| {
            self.loading.hand_over(columns);
            if self.keeps_pages {
                self.kept.pages.extend_from_slice(&columns.pages);
                self.kept.departures.extend_from_slice(&columns.departures);
            }
            if self.keeps_times {
                self.kept.times.extend_from_slice(&columns.times);
            }
            self.loading.page_count()
        });
    }

    /// The references that were kept, the map and the samples.
    pub(super) fn finish(self) -> (References, AddressMap, Option<Sampler>) {
        let mut references = self.loading.finish();
        references.pages = self.kept.pages;
        references.times = self.kept.times;
        references.departures = self.kept.departures;
        references.granularity = self.granularity;
        (references, self.mapper.finish(), self.sampler)
    }
}
