//! Parts: what several policies are built from. None of them is a policy.

pub(crate) mod adaptive;
pub(crate) mod aging;
#[cfg(test)]
pub(crate) mod bench;
pub(crate) mod directory;
pub(crate) mod frame_heap;
pub(crate) mod ghost_list;
pub(crate) mod lists;
pub(crate) mod local_sets;
pub(crate) mod page_hash;
pub(crate) mod per_space;
pub(crate) mod recency_segments;
pub(crate) mod second_reference;
pub(crate) mod sequential;
pub(crate) mod shortfall;
pub(crate) mod space_clocks;
