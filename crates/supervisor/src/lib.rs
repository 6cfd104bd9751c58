//! Supervises programs: starts them, serves the engines in their processes, and divides memory
//! among these.
//!
//! [`management`] runs a program to its end: [`supervise`](mod@supervise) starts it and waits while
//! [`tree`] serves its processes by the rules of [`tidemark_partition`], and [`hand_over`] gives
//! those that outlive it to another supervisor. [`requests`] takes requests to a run, [`remote`]
//! sends them; [`timeline`] writes the rates of tasks over time. [`jobs`] hands out tokens for
//! jobs, by the memory that is free. [`swap`] makes the file that pages go to, [`folder`] the place
//! of the socket, [`loading`] the list of libraries that programs load, [`load_controls`] those
//! that can decide which tasks run. [`signals`] passes on signals, with the help of a [`witness`].
//! [`departures`], [`peers`] and [`strangers`] know the processes that end, that connect, and that
//! never do; [`acceptance`] knows when none can connect, and [`foreground`] who has the terminal.
//! [`recorded`] serves processes that are recorded, [`recorder`] starts them under Valgrind,
//! [`speed`] times a program by itself. [`host`], [`program`] and [`room`] find what this machine
//! and a program permit, [`container`] what a container's runtime does.
//!
//! It knows no command line. What can't be done is a [`Refusal`](tidemark_results::Refusal).

#![forbid(unsafe_code)]

mod acceptance;
pub mod calls;
mod connection;
pub mod container;
mod departures;
mod ended;
mod entrance;
pub mod folder;
mod foreground;
pub mod hand_over;
pub mod host;
pub mod interrupt;
pub mod jobs;
pub mod load_controls;
pub mod loading;
pub mod management;
mod maps;
mod peers;
mod processor_time;
pub mod program;
mod record;
pub mod recorded;
pub mod recorder;
pub mod remote;
pub mod requests;
pub mod room;
pub mod signals;
pub mod speed;
mod strangers;
pub mod supervise;
pub mod swap;
mod time;
pub mod timeline;
pub mod tree;
pub mod witness;
