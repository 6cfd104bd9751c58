//! The system calls that need `unsafe`, each behind a safe face.
#![allow(unsafe_code)]

pub mod shm;
