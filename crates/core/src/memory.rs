//! Memory: the tables of what is where. Frames, objects, address spaces, the reverse map and the
//! slots of the swap store.

pub mod address_space;
pub mod frame;
pub mod object;
pub mod page_run;
mod page_tables;
pub mod reverse_map;
pub mod swap_slots;
