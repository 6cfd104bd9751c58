//! The workspace, and its documents: tests in one binary, which is linked once.

mod links;
mod workspace;
