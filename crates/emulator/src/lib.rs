//! The kernel under an emulator: [`image`] makes volumes of programs and files; [`parameters`] is
//! the kernel's command line; [`machine`] starts the emulator, shows the kernel's console and waits
//! for its end.

#![forbid(unsafe_code)]

pub mod image;
pub mod machine;
pub mod parameters;
