//! Containers: signs of being in one, and what permits more there.
//!
//! A container's runtime decides what is permitted in it: by the devices and the capabilities that
//! it passes in, and by its filter of system calls. Commands that change the machine are typed
//! outside.

use std::path::Path;

use tidemark_live::sys::Errno;

use crate::host::Caller;

/// The files by which podman, docker and systemd mark containers.
const MARKS: [&str; 3] = [
    "/run/.containerenv",
    "/.dockerenv",
    "/run/systemd/container",
];
/// The variable by which podman, systemd and LXC mark them.
const VARIABLE: &str = "container";

/// Returns true in a container of a runtime that marks them.
pub fn is_around() -> bool {
    let is_named = std::env::var_os(VARIABLE).is_some_and(|name| !name.is_empty());
    is_named || MARKS.iter().any(|mark| Path::new(mark).exists())
}

/// The step that permits userfaultfd to a caller in a container, where opening the device has
/// failed with `device`.
pub fn remedy(caller: Caller, device: Errno) -> &'static str {
    match (caller, device) {
        (Caller::Root, _) => "start it with `--device /dev/userfaultfd`",
        (Caller::NamespaceRoot, Errno::NOENT) => {
            "start it with `--device /dev/userfaultfd`; outside of it \
             `sudo setfacl -m u:$USER:rw /dev/userfaultfd` permits that to you"
        }
        (Caller::NamespaceRoot, _) => {
            "outside of it, `sudo setfacl -m u:$USER:rw /dev/userfaultfd`"
        }
        (Caller::User, Errno::NOENT) => {
            "start it with `--device /dev/userfaultfd`; outside of it \
             `sudo chmod a+rw /dev/userfaultfd` permits that to all users"
        }
        (Caller::User, _) => {
            "outside of it, `sudo chmod a+rw /dev/userfaultfd`; then start it again"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_in_a_container_names_the_device_and_what_is_typed_outside() {
        let callers = [Caller::Root, Caller::NamespaceRoot, Caller::User];
        for (caller, device) in callers.into_iter().zip([Errno::NOENT; 3]) {
            let told = remedy(caller, device);
            assert!(told.starts_with("start it with `--device"), "{told}");
        }
        for caller in [Caller::NamespaceRoot, Caller::User] {
            let told = remedy(caller, Errno::ACCESS);
            assert!(told.starts_with("outside of it, `sudo "), "{told}");
        }
    }
}
