//! One HTML page with everything about a trace, that needs nothing but itself.
//!
//! Text and tables stand in the page as such; what the pictures need travels compressed and is
//! unpacked in the browser. The page says by its own policy that it may load nothing.

pub(crate) mod payload;
pub(crate) mod tables;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tidemark_results::analysis::report::ReportRecord;

use crate::{headline, words};

const REPORT: Content<'_> = Content {
    main: include_str!("page/page.html"),
    style: "",
    scripts: &[
        include_str!("page/heat.js"),
        include_str!("page/footprint.js"),
        include_str!("page/regions.js"),
        include_str!("page/phases.js"),
        include_str!("page/page.js"),
    ],
};
/// The document around the contents of every page.
const SHELL: &str = include_str!("page/shell.html");
const STYLE: &str = include_str!("page/page.css");
/// The scripts that every page runs before its own.
const SCRIPTS_FIRST: [&str; 3] = [
    include_str!("page/numbers.js"),
    include_str!("page/frame.js"),
    include_str!("page/chart.js"),
];
const UPLOT: &str = include_str!("../vendor/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../vendor/uplot/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("../vendor/uplot/LICENSE");

/// The page.
pub fn page(record: &ReportRecord) -> String {
    let parts = vec![
        ("title", escaped(&words::title(&record.trace))),
        ("facts", escaped(&words::facts(&record.trace))),
        ("headline", marked(&headline::headline(record))),
        ("needs", tables::needs(&record.curve)),
        ("windows", tables::windows(&record.wss)),
        ("footprint", tables::footprint(record)),
        ("largest", tables::largest(&record.map)),
        ("phases", tables::phases(&record.phases)),
        ("regions", tables::regions(&record.map)),
        ("space_time", tables::space_time(record)),
        ("version", escaped(&record.tidemark)),
    ];
    assembled(&REPORT, parts, &payload::packed(record))
}

/// The contents of one kind of page.
pub(crate) struct Content<'a> {
    /// Its sections, with a `{{name}}` for each part.
    pub main: &'a str,
    /// Its style, after that of all pages.
    pub style: &'a str,
    /// Its scripts, after those of all pages.
    pub scripts: &'a [&'a str],
}

/// A page of this content, with its parts and what it carries.
pub(crate) fn assembled(
    content: &Content<'_>,
    mut parts: Vec<(&str, String)>,
    payload: &[u8],
) -> String {
    let uplot = format!("/*\n{UPLOT_LICENCE}*/\n{UPLOT}");
    let scripts = [&SCRIPTS_FIRST[..], content.scripts].concat().join("\n");
    let main = filled(content.main, &parts);
    parts.extend([
        ("main", main),
        ("licence", "uPlot, © 2022 Leon Sorokin, MIT licence".into()),
        ("style", format!("{UPLOT_STYLE}\n{STYLE}{}", content.style)),
        ("payload", STANDARD.encode(payload)),
        ("uplot", uplot),
        (
            "script",
            format!("'use strict';\n(() => {{\n{scripts}\n}})();"),
        ),
    ]);
    filled(SHELL, &parts)
}

/// `template` with each `{{name}}` replaced by its part. Parts are not looked into.
fn filled(template: &str, parts: &[(&str, String)]) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after
            .split_once("}}")
            .expect("the template closes what it opens");
        let part = parts.iter().find(|(known, _)| *known == name);
        page.push_str(before);
        page.push_str(&part.expect("every name of the template has a part").1);
        rest = after;
    }
    page + rest
}

/// Text as it may stand in a page.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// Text as it may stand in a page, with what is between backticks as code.
pub(crate) fn marked(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // Without its fellow a backtick stands for itself.
    if parts.len().is_multiple_of(2) {
        return escaped(text);
    }
    let parts = parts.iter().enumerate();
    let parts = parts.map(|(at, part)| match at % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_backticks_is_code() {
        assert_eq!(marked("say `a<b` so"), "say <code>a&lt;b</code> so");
        assert_eq!(marked("one ` alone"), "one ` alone");
    }

    #[test]
    fn names_are_replaced_once() {
        let parts = [("a", "{{b}}".to_owned()), ("b", "2".to_owned())];
        assert_eq!(filled("<{{a}}|{{b}}>", &parts), "<{{b}}|2>");
    }

    #[test]
    fn text_can_not_become_markup() {
        assert_eq!(
            escaped("<a b='c'>&\""),
            "&lt;a b=&#39;c&#39;&gt;&amp;&quot;"
        );
    }
}
