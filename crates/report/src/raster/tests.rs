use tidemark_results::analysis::map::{Region, Row, SCHEMA};
use tidemark_results::analysis::{TimeUnit, TraceFacts};

use super::*;

fn record(rows_of: &[usize], columns: usize) -> MapRecord {
    let region = |(at, rows): (usize, &usize)| Region {
        process: 0,
        program: String::new(),
        label: "x".into(),
        start: at as u64 * 1000,
        pages: *rows as u64,
        touched: *rows as u64,
        records: 0,
        stores: 0,
        fetches: 0,
        rows: (0..*rows)
            .map(|row| Row {
                start: at as u64 * 1000 + row as u64,
                pages: 1,
                from: row % columns,
                cells: vec![row as u64 + 1],
            })
            .collect(),
    };
    MapRecord {
        schema: SCHEMA.into(),
        tidemark: String::new(),
        trace: TraceFacts {
            source: String::new(),
            command: vec![],
            page_bytes: 4096,
            granularity: "exact".into(),
            time_unit: TimeUnit::References,
            records: 0,
            pages: 0,
            processes: 1,
            time: columns as u64,
            is_cut: false,
            is_pages_estimate: false,
            windows: None,
            pages_at_once: None,
            chosen: None,
        },
        columns,
        column_time: 1,
        regions: rows_of.iter().enumerate().map(region).collect(),
        marks: vec![],
    }
}

#[test]
fn bands_fill_the_height_and_none_is_lost() {
    let raster = raster(&record(&[1000, 1, 30], 64), 64, 200, 2, 12);
    assert_eq!(raster.height, 200);
    assert_eq!(raster.bands.len(), 3);
    assert!(raster.bands.iter().all(|band| band.height >= 12));
    // The highest address is at the top.
    assert_eq!(raster.bands[0].region, 2);
}

#[test]
fn every_row_of_cells_is_seen_whatever_the_height() {
    for height in [1, 7, 40, 333] {
        let raster = raster(&record(&[40], 40), 80, height, 0, 1);
        assert_eq!(raster.most, 40, "{height}");
        // A cell of the last row is at the top, two pixels wide.
        let top = raster.cells[..80]
            .iter()
            .filter(|cell| **cell == 40)
            .count();
        assert_eq!(top, 2, "{height}");
    }
}

#[test]
fn more_regions_than_pixels_make_the_raster_higher() {
    let raster = raster(&record(&[1; 50], 4), 4, 20, 1, 3);
    assert_eq!(raster.bands.len(), 50);
    assert_eq!(raster.height, 99);
    assert!(raster.band_at(0).is_some() && raster.band_at(1).is_none());
}

#[test]
fn levels_are_logarithmic_and_nothing_is_zero() {
    assert_eq!((level(0, 100), level(100, 100)), (0, 255));
    assert!(level(1, 1_000_000) >= 1 && level(1, 1_000_000) < level(1000, 1_000_000));
}
