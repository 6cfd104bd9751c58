//! The names of the kernel's functions. `scripts/kernel-build` puts them into a part of the image
//! that the linker leaves empty: a line for each, its address in hexadecimal digits and its name,
//! in the order of addresses.

use core::slice;

unsafe extern "C" {
    static kernel_symbols: u8;
    static kernel_symbols_end: u8;
}

/// The name of the function around `address`, and how far into it that is; `None` if names were
/// not put in, or it is no address of a function.
pub fn find(address: u64) -> Option<(&'static str, u64)> {
    let start = &raw const kernel_symbols;
    let bytes = &raw const kernel_symbols_end as usize - start as usize;
    // SAFETY: the linker has set both around a part of the image, which is not written to.
    let table = unsafe { slice::from_raw_parts(start, bytes) };
    let end = table.iter().position(|&byte| byte == 0)?;
    let text = core::str::from_utf8(&table[..end]).ok()?;
    let functions = text.lines().filter_map(|line| {
        let (digits, name) = line.split_once(' ')?;
        Some((u64::from_str_radix(digits, 16).ok()?, name))
    });
    let (start, name) = functions
        .take_while(|(start, _)| *start <= address)
        .last()?;
    Some((name, address - start))
}
