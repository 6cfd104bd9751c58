//! The machine and the date of a measurement.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use tidemark_results::dated::Machine;
use tidemark_supervisor::{host, room};

/// The machine this is.
pub fn machine() -> Machine {
    let system = rustix::system::uname();
    let field = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    Machine {
        kernel: format!("{} {}", field(system.release()), field(system.machine())),
        processor: model.map(|model| model.trim_start_matches([' ', '\t', ':']).to_owned()),
        processors: host::processors(),
        memory_bytes: room::physical_memory_bytes(),
    }
}

/// The commit of the working folder, marked if there are changes that are not in it.
pub fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if is_changed {
        format!("{commit}+changes")
    } else {
        commit
    })
}

/// This moment as `2026-11-21T07:30Z`.
pub fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    date_of(since.map_or(0, |since| since.as_secs()))
}

/// A moment in seconds since 1970 as `2026-11-21T07:30Z`.
///
/// The calendar runs from March to February, so that a leap day comes last
/// (E. G. Richards, Mapping Time, 1998).
fn date_of(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year}-{month:02}-{day:02}T{:02}:{:02}Z",
        second / 3600,
        second / 60 % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_civil() {
        assert_eq!(date_of(0), "1970-01-01T00:00Z");
        assert_eq!(date_of(951_782_400 + 3661), "2000-02-29T01:01Z");
        assert_eq!(date_of(1_795_246_200), "2026-11-21T07:30Z");
    }
}
