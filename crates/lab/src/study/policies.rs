//! The policies that a curve can be of: those with an analysis of their own, and every other, by
//! simulation.

use std::fmt;
use std::str::FromStr;

use tidemark_core::policies;

use crate::near::collect_near;

/// A policy by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Least recently used: exact for all sizes in one pass.
    Lru,
    /// The working set.
    WorkingSet,
    /// The optimum of variable space.
    Vmin,
    /// The optimum of fixed space.
    Opt,
    /// The page-fault frequency policy.
    Pff,
    /// A policy of the registry, or from a file that has been loaded.
    Simulated(&'static str),
}

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy(pub String);

impl Named {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Named::Lru => "lru",
            Named::WorkingSet => "ws",
            Named::Vmin => "vmin",
            Named::Opt => "opt",
            Named::Pff => "pff",
            Named::Simulated(name) => name,
        }
    }

    /// Every name there is. What has an analysis of its own is not simulated too.
    pub fn all() -> Vec<&'static str> {
        let own = ["lru", "ws", "vmin", "opt", "pff"];
        let simulated = policies::entries()
            .iter()
            .map(|entry| entry.description.name)
            .filter(|name| !own.contains(name));
        own.into_iter().chain(simulated).collect()
    }
}

impl FromStr for Named {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Named, UnknownPolicy> {
        match name {
            "lru" => Ok(Named::Lru),
            "ws" => Ok(Named::WorkingSet),
            "vmin" => Ok(Named::Vmin),
            "opt" => Ok(Named::Opt),
            "pff" => Ok(Named::Pff),
            other => match tidemark_plugin::find(other) {
                Some(description) => Ok(Named::Simulated(description.name)),
                None => Err(UnknownPolicy(other.to_owned())),
            },
        }
    }
}

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Named::all();
        let near = collect_near(&self.0, all.iter().copied());
        write!(formatter, "`{}`: no such policy; ", self.0)?;
        match near.is_empty() {
            true => write!(formatter, "there are {}", all.join(", ")),
            false => write!(formatter, "did you mean `{}`?", near.join("` or `")),
        }
    }
}

impl std::error::Error for UnknownPolicy {}
