//! The cost of work on machines of some years. Sources: data sheets and published measurements of
//! the kind `lmbench` makes, rounded; none is exact for any one machine.

use crate::world::Costs;

/// A processor of the 2020s: two instructions a nanosecond, a minor fault in half a microsecond,
/// 16 GB/s to fill memory.
pub const PRESENT: Costs = Costs {
    instruction_ps: 500,
    // A trace that counts references only is mostly one of page changes or of blocks.
    reference_ps: 10_000,
    fault_ns: 500,
    zero_ns: 250,
    copy_ns: 400,
    page_table_ns: 50,
    reverse_map_ns: 40,
    question_ns: 30,
    swap_request_ns: 4_000,
    file_request_ns: 4_000,
    // LZ4 on pages of programs at work, with a sum over the bytes.
    compress_ns: 4_000,
    decompress_ns: 1_800,
    message_ns: 1_500,
    messages_per_swap_request: 0,
    messages_per_file_request: 0,
    switch_ns: 2_000,
    fork_ns: 50_000,
};

/// A 450 to 1000 MHz processor of about 2001, as the reverse map was measured on.
pub const YEAR_2002: Costs = Costs {
    instruction_ps: 1_500,
    reference_ps: 30_000,
    fault_ns: 2_000,
    zero_ns: 4_000,
    copy_ns: 8_000,
    page_table_ns: 100,
    reverse_map_ns: 150,
    question_ns: 120,
    swap_request_ns: 15_000,
    file_request_ns: 15_000,
    message_ns: 5_000,
    switch_ns: 4_000,
    fork_ns: 300_000,
    ..PRESENT
};

/// A 90 MHz processor of 1995, as the clustered paging of OSF Mach was measured on.
pub const YEAR_1995: Costs = Costs {
    instruction_ps: 15_000,
    reference_ps: 300_000,
    fault_ns: 20_000,
    zero_ns: 50_000,
    copy_ns: 100_000,
    page_table_ns: 1_000,
    reverse_map_ns: 1_000,
    question_ns: 1_000,
    swap_request_ns: 150_000,
    file_request_ns: 150_000,
    message_ns: 60_000,
    switch_ns: 20_000,
    fork_ns: 2_000_000,
    ..PRESENT
};

/// The machine of a year: `present`, `2002` or `1995`.
pub fn of_year(year: &str) -> Option<Costs> {
    match year {
        "present" => Some(PRESENT),
        "2002" => Some(YEAR_2002),
        "1995" => Some(YEAR_1995),
        _ => None,
    }
}

/// The cost of a system's work on another machine: the machine's times, and the system's messages.
pub const fn on(machine: Costs, system: Costs) -> Costs {
    Costs {
        messages_per_swap_request: system.messages_per_swap_request,
        messages_per_file_request: system.messages_per_file_request,
        ..machine
    }
}
