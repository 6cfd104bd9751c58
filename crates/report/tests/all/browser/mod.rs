//! The page in a browser: drawn, quiet, usable with mouse and finger, light and dark, on a phone.

mod devtools;

use std::path::{Path, PathBuf};

use devtools::Browser;
use tidemark_report::diff;
use tidemark_report::experiment;
use tidemark_report::page::page;
use tidemark_report::replay;

use crate::sample;

/// Writes the page of the sample.
fn written(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, page(&sample::report())).unwrap();
    path
}

/// A browser; without one the test is skipped, which fails where everything is required.
fn browser(name: &str) -> Option<Browser> {
    let browser = Browser::start(name);
    tidemark_testing::require(browser.is_some(), "needs chromium");
    browser
}

fn expect_quiet(browser: &Browser) {
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
    let foreign: Vec<&String> = browser
        .requests
        .iter()
        .filter(|url| !url.starts_with("file://") && !url.starts_with("about:"))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    // The page itself, once for each time it was opened; nothing beside it.
    assert!(
        browser
            .requests
            .iter()
            .all(|url| !url.starts_with("file://") || url.contains(".html"))
    );
}

fn range(browser: &mut Browser, of: &str) -> (f64, f64) {
    let x = browser.evaluate(&format!(
        "(({{ min, max }}) => [min, max])({of}.plot.scales.x)"
    ));
    (x[0].as_f64().unwrap(), x[1].as_f64().unwrap())
}

#[test]
fn a_report_on_a_desk() {
    let Some(mut browser) = browser("desk") else {
        return;
    };
    browser.show_as(1280, 900, "light", false);
    let path = written("report-desk.html");
    browser.open(&path, "");
    browser.screenshot("page-light.png");
    readings_follow_the_mouse(&mut browser);
    zooming_a_chart_moves_all_that_share_its_time(&mut browser);
    series_can_be_left_out(&mut browser);
    the_map_zooms_and_resets(&mut browser);
    axes_change_between_linear_and_logarithmic(&mut browser);
    the_theme_follows_the_system_and_the_switch(&mut browser);
    browser.open(&path, "#no-webgl");
    assert_eq!(browser.evaluate("tidemark.map.engine"), "2d");
    assert!(coloured_pixels(&mut browser) > 1000);
    expect_quiet(&browser);
}

#[test]
fn a_report_on_a_phone() {
    let Some(mut browser) = browser("phone") else {
        return;
    };
    browser.show_as(360, 740, "dark", true);
    browser.open(&written("report-phone.html"), "");
    browser.screenshot("page-phone-dark.png");
    let width = browser.evaluate("document.documentElement.scrollWidth");
    assert_eq!(width, 360, "the page is wider than the window");
    // Nothing but tables, which scroll by themselves, may be wider.
    let wide = browser.evaluate(
        "[...document.querySelectorAll('body *')].filter((e) => !e.closest('.table') && \
         e.getBoundingClientRect().right > 361).map((e) => e.tagName + '.' + e.className).join()",
    );
    assert_eq!(wide, "", "too wide");
    let ground = browser.evaluate("getComputedStyle(document.body).backgroundColor");
    assert_eq!(ground, "rgb(13, 17, 23)");
    let small = browser.evaluate(
        "[...document.querySelectorAll('button')].filter((e) => e.offsetHeight < 28).length",
    );
    assert_eq!(small, 0, "buttons too small for fingers");
    expect_quiet(&browser);
}

/// A page is slow to open if it has many elements or is laid out many times. Both are counted: a
/// time would fail on a busy machine.
#[test]
fn the_largest_report_is_laid_out_a_few_times_and_has_few_elements() {
    let Some(mut browser) = browser("largest") else {
        return;
    };
    browser.show_as(1280, 900, "light", false);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-largest.html");
    std::fs::write(&path, page(&sample::largest())).unwrap();
    let before = browser.layouts();
    let time = browser.open(&path, "");
    let layouts = browser.layouts() - before;
    let elements = browser.evaluate("document.querySelectorAll('*').length");
    println!("opened in {time:?}: {layouts} layouts of {elements} elements");
    assert!(layouts <= 30, "{layouts} layouts");
    assert!(elements.as_u64().unwrap() <= 1000, "{elements} elements");
    expect_quiet(&browser);
}

#[test]
fn regions_lead_to_their_place_and_their_size() {
    let Some(mut browser) = browser("regions") else {
        return;
    };
    browser.show_as(390, 800, "light", true);
    browser.open(&written("report-regions.html"), "");
    let press = |what: &str| format!("document.querySelector('{what}').click()");
    browser.evaluate(&press(".labels a[data-region=\"0\"]"));
    let target = browser.evaluate("document.querySelector('tr:target td').textContent");
    assert_eq!(target, "[heap]");
    browser.evaluate(&press("tr:target a[href=\"#map\"]"));
    let band = browser.evaluate(
        "(({ y0, y1 }) => tidemark.map.map.bands.filter((b) => b.top >= y0 && \
         b.top + b.height <= y1).map((b) => tidemark.map.map.regions[b.region].name).join())\
         (tidemark.map.view)",
    );
    assert_eq!(band, "[heap]");
    let marked = "(() => { const u = tidemark.curves.plot; const c = u.ctx.canvas; \
                  return c.toDataURL(); })()";
    let before = browser.evaluate(marked);
    browser.evaluate(&press("#curves .links a"));
    browser.settle();
    browser.screenshot("page-phone-marked.png");
    assert_ne!(browser.evaluate(marked), before, "nothing was marked");
    browser.evaluate(&press("#curves .links a"));
    browser.settle();
    assert_eq!(browser.evaluate(marked), before, "the mark stays");
    expect_quiet(&browser);
}

#[test]
fn axes_and_legends_can_be_read_on_a_phone() {
    let Some(mut browser) = browser("phone-axes") else {
        return;
    };
    browser.show_as(390, 800, "light", true);
    browser.open(&written("report-phone-axes.html"), "");
    for chart in ["curves", "sizes", "footprint"] {
        let ticks = browser.evaluate(&format!(
            "tidemark.{chart}.plot.axes.map((axis) => axis._values.filter((v) => v).length)"
        ));
        for axis in 0..2 {
            let count = ticks[axis].as_u64().unwrap();
            assert!(
                (3..=9).contains(&count),
                "{chart}: {count} ticks on axis {axis}"
            );
        }
        let font = browser.evaluate(&format!("tidemark.{chart}.plot.axes[0].font[0]"));
        let size = font.as_str().unwrap().split("px").next().unwrap();
        let size: f64 = size.trim().parse().unwrap();
        assert!(size >= 12.0, "{size}");
    }
    let small = browser.evaluate(
        "[...document.querySelectorAll('.chip, .legend, .labels > *')].filter((e) => \
         parseFloat(getComputedStyle(e).fontSize) < 12 || \
         e.getBoundingClientRect().right > 391).map((e) => e.textContent).join()",
    );
    assert_eq!(small, "", "too small, or out of sight");
}

#[test]
fn a_report_of_nothing() {
    let Some(mut browser) = browser("nothing") else {
        return;
    };
    let mut record = sample::report();
    record.curve.curves.clear();
    record.wss.windows.clear();
    record.map.regions.clear();
    record.map.columns = 0;
    record.phases.levels.clear();
    record.trace.time = 0;
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-nothing.html");
    std::fs::write(&path, page(&record)).unwrap();
    browser.show_as(800, 600, "light", false);
    browser.open(&path, "");
    expect_quiet(&browser);
}

#[test]
fn a_page_of_replays() {
    let Some(mut browser) = browser("replays") else {
        return;
    };
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replays.html");
    std::fs::write(&path, replay::page(&sample::replays())).unwrap();
    for (width, is_phone) in [(1280, false), (360, true)] {
        browser.show_as(width, 900, "light", is_phone);
        browser.open(&path, "");
        let across = browser.evaluate("document.documentElement.scrollWidth");
        assert!(
            across.as_u64().unwrap() <= width.into(),
            "{across}: wider than the window"
        );
    }
    browser.screenshot("page-replays.png");
    let names = "tidemark.time.now.series.map((s) => s.name).join()";
    let press = |name: &str| {
        format!(
            "[...document.querySelectorAll('button')].find((b) => b.textContent === '{name}')\
             .click()"
        )
    };
    assert_eq!(browser.evaluate(names), "sort,sqlite3");
    browser.evaluate(&press("Disks"));
    assert_eq!(browser.evaluate(names), "swap and files");
    // Another run has another length.
    assert_eq!(range(&mut browser, "tidemark.time"), (0.0, 3.0));
    browser.evaluate(
        "{ const s = document.querySelector('select'); s.value = 3; s.onchange(); s.value }",
    );
    assert_eq!(range(&mut browser, "tidemark.time"), (0.0, 1.1));
    browser.evaluate(&press("Over the optimum"));
    let found = browser.evaluate("tidemark.sweep.now.series.map((s) => s.y.join(' ')).join()");
    assert_eq!(found, "7.5 5,3.75 2.75");
    expect_quiet(&browser);
}

#[test]
fn a_page_of_differences() {
    let Some(mut browser) = browser("differences") else {
        return;
    };
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("differences.html");
    std::fs::write(&path, diff::page(&sample::differences::differences())).unwrap();
    let shown = [
        (1200, "light", false),
        (390, "light", true),
        (390, "dark", true),
    ];
    for (width, scheme, is_phone) in shown {
        browser.show_as(width, 900, scheme, is_phone);
        browser.open(&path, "");
        let across = browser.evaluate("document.documentElement.scrollWidth");
        assert!(
            across.as_u64().unwrap() <= width.into(),
            "{across}: wider than the window"
        );
        browser.screenshot(&format!("page-differences-{width}-{scheme}.png"));
    }
    // Both sides lie over one another: the first is dashed, and each policy has its colour.
    let drawn = "tidemark.curves.now.series.map((s) => `${s.name} ${s.dashed} ${s.ink}`).join()";
    assert_eq!(
        browser.evaluate(drawn),
        "LRU, before true --s0,LRU, after false --s0,OPT, before true --s1,OPT, after false --s1"
    );
    let points = "tidemark.curves.now.series.map((s) => s.x.length).join()";
    assert_eq!(browser.evaluate(points), "16,16,16,16");
    let rows = browser.evaluate(
        "[...document.querySelectorAll('#processes tbody tr')].map((r) => \
         r.cells[0].textContent).join()",
    );
    assert_eq!(rows, "cc1");
    expect_quiet(&browser);
}

fn readings_follow_the_mouse(browser: &mut Browser) {
    let [left, top, width, height] = browser.place("#curve-plot .u-over");
    browser.mouse("mouseMoved", left + width * 0.8, top + height * 0.5);
    browser.settle();
    let told = browser.evaluate("document.getElementById('tip').innerText");
    let told = told.as_str().unwrap();
    assert!(
        told.contains("MiB") && told.contains("LRU") && told.contains("misses"),
        "{told}"
    );
    let [left, top, width, height] = browser.place("#map-plot .over");
    browser.mouse("mouseMoved", left + width * 0.5, top + height * 0.5);
    browser.settle();
    let told = browser.evaluate("document.getElementById('tip').innerText");
    let told = told.as_str().unwrap();
    assert!(
        told.contains("[heap]") && told.contains("instructions"),
        "{told}"
    );
}

fn zooming_a_chart_moves_all_that_share_its_time(browser: &mut Browser) {
    let [left, top, width, height] = browser.place("#size-plot .u-over");
    let middle = top + height / 2.0;
    browser.drag((left + width * 0.25, middle), (left + width * 0.5, middle));
    let (from, to) = range(browser, "tidemark.sizes");
    assert!(
        (from / 1.05e9 - 1.0).abs() < 0.05 && (to / 2.1e9 - 1.0).abs() < 0.05,
        "{from} {to}"
    );
    let map = browser.evaluate("tidemark.map.view.x0 / tidemark.map.map.width");
    assert!((map.as_f64().unwrap() - 0.25).abs() < 0.02, "{map}");
    let phases = browser.evaluate("tidemark.phases.from");
    assert!(
        (phases.as_f64().unwrap() / from - 1.0).abs() < 0.01,
        "{phases}"
    );
    browser.evaluate("tidemark.sizes.reset()");
    assert_eq!(range(browser, "tidemark.sizes"), (0.0, 4.2e9));
}

fn series_can_be_left_out(browser: &mut Browser) {
    let press = "document.querySelector('[data-for=curves] .chip').click()";
    browser.evaluate(press);
    assert_eq!(
        browser.evaluate("tidemark.curves.plot.series[1].show"),
        false
    );
    let pressed = "document.querySelector('[data-for=curves] .chip').ariaPressed";
    assert_eq!(browser.evaluate(pressed), "false");
    browser.evaluate(press);
    assert_eq!(
        browser.evaluate("tidemark.curves.plot.series[1].show"),
        true
    );
}

fn the_map_zooms_and_resets(browser: &mut Browser) {
    assert_eq!(browser.evaluate("tidemark.map.engine"), "webgl2");
    assert!(coloured_pixels(browser) > 1000);
    let [left, top, width, height] = browser.place("#map-plot .over");
    let (a, b) = (
        (left + width * 0.4, top + height * 0.3),
        (left + width * 0.6, top + height * 0.6),
    );
    browser.drag(a, b);
    let view = "tidemark.map.view";
    let part = browser.evaluate(&format!("({view}.x1 - {view}.x0) / tidemark.map.map.width"));
    assert!(part.as_f64().unwrap() < 0.3, "{part}");
    let high = browser.evaluate(&format!(
        "({view}.y1 - {view}.y0) / tidemark.map.map.height"
    ));
    assert!(high.as_f64().unwrap() < 0.5, "{high}");
    assert!(coloured_pixels(browser) > 1000);
    browser.screenshot("page-zoomed.png");
    // A redraw has to be quick enough to follow a finger.
    let ms = browser.evaluate(
        "(() => { const t = performance.now(); for (let n = 0; n < 20; n += 1) { \
         tidemark.map.zoom(n % 2 ? 2 : 0.5); } return (performance.now() - t) / 20; })()",
    );
    println!("one zoom of the map: {ms} ms");
    browser.evaluate("tidemark.map.reset()");
    assert_eq!(browser.evaluate(&format!("{view}.x0")), 0);
}

/// The number of pixels of the map that have a colour that is no grey: cells in use.
fn coloured_pixels(browser: &mut Browser) -> u64 {
    let counted = browser.evaluate(
        "(() => { const c = document.querySelector('#map-plot canvas'); \
         const d = document.createElement('canvas'); d.width = c.width; d.height = c.height; \
         const x = d.getContext('2d'); x.drawImage(c, 0, 0); \
         const p = x.getImageData(0, 0, d.width, d.height).data; let n = 0; \
         for (let i = 0; i < p.length; i += 4) { \
         const c = [p[i], p[i + 1], p[i + 2]]; \
         if (Math.max(...c) - Math.min(...c) > 40) n += 1; } \
         return n; })()",
    );
    counted.as_u64().unwrap()
}

fn axes_change_between_linear_and_logarithmic(browser: &mut Browser) {
    let press = |text: &str| {
        format!(
            "[...document.querySelectorAll('[data-for=curves] button')]\
             .find((b) => b.textContent === '{text}').click()"
        )
    };
    assert_eq!(browser.evaluate("tidemark.curves.plot.scales.x.distr"), 3);
    browser.evaluate(&press("linear"));
    assert_eq!(browser.evaluate("tidemark.curves.plot.scales.x.distr"), 1);
    browser.evaluate(&press("Lifetime"));
    let least = browser.evaluate("Math.min(...tidemark.curves.now.series[0].y)");
    assert!(
        (least.as_f64().unwrap() - 4.2e9 / 8_899_279.0).abs() < 1.0,
        "{least}"
    );
    browser.screenshot("page-lifetime.png");
    browser.evaluate(&press("x axis: log"));
    browser.evaluate(&press("Misses"));
}

fn the_theme_follows_the_system_and_the_switch(browser: &mut Browser) {
    let ground = "getComputedStyle(document.body).backgroundColor";
    browser.show_as(1280, 900, "dark", false);
    browser.settle();
    assert_eq!(browser.evaluate(ground), "rgb(13, 17, 23)");
    browser.screenshot("page-dark.png");
    browser.evaluate("document.getElementById('theme').click()");
    assert_eq!(browser.evaluate(ground), "rgb(255, 255, 255)");
    browser.show_as(1280, 900, "light", false);
    browser.evaluate("document.getElementById('theme').click()");
    assert_eq!(browser.evaluate(ground), "rgb(13, 17, 23)");
    browser.evaluate("document.getElementById('theme').click()");
    assert_eq!(browser.evaluate(ground), "rgb(255, 255, 255)");
}

/// Writes the page of made-up experiments and opens it.
fn open_experiments(browser: &mut Browser, name: &str) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, experiment::page(&sample::experiments())).unwrap();
    browser.open(&path, "");
}

#[test]
fn a_page_of_experiments_on_a_desk() {
    let Some(mut browser) = browser("experiments-desk") else {
        return;
    };
    browser.show_as(1280, 900, "light", false);
    open_experiments(&mut browser, "experiments-desk.html");
    browser.screenshot("experiments-light.png");
    let verdicts = browser
        .evaluate("[...document.querySelectorAll('.verdict')].map((e) => e.textContent).join()");
    assert_eq!(
        verdicts,
        "reproduced,partly,not reproduced,not measured,reproduced,does not hold"
    );
    // Lines are drawn within their picture, and a run that was given up is told.
    let lines = browser.evaluate("document.querySelectorAll('figure svg polyline').length");
    assert_eq!(lines, 2);
    let outside = browser.evaluate(
        "[...document.querySelectorAll('figure svg circle')].filter((e) => e.cx.baseVal.value < 0 \
         || e.cx.baseVal.value > 560 || e.cy.baseVal.value < 0 || e.cy.baseVal.value > 300).length",
    );
    assert_eq!(outside, 0);
    let cut = browser.evaluate("document.querySelectorAll('.bars i.cut').length");
    assert_eq!(cut, 1);
    let link = browser.evaluate(
        "document.querySelector('#contents a').getAttribute('href') === '#' + \
         document.querySelectorAll('section')[1].id",
    );
    assert_eq!(link, true);
    let dark = browser.evaluate(
        "(document.getElementById('theme').click(), document.getElementById('theme').click(), \
         getComputedStyle(document.body).backgroundColor)",
    );
    assert_eq!(dark, "rgb(13, 17, 23)");
    browser.screenshot("experiments-dark.png");
    expect_quiet(&browser);
}

#[test]
fn a_page_of_experiments_on_a_phone() {
    let Some(mut browser) = browser("experiments-phone") else {
        return;
    };
    browser.show_as(360, 740, "dark", true);
    open_experiments(&mut browser, "experiments-phone.html");
    browser.screenshot("experiments-phone-dark.png");
    let hidden = browser.evaluate(
        "[...document.querySelectorAll('.verdict')].filter((e) => \
         e.getBoundingClientRect().right > 361).length",
    );
    assert_eq!(hidden, 0, "a verdict is out of sight");
    let width = browser.evaluate("document.documentElement.scrollWidth");
    assert_eq!(width, 360, "the page is wider than the window");
    expect_quiet(&browser);
}
