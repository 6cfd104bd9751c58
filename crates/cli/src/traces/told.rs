//! The errors of traces in the command's words: which options do what is advised.

use tidemark_trace::error::{Otherwise, Useless};
use tidemark_trace::{Error, ErrorKind};

/// The error in one line.
pub fn told(error: &Error) -> String {
    let kind = &error.kind;
    match kind {
        ErrorKind::Useless(part) => {
            let option = match part {
                Useless::TimeUnit => "--time-unit",
                Useless::Hexadecimal => "--hexadecimal",
            };
            let reason = part.reason();
            format!("`{option}` would have no effect: {reason}; leave it out")
        }
        ErrorKind::Other {
            name,
            remedy,
            formats: formats @ [_, ..],
        } => {
            let formats: Vec<String> = formats.iter().map(|it| format!("`--from {it}`")).collect();
            format!("is {name}; {remedy} with {}", formats.join(" or "))
        }
        _ => format!("{error}{}", remedy(kind)),
    }
}

/// The end of a line that says what is wrong.
fn remedy(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Cut { .. } => ", or read those with `--partial`",
        ErrorKind::NoReferences => "; is it of the kind that `--from` says?",
        ErrorKind::UnknownColumns { .. } | ErrorKind::AmbiguousColumns { .. } => {
            " with `--columns page=NAME`, or `address=NAME`"
        }
        ErrorKind::NamelessColumns { .. } => ", with `--columns page=N`, or `address=N`",
        ErrorKind::NoUnit { .. } => {
            " with `--time-unit s`, `ms`, `us`, `100ns`, `ns` or `instructions`, or leave the \
             times out with `--time-unit none`"
        }
        ErrorKind::Malformed {
            otherwise: Some(otherwise),
            ..
        } => match otherwise {
            Otherwise::WithoutTimes => ", or leave the times out with `--time-unit none`",
            Otherwise::InSeconds => "; `--time-unit s` reads seconds with fractions",
            Otherwise::ByKey => "; `--columns key=…` takes any text",
            Otherwise::InLargerPages => "; a larger `--page-size` has fewer",
        },
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use tidemark_trace::Place;

    use super::*;

    #[test]
    fn what_is_wrong_with_a_file_is_remedied_by_options() {
        let names = "a, b";
        let malformed = |expected, otherwise| ErrorKind::Malformed {
            expected,
            found: "x".into(),
            otherwise: Some(otherwise),
        };
        let lines = [
            (
                ErrorKind::Cut { records: 7 },
                "truncated in the middle of a part, 7 records before it are intact; copy it \
                 again, or read those with `--partial`",
            ),
            (
                ErrorKind::AmbiguousColumns {
                    names: names.into(),
                },
                "several columns could hold pages: a, b; name one with `--columns page=NAME`, or \
                 `address=NAME`",
            ),
            (
                ErrorKind::NamelessColumns { columns: 2 },
                "2 columns without names; say which holds pages, from 1, with `--columns \
                 page=N`, or `address=N`",
            ),
            (
                ErrorKind::NoUnit { name: "t".into() },
                "column `t` has times of no unit; name it with `--time-unit s`, `ms`, `us`, \
                 `100ns`, `ns` or `instructions`, or leave the times out with `--time-unit none`",
            ),
            (
                malformed("a page number", Otherwise::ByKey),
                "`x`; needs a page number; `--columns key=…` takes any text",
            ),
            (
                malformed("sorted times", Otherwise::WithoutTimes),
                "`x`; needs sorted times, or leave the times out with `--time-unit none`",
            ),
            (
                ErrorKind::Useless(Useless::TimeUnit),
                "`--time-unit` would have no effect: there is no column of times; leave it out",
            ),
            (
                ErrorKind::Other {
                    name: "a record of perf's",
                    remedy: "import what it prints,",
                    formats: &["perf"],
                },
                "is a record of perf's; import what it prints, with `--from perf`",
            ),
        ];
        for (kind, line) in lines {
            assert_eq!(told(&Error::new(kind)), line);
        }
        let unknown = ErrorKind::UnknownColumns {
            names: names.into(),
        };
        assert_eq!(
            told(&Error::at(Place::Line(1), unknown)),
            "line 1: no column is known to hold pages among: a, b; name one with `--columns \
             page=NAME`, or `address=NAME`"
        );
    }
}
