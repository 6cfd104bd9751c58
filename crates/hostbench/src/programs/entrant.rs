//! The contenders of a suite of programs, as they are named on the command line.

use std::path::PathBuf;
use std::str::FromStr;

/// A way to run a program in limited memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entrant {
    /// `tidemark run`.
    Own {
        /// Another build of the command than this one.
        command: Option<PathBuf>,
        /// Further options of `tidemark run`.
        options: Vec<String>,
    },
    /// The kernel's swap, at this read-ahead or the host's own.
    KernelSwap {
        /// The logarithm of the pages read together.
        page_cluster: Option<u32>,
    },
    /// The kernel's swap behind a compressed pool in memory.
    Zswap,
    /// The kernel's swap on a compressed device in memory, and on nothing else.
    Zram,
}

impl Entrant {
    /// The name in tables and records.
    pub fn name(&self) -> String {
        match self {
            Entrant::Own { command, options } => {
                let mut name = "tidemark".to_owned();
                if let Some(command) = command {
                    name.push_str(&format!("@{}", command.display()));
                }
                if !options.is_empty() {
                    name.push_str(&format!(":{}", options.join(" ")));
                }
                name
            }
            Entrant::KernelSwap { page_cluster: None } => "kernel-swap".to_owned(),
            Entrant::KernelSwap {
                page_cluster: Some(page_cluster),
            } => format!("kernel-swap:{page_cluster}"),
            Entrant::Zswap => "zswap".to_owned(),
            Entrant::Zram => "zram".to_owned(),
        }
    }

    /// Tells if it is `tidemark run`.
    pub fn is_own(&self) -> bool {
        match self {
            Entrant::Own { .. } => true,
            Entrant::KernelSwap { .. } | Entrant::Zswap | Entrant::Zram => false,
        }
    }
}

impl FromStr for Entrant {
    type Err = String;

    /// Reads `tidemark`, `tidemark:OPTIONS`, `tidemark@COMMAND:OPTIONS`, `kernel-swap`,
    /// `kernel-swap:N`, `zswap` or `zram`.
    fn from_str(text: &str) -> Result<Entrant, String> {
        let (head, rest) = match text.split_once(':') {
            Some((head, rest)) => (head, Some(rest)),
            None => (text, None),
        };
        let (kind, command) = match head.split_once('@') {
            Some((kind, command)) => (kind, Some(PathBuf::from(command))),
            None => (head, None),
        };
        match (kind, command, rest) {
            ("tidemark", command, options) => Ok(Entrant::Own {
                command,
                options: options
                    .unwrap_or_default()
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect(),
            }),
            ("kernel-swap", None, None) => Ok(Entrant::KernelSwap { page_cluster: None }),
            ("kernel-swap", None, Some(number)) => match number.parse() {
                Ok(number @ 0..=10) => Ok(Entrant::KernelSwap {
                    page_cluster: Some(number),
                }),
                _ => Err(format!(
                    "`{text}`: page-cluster is `{number}`; it must be from 0 to 10"
                )),
            },
            ("zswap", None, None) => Ok(Entrant::Zswap),
            ("zram", None, None) => Ok(Entrant::Zram),
            _ => Err(format!(
                "`{text}` is no contender of programs; there are native, tidemark, \
                 tidemark:OPTIONS, tidemark@COMMAND, kernel-swap, kernel-swap:N, zswap and zram"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contender_comes_back_from_its_name() {
        for name in [
            "tidemark",
            "tidemark:--policy=clock --in-thread",
            "tidemark@/opt/tidemark:--policy=clock",
            "kernel-swap",
            "kernel-swap:0",
            "zswap",
            "zram",
        ] {
            let entrant: Entrant = name.parse().expect("it is one");
            assert_eq!(entrant.name(), name);
        }
    }

    #[test]
    fn what_is_no_contender_is_named() {
        for name in ["", "swap", "zswap:3", "kernel-swap:11", "kernel-swap@x"] {
            let told = name.parse::<Entrant>().unwrap_err();
            assert!(told.contains(&format!("`{name}`")), "{told}");
        }
    }
}
