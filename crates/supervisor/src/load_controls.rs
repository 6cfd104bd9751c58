//! The load controls of whole tasks, by the names that people write.

use tidemark_core::load::registry::{self, Entry};
use tidemark_results::{Refusal, refuse};

/// The load control of a run that is not told of another.
pub const DEFAULT: &str = "working-set";
/// The load control that lets every task run.
pub const NONE: &str = "none";

/// Returns the load control called `name`, if processes that really run can be controlled by it.
///
/// # Errors
/// If there is none of that name, or it acts on single pages of a program.
pub fn find(name: &str) -> Result<&'static Entry, Refusal> {
    match registry::find(name) {
        Some(entry) if entry.description.is_live => Ok(entry),
        Some(_) => refuse!(
            "`{name}` spares or ages single pages of a program, which is for simulations; of those \
             that stop whole programs there are: {}",
            names().join(", ")
        ),
        None => refuse!(
            "`{name}`: no such load control; there are: {}",
            names().join(", ")
        ),
    }
}

/// The names of those there are, in the order of their history.
pub fn names() -> Vec<&'static str> {
    let live = registry::entries().iter().map(|entry| entry.description);
    live.filter(|it| it.is_live).map(|it| it.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_act_on_single_pages_are_refused_with_the_names_of_the_others() {
        for name in names() {
            assert_eq!(find(name).unwrap().description.name, name);
        }
        let refused = |name| find(name).unwrap_err().to_string();
        assert!(refused("swap-token").contains("spares or ages"));
        assert!(refused("swap-token").ends_with(&names().join(", ")));
        assert!(refused("working-sets").contains("no such load control; there are: none, "));
    }
}
