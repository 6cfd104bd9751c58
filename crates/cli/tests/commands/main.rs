//! The commands that need little of the machine: their tests, in one binary, which is linked once.

mod analyses;
mod bad_input;
mod containers;
mod control;
mod diff;
mod experiment;
mod imports;
mod install;
#[path = "../programs/needs.rs"]
#[allow(dead_code)]
mod needs;
mod outputs;
mod page_in;
mod policy_files;
#[path = "../programs/process_tree.rs"]
#[allow(dead_code)]
mod process_tree;
#[path = "../recorder/recording.rs"]
#[allow(dead_code)]
mod recording;
mod replay;
mod supervisor;
#[path = "../support/mod.rs"]
mod support;
mod sweep;
#[path = "../recorder/tool.rs"]
#[allow(dead_code)]
mod tool;
mod top;
mod traces;
mod views;
mod visits;
mod volume;
