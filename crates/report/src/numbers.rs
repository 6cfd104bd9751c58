//! Numbers as people read them: counts, sizes, times, with few digits and a unit.

use tidemark_results::analysis::TimeUnit;

/// A count with a decimal prefix: `950`, `1.2 k`, `34 M`.
pub fn count(number: f64) -> String {
    let (value, prefix) = scaled(number, 1000.0, &["", " k", " M", " G", " T", " P"]);
    format!("{}{prefix}", digits(value))
}

/// A size with a binary unit: `4 KiB`, `1.5 MiB`.
pub fn bytes(size: f64) -> String {
    let units = [" B", " KiB", " MiB", " GiB", " TiB", " PiB"];
    let (value, unit) = scaled(size, 1024.0, &units);
    format!("{}{unit}", digits(value))
}

/// Virtual time: `1.2 G instructions`, `34 k references`, `1.5 s`.
pub fn time(amount: f64, unit: TimeUnit) -> String {
    match unit {
        TimeUnit::Nanoseconds => seconds(amount / 1e9),
        TimeUnit::Instructions | TimeUnit::References => {
            format!("{} {}", count(amount), unit.name())
        }
    }
}

/// Virtual time without the name of what it counts, for axes that name it once.
pub fn time_short(amount: f64, unit: TimeUnit) -> String {
    match unit {
        TimeUnit::Nanoseconds => seconds(amount / 1e9),
        TimeUnit::Instructions | TimeUnit::References => count(amount),
    }
}

/// A duration: `80 µs`, `1.5 s`, `2 h`.
pub fn seconds(amount: f64) -> String {
    let steps = [
        (3600.0, "h"),
        (60.0, "min"),
        (1.0, "s"),
        (1e-3, "ms"),
        (1e-6, "µs"),
    ];
    let found = steps.iter().find(|(size, _)| amount.abs() >= *size * 0.999);
    match found {
        // Minutes and hours are used where they say more than a number of seconds.
        Some((size, name)) if *size <= 1.0 || amount >= 120.0 => {
            format!("{} {name}", digits(amount / size))
        }
        Some(_) => format!("{} s", digits(amount)),
        None if amount == 0.0 => "0 s".into(),
        None => format!("{} ns", digits(amount * 1e9)),
    }
}

/// A number with about three digits that mean something, without zeros at its end.
pub fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 || v == 0.0 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.1 => 2,
        v => (2.0 - v.log10().floor()).min(9.0) as usize,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn scaled<'a>(number: f64, base: f64, units: &[&'a str]) -> (f64, &'a str) {
    let mut value = number;
    let mut at = 0;
    while value.abs() >= base * 0.9995 && at + 1 < units.len() {
        value /= base;
        at += 1;
    }
    (value, units[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_three_digits_and_a_prefix() {
        let told: Vec<String> = [0.0, 7.0, 950.0, 1234.0, 99_960.0, 999_950.0, 3.4e7]
            .into_iter()
            .map(count)
            .collect();
        assert_eq!(told, ["0", "7", "950", "1.23 k", "100 k", "1 M", "34 M"]);
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(bytes(4096.0), "4 KiB");
        assert_eq!(bytes(1.5 * 1024.0 * 1024.0), "1.5 MiB");
        assert_eq!(bytes(12.0), "12 B");
    }

    #[test]
    fn durations_have_the_unit_that_fits() {
        let told: Vec<String> = [0.0, 2e-9, 8e-5, 0.001, 1.5, 90.0, 150.0, 7200.0]
            .into_iter()
            .map(seconds)
            .collect();
        let expected = [
            "0 s", "2 ns", "80 µs", "1 ms", "1.5 s", "90 s", "2.5 min", "2 h",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn virtual_time_names_its_unit() {
        assert_eq!(time(1.2e9, TimeUnit::Instructions), "1.2 G instructions");
        assert_eq!(time(1.5e9, TimeUnit::Nanoseconds), "1.5 s");
    }
}
