//! Hints of `run --tell-runtimes` for language runtimes, which size their heaps by the machine's
//! memory: variables that they read.

use std::ffi::OsString;

/// Of managed memory a heap is left this part, of four: the rest is for what else a process has.
const HEAP_QUARTERS: u64 = 3;

/// The variables for a budget of `memory_bytes`; `variable` returns the present ones. Settings that
/// are there stay.
pub fn hints(
    memory_bytes: u64,
    variable: impl Fn(&str) -> Option<String>,
) -> Vec<(&'static str, OsString)> {
    let heap_bytes = memory_bytes / 4 * HEAP_QUARTERS;
    let heap_mib = (heap_bytes >> 20).max(1);
    let mut hints = vec![];
    // Options that stand beside others, and what says already how large the heap is to be.
    for (name, option, said) in [
        (
            "JAVA_TOOL_OPTIONS",
            format!("-XX:MaxRAM={memory_bytes}"),
            ["-XX:MaxRAM=", "-Xmx"],
        ),
        (
            "NODE_OPTIONS",
            format!("--max-old-space-size={heap_mib}"),
            ["--max-old-space-size", "--max_old_space_size"],
        ),
    ] {
        let before = variable(name).unwrap_or_default();
        if !said.iter().any(|word| before.contains(word)) {
            let all = format!("{before} {option}");
            hints.push((name, all.trim_start().into()));
        }
    }
    for (name, value) in [
        ("GOMEMLIMIT", heap_bytes.to_string()),
        ("DOTNET_GCHeapHardLimit", format!("{heap_bytes:X}")),
    ] {
        if variable(name).is_none() {
            hints.push((name, value.into()));
        }
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(before: &[(&str, &str)]) -> Vec<(&'static str, String)> {
        let variable = |name: &str| {
            let found = before.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let hints = hints(512 << 20, variable).into_iter();
        hints
            .map(|(name, value)| (name, value.into_string().unwrap()))
            .collect()
    }

    #[test]
    fn found_b21_runtimes_are_told_of_the_budget() {
        assert_eq!(
            of(&[]),
            [
                ("JAVA_TOOL_OPTIONS", "-XX:MaxRAM=536870912".into()),
                ("NODE_OPTIONS", "--max-old-space-size=384".into()),
                ("GOMEMLIMIT", "402653184".into()),
                ("DOTNET_GCHeapHardLimit", "18000000".into()),
            ]
        );
    }

    #[test]
    fn what_was_said_before_stays() {
        let told = of(&[
            ("JAVA_TOOL_OPTIONS", "-Xss1m"),
            ("NODE_OPTIONS", "--max-old-space-size=64"),
            ("GOMEMLIMIT", "off"),
        ]);
        assert_eq!(
            told,
            [
                ("JAVA_TOOL_OPTIONS", "-Xss1m -XX:MaxRAM=536870912".into()),
                ("DOTNET_GCHeapHardLimit", "18000000".into()),
            ]
        );
        let told = of(&[("JAVA_TOOL_OPTIONS", "-Xmx100m")]);
        assert!(told.iter().all(|(name, _)| *name != "JAVA_TOOL_OPTIONS"));
    }
}
