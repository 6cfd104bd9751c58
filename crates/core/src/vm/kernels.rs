//! Sequences that simulated kernels alone turn on, by a setting each; without it, what they are
//! asked changes nothing.
//!
//! | setting | file | asked by |
//! | --- | --- | --- |
//! | [`Pacing`](crate::kernels::Pacing) | `pacing` | `make_room` and `take_frames` of `reclaim` |
//! | [`Placement::InPlace`](crate::kernels::Placement) | `in_place` | `send_out` and `launder` of
//! `reclaim`, `serve` of `faults`, `measure_around` of `page_in` |
//! | [`SwapAhead`](crate::kernels::SwapAhead) | `swap_readahead` | `start_page_in` of `page_in`,
//! `meet_ahead` of `faults` |
//! | [`Passes::is_double_paging`](crate::kernels::Passes) | `double_paging` | `launder` of
//! `reclaim`, `end_fetch` and `end_store` of `transfer`, `handle_idle` |
//! | [windows](crate::vm::Vm::map_window) | `buffered_io` | `serve` of `faults` |

pub(crate) mod buffered_io;
pub(crate) mod double_paging;
pub(crate) mod in_place;
pub(crate) mod pacing;
pub(crate) mod swap_readahead;
