//! The kernel's command line: what it boots with.

use tidemark_results::{Refusal, refuse};

/// The program that runs scripts, and what a script is called on the volume.
pub const SHELL: [&str; 2] = ["sh", "script"];
/// The separators of arguments on the command line, where nothing can be quoted.
const SEPARATORS: [char; 4] = [',', ' ', '\t', '\n'];

/// The most that the kernel keeps of its command line (`kernel/src/arch/loader.rs`).
const LINE_BYTES_MAX: usize = 2048;

/// The settings that a kernel boots with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The memory of programs.
    pub memory_bytes: u64,
    /// The layout of memory: `demand` or `clustered`.
    pub layout: &'static str,
    /// The replacement policy.
    pub policy: String,
    /// The load control.
    pub load_control: String,
    /// The seed of the policy's random numbers.
    pub seed: u64,
    /// The factor by which the core's clock is faster.
    pub pace: u64,
    /// True if the clock counts faults.
    pub is_in_step: bool,
    /// True if only what programs map is paged.
    pub is_pinned: bool,
    /// True if decisions are logged.
    pub is_logging: bool,
    /// The fault to make.
    pub inject: Option<String>,
    /// The first program and its arguments.
    pub words: Vec<String>,
}

impl Parameters {
    /// The command line.
    ///
    /// # Errors
    /// A word can't stand in it.
    pub fn line(&self) -> Result<String, Refusal> {
        for word in &self.words {
            if word.is_empty() || word.contains(SEPARATORS) {
                refuse!("`{word}`: the kernel's command line takes no blanks and commas");
            }
        }
        let choose = |is_first, first, second| if is_first { first } else { second };
        let mut line = format!(
            "memory={} layout={} policy={} load={} seed={} pace={} time={} programs={} log={}",
            self.memory_bytes,
            self.layout,
            self.policy,
            self.load_control,
            self.seed,
            self.pace,
            choose(self.is_in_step, "faults", "real"),
            choose(self.is_pinned, "pinned", "paged"),
            choose(self.is_logging, "yes", "no"),
        );
        if let Some(fault) = &self.inject {
            line.push_str(&format!(" inject={fault}"));
        }
        line.push_str(&format!(" run={}", self.words.join(",")));
        if line.len() > LINE_BYTES_MAX {
            refuse!(
                "the kernel's command line is {} bytes long, and may be {LINE_BYTES_MAX}",
                line.len()
            );
        }
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn booting(words: &[&str]) -> Parameters {
        Parameters {
            memory_bytes: 8 << 20,
            layout: "clustered",
            policy: "clock".into(),
            load_control: "none".into(),
            seed: 1,
            pace: 1,
            is_in_step: true,
            is_pinned: false,
            is_logging: false,
            inject: Some("read:3".into()),
            words: words.iter().map(|&word| word.into()).collect(),
        }
    }

    #[test]
    fn a_command_line_names_every_setting() {
        assert_eq!(
            booting(&["sheep", "4"]).line().unwrap(),
            "memory=8388608 layout=clustered policy=clock load=none seed=1 pace=1 \
             time=faults programs=paged log=no inject=read:3 run=sheep,4"
        );
    }

    #[test]
    fn words_that_would_be_several_are_refused() {
        for word in ["", "a b", "a,b"] {
            let told = booting(&["touch", word]).line().unwrap_err().to_string();
            assert!(told.contains("takes no blanks and commas"), "{told}");
        }
    }

    #[test]
    fn a_line_that_the_kernel_does_not_keep_is_refused() {
        let long = "a".repeat(1900);
        assert!(booting(&["touch", &long]).line().is_ok());
        let told = booting(&["touch", &long, &long]).line().unwrap_err();
        assert!(
            told.to_string()
                .contains("3928 bytes long, and may be 2048"),
            "{told}"
        );
    }
}
