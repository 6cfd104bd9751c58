//! A map as pixels: regions get bands, rows and columns become pixels.
//!
//! A band is as high as its region has rows, but high enough to be seen, and the sum is the height
//! that was asked for. Where several cells fall on one pixel the hottest shows, so that a thin scan
//! across a large region stays visible; where a cell covers several, all show it.

use tidemark_results::analysis::map::{MapRecord, Region};

/// A map in pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raster {
    /// Pixels across.
    pub width: usize,
    /// Pixels down: of all bands and of what stands between them.
    pub height: usize,
    /// References at each pixel, from the upper left, row by row; 0 where there are none and
    /// between bands.
    pub cells: Vec<u64>,
    /// The most references of a pixel.
    pub most: u64,
    /// The rows of each region, from above: the highest address of the first process comes first.
    pub bands: Vec<Band>,
}

/// The rows of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// The region, by its place in the record.
    pub region: usize,
    /// Its first row of pixels.
    pub top: usize,
    /// The number of rows of pixels.
    pub height: usize,
}

/// Lays `record` out on `width` by about `height` pixels, with `between` rows of pixels between
/// bands and at least `least` in each. Every region keeps at least one row; with many regions the
/// raster is as much higher as that takes.
pub fn raster(
    record: &MapRecord,
    width: usize,
    height: usize,
    between: usize,
    least: usize,
) -> Raster {
    let order = order(record);
    let heights = band_heights(record, &order, height, between, least);
    let mut bands = vec![];
    let mut top = 0;
    for (region, height) in order.into_iter().zip(heights) {
        bands.push(Band {
            region,
            top,
            height,
        });
        top += height + between;
    }
    let height = top.saturating_sub(between);
    let mut raster = Raster {
        width,
        height,
        cells: vec![0; width * height],
        most: 0,
        bands,
    };
    for band in raster.bands.clone() {
        raster.draw(record, band);
    }
    raster.most = raster.cells.iter().copied().max().unwrap_or(0);
    raster
}

/// The heat of a cell from 1 to 255 on a logarithmic scale; 0 for none.
pub fn level(records: u64, most: u64) -> u8 {
    if records == 0 {
        return 0;
    }
    let part = ((records + 1) as f64).ln() / ((most.max(1) + 1) as f64).ln();
    (part * 254.0).round() as u8 + 1
}

/// Regions from the top of the picture to its bottom: processes in order, and within each the
/// highest address first, as memory is usually drawn.
fn order(record: &MapRecord) -> Vec<usize> {
    let mut order: Vec<usize> = (0..record.regions.len()).collect();
    order.sort_by_key(|at| {
        let region = &record.regions[*at];
        (region.process, std::cmp::Reverse(region.start), *at)
    });
    order
}

/// The height of each band: in proportion to the root of its rows, so that a heap of thousands of
/// rows leaves room for a stack of five, and at least `least`.
fn band_heights(
    record: &MapRecord,
    order: &[usize],
    height: usize,
    between: usize,
    least: usize,
) -> Vec<usize> {
    let weights: Vec<f64> = order
        .iter()
        .map(|at| (record.regions[*at].rows.len() as f64).powf(0.6))
        .collect();
    let gaps = between * order.len().saturating_sub(1);
    let room = height.saturating_sub(gaps);
    let least = least.min(room / order.len().max(1)).max(1);
    let spare = room.saturating_sub(least * order.len()) as f64;
    let total: f64 = weights.iter().sum::<f64>().max(1e-9);
    // Rounding the running sum, not each height, keeps the total right.
    let mut until = 0.0;
    let mut given = 0;
    weights
        .iter()
        .map(|weight| {
            until += weight / total * spare;
            let more = (until.round() as usize).saturating_sub(given);
            given += more;
            least + more
        })
        .collect()
}

impl Raster {
    /// The band of the row of pixels `y`, if it is in one.
    pub fn band_at(&self, y: usize) -> Option<&Band> {
        let at = self
            .bands
            .partition_point(|band| band.top <= y)
            .checked_sub(1)?;
        Some(&self.bands[at]).filter(|band| y < band.top + band.height)
    }

    fn draw(&mut self, record: &MapRecord, band: Band) {
        let region = &record.regions[band.region];
        let count = region.rows.len();
        for (at, row) in region.rows.iter().enumerate() {
            // Addresses rise upwards.
            let place = count - 1 - at;
            let top = band.top + place * band.height / count;
            let bottom = band.top + ((place + 1) * band.height).div_ceil(count);
            let bottom = bottom.clamp(top + 1, band.top + band.height);
            for (column, records) in row.cells.iter().enumerate().filter(|(_, cell)| **cell > 0) {
                let column = row.from + column;
                let left = column * self.width / record.columns.max(1);
                let right = ((column + 1) * self.width).div_ceil(record.columns.max(1));
                let right = right.clamp(left + 1, self.width.max(left + 1));
                self.heat((left, right), (top, bottom), *records);
            }
        }
    }

    fn heat(&mut self, across: (usize, usize), down: (usize, usize), records: u64) {
        for y in down.0..down.1.min(self.height) {
            let line = &mut self.cells[y * self.width..(y + 1) * self.width];
            for cell in &mut line[across.0.min(self.width)..across.1.min(self.width)] {
                *cell = (*cell).max(records);
            }
        }
    }
}

/// The addresses of a region, as numbers in hexadecimal.
pub fn addresses(region: &Region, page_bytes: u64) -> String {
    let first = region.start.saturating_mul(page_bytes);
    let end = region.start.saturating_add(region.pages);
    let end = end.saturating_mul(page_bytes);
    format!("{first:x}–{end:x}")
}

#[cfg(test)]
mod tests;
