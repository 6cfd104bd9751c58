//! Pictures for files: complete, of the right size, and written to be looked at.

use std::path::PathBuf;

use tidemark_report::picture::Picture;
use tidemark_report::picture::curves::curves;
use tidemark_report::picture::heat::map;
use tidemark_report::picture::sizes::sizes;

use crate::sample;

/// Writes both forms of a picture where `cargo test` keeps files, and checks what both have.
fn write(name: &str, picture: &Picture) -> (String, Vec<u8>) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (svg, png) = (picture.to_svg(), picture.to_png().unwrap());
    std::fs::write(folder.join(format!("{name}.svg")), &svg).unwrap();
    std::fs::write(folder.join(format!("{name}.png")), &png).unwrap();
    assert!(
        svg.starts_with("<svg viewBox=") && svg.ends_with("</svg>"),
        "{name}"
    );
    assert!(!svg.contains("\"NaN") && !svg.contains("\"inf"), "{name}");
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    (svg, png)
}

/// Width and height as a PNG's head has them.
fn size(png: &[u8]) -> (u32, u32) {
    let word = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (word(16), word(20))
}

#[test]
fn curves_name_every_policy_and_both_axes() {
    let (svg, png) = write("curves", &curves(&sample::curves()));
    for text in [
        "LRU",
        "WS",
        "VMIN",
        "OPT",
        ">memory<",
        "Misses by",
        "instructions",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    assert_eq!(size(&png), (1920, 1800));
}

#[test]
fn working_sets_name_windows_and_marks() {
    let (svg, _) = write("sizes", &sizes(&sample::sizes(), Some(&sample::phases())));
    for text in [
        "window 1 M",
        "window 10 M",
        "window 100 M",
        ">sort<",
        ">merge<",
        "MiB",
    ] {
        assert!(svg.contains(text), "{text}");
    }
}

#[test]
fn maps_name_regions_and_embed_their_cells() {
    let (svg, png) = write("map", &map(&sample::map()));
    for text in [
        "[heap]",
        "[stack]",
        "libc.so.6",
        "libcrypto.so.3",
        "anonymous",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(svg.contains("<image ") && svg.contains("data:image/png;base64,"));
    assert_eq!(size(&png).0, 2200);
}

#[test]
fn forty_processes_are_named_once_each_and_no_names_touch() {
    let (svg, _) = write("map-processes", &map(&sample::processes(40)));
    let mut rows: Vec<f64> = vec![];
    for process in 0..40 {
        let name = format!(">{process} cc{process}<");
        assert_eq!(svg.matches(&name).count(), 1, "{name}");
        let line = svg
            .lines()
            .find(|line| line.contains(&name))
            .unwrap_or(&svg);
        let before = &line[..line.find(&name).unwrap()];
        let y = before
            .rsplit("y=\"")
            .next()
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        rows.push(y.parse().unwrap());
    }
    for pair in rows.windows(2) {
        assert!(pair[1] - pair[0] >= 11.0, "{pair:?}");
    }
}

#[test]
fn records_without_anything_still_make_pictures() {
    let mut empty = sample::curves();
    empty.curves.clear();
    write("curves-empty", &curves(&empty));
    let mut empty = sample::sizes();
    empty.windows.clear();
    empty.trace.time = 0;
    write("sizes-empty", &sizes(&empty, None));
    let mut empty = sample::map();
    empty.regions.clear();
    empty.columns = 0;
    write("map-empty", &map(&empty));
}
