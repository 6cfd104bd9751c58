use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Outside of managed addresses.
const STACK: usize = 0x7ffc_0000_0000;
const HEAP: usize = RANGE.start + 0x10_0000;
const MOST: usize = 1 << 20;

/// Words by their addresses, and pages that are out.
#[derive(Default)]
struct Fake {
    bytes: BTreeMap<usize, u8>,
    out: BTreeSet<usize>,
}

impl Fake {
    fn put(&mut self, at: usize, words: &[usize]) -> &mut Self {
        for (index, word) in words.iter().enumerate() {
            for (offset, byte) in word.to_ne_bytes().into_iter().enumerate() {
                self.bytes.insert(at + index * 8 + offset, byte);
            }
        }
        self
    }

    fn text(&mut self, at: usize, length: usize) -> &mut Self {
        (0..length).for_each(|offset| _ = self.bytes.insert(at + offset, b'x'));
        self.bytes.insert(at + length, 0);
        self
    }
}

impl Memory for Fake {
    fn read(&self, at: usize, into: &mut [u8]) -> Result<(), usize> {
        for (offset, byte) in into.iter_mut().enumerate() {
            let address = at + offset;
            if self.out.contains(&(address & !(PAGE - 1))) {
                return Err(address);
            }
            *byte = self.bytes.get(&address).copied().unwrap_or(b'x');
        }
        Ok(())
    }
}

fn call(number: libc::c_long, arguments: &[usize]) -> Call {
    let mut all = [0; 6];
    for (into, argument) in all.iter_mut().zip(arguments) {
        *into = *argument as u64;
    }
    Call {
        id: 1,
        thread: 1,
        number: number as u32,
        arguments: all,
    }
}

/// The pages needed, counted from the heap.
fn pages(needs: &Needs) -> Vec<(usize, usize)> {
    let pages = needs.ranges.iter();
    let pages = pages.map(|(start, end)| ((start - HEAP) / PAGE, (end - HEAP) / PAGE));
    pages.collect()
}

fn needed(memory: &Fake, number: libc::c_long, arguments: &[usize]) -> Vec<(usize, usize)> {
    let needs = collect(&call(number, arguments), memory, MOST);
    assert!(!needs.is_too_large && needs.unread.is_none(), "{needs:?}");
    pages(&needs)
}

#[test]
fn a_buffer_is_needed_from_its_first_page_to_its_last() {
    let memory = Fake::default();
    let read = |start, bytes| needed(&memory, libc::SYS_read, &[3, start, bytes]);
    assert_eq!(read(HEAP, 1), [(0, 1)]);
    assert_eq!(read(HEAP + 4095, 2), [(0, 2)]);
    assert_eq!(read(HEAP + 10, 3 * PAGE), [(0, 4)]);
    assert_eq!(read(STACK, 3 * PAGE), []);
    assert_eq!(read(HEAP, 0), []);
    assert_eq!(needed(&memory, libc::SYS_getcwd, &[HEAP, 10]), [(0, 1)]);
    assert_eq!(
        needed(&memory, libc::SYS_getrandom, &[HEAP, PAGE + 1, 0]),
        [(0, 2)]
    );
}

#[test]
fn what_may_come_back_with_less_is_cut_and_all_else_refused() {
    let memory = Fake::default();
    let read = call(libc::SYS_read, &[3, HEAP, 1 << 40]);
    assert_eq!(pages(&collect(&read, &memory, MOST)), [(0, MOST / PAGE)]);
    let poll = call(libc::SYS_ppoll, &[HEAP, MOST, 0, 0]);
    assert!(collect(&poll, &memory, MOST).is_too_large);
    // No more than there is in the range.
    let last = call(libc::SYS_write, &[3, RANGE.end - 1, usize::MAX]);
    let needs = collect(&last, &memory, MOST);
    assert_eq!(needs.ranges.bytes(), PAGE);
}

#[test]
fn an_unknown_call_needs_the_page_of_each_argument_and_the_next() {
    let memory = Fake::default();
    let arguments = [HEAP + 5, STACK, HEAP + 10 * PAGE];
    assert_eq!(needed(&memory, 9999, &arguments), [(0, 2), (10, 12)]);
    assert_eq!(
        needed(&memory, libc::SYS_statx, &[3, HEAP + 7, 0, 0, STACK]),
        [(0, 2)]
    );
    // What is left in the registers of arguments that it does not have is none.
    let left = [STACK, HEAP, HEAP + 7 * PAGE, HEAP + 9 * PAGE];
    assert_eq!(needed(&memory, libc::SYS_fstat, &left), [(0, 2)]);
}

#[test]
fn a_vector_leads_to_its_buffers() {
    let mut memory = Fake::default();
    memory.put(STACK, &[HEAP, 1, HEAP + 5 * PAGE, PAGE + 1, STACK, 9]);
    for number in [
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_preadv2,
        libc::SYS_vmsplice,
    ] {
        assert_eq!(needed(&memory, number, &[3, STACK, 3]), [(0, 1), (5, 7)]);
    }
    memory.put(HEAP + 9 * PAGE, &[HEAP, 1]);
    let own = needed(&memory, libc::SYS_writev, &[3, HEAP + 9 * PAGE, 1]);
    assert_eq!(own, [(0, 1), (9, 10)]);
}

#[test]
fn a_message_leads_to_its_name_its_vector_and_its_control_data() {
    let mut memory = Fake::default();
    let vector = STACK + 512;
    let name_bytes = 16;
    memory.put(vector, &[HEAP, 10]);
    memory.put(
        STACK,
        &[
            HEAP + 2 * PAGE,
            name_bytes,
            vector,
            1,
            HEAP + 4 * PAGE,
            64,
            0,
        ],
    );
    for number in [libc::SYS_sendmsg, libc::SYS_recvmsg] {
        assert_eq!(
            needed(&memory, number, &[3, STACK, 0]),
            [(0, 1), (2, 3), (4, 5)]
        );
    }
    let sent = needed(&memory, libc::SYS_sendmmsg, &[3, STACK, 1, 0]);
    assert_eq!(sent, [(0, 1), (2, 3), (4, 5)]);
}

#[test]
fn the_words_of_a_program_are_needed_to_their_ends() {
    let mut memory = Fake::default();
    memory.put(STACK, &[HEAP, HEAP + 10, HEAP + 2 * PAGE, 0]);
    memory
        .text(HEAP, 3)
        .text(HEAP + 10, 20)
        .text(HEAP + 2 * PAGE, PAGE + 1);
    memory
        .put(STACK + 256, &[STACK + 512, 0])
        .text(STACK + 512, 4);
    let arguments = [STACK + 1024, STACK, STACK + 256];
    assert_eq!(
        needed(&memory, libc::SYS_execve, &arguments),
        [(0, 1), (2, 4)]
    );
    let at = [3, STACK + 1024, STACK, STACK + 256, 0];
    assert_eq!(needed(&memory, libc::SYS_execveat, &at), [(0, 1), (2, 4)]);
    // Many words of one page count once.
    let words: Vec<usize> = (0..600).map(|_| HEAP).chain([0]).collect();
    memory.put(STACK + 4096, &words);
    let arguments = [HEAP, STACK + 4096, 0];
    let needs = collect(&call(libc::SYS_execve, &arguments), &memory, 8 * PAGE);
    assert_eq!((pages(&needs), needs.is_too_large), (vec![(0, 2)], false));
}

#[test]
fn memory_that_is_out_on_the_way_is_named() {
    let mut memory = Fake::default();
    memory.put(HEAP, &[HEAP + 5 * PAGE, 1]);
    memory.out.insert(HEAP);
    let writev = call(libc::SYS_writev, &[3, HEAP, 1]);
    let needs = collect(&writev, &memory, MOST);
    assert_eq!(needs.unread, Some(HEAP));
    assert_eq!(pages(&needs), [(0, 1)]);
    memory.out.clear();
    let needs = collect(&writev, &memory, MOST);
    assert_eq!((needs.unread, pages(&needs)), (None, vec![(0, 1), (5, 6)]));
}

#[test]
fn lists_are_as_long_as_their_counts_say() {
    let memory = Fake::default();
    let many = 2 * PAGE / 8;
    assert_eq!(
        needed(&memory, libc::SYS_ppoll, &[HEAP, many + 1]),
        [(0, 3)]
    );
    assert_eq!(
        needed(&memory, libc::SYS_epoll_pwait, &[3, HEAP, 1]),
        [(0, 1)]
    );
    assert_eq!(
        needed(&memory, libc::SYS_mincore, &[HEAP, PAGE, HEAP + PAGE]),
        [(1, 2)]
    );
    let sets = [8 * PAGE + 1, HEAP, 0, HEAP + 4 * PAGE, STACK, 0];
    assert_eq!(needed(&memory, libc::SYS_pselect6, &sets), [(0, 2), (4, 6)]);
}

#[test]
fn memory_behind_options_and_filters_is_needed() {
    let mut memory = Fake::default();
    memory.put(STACK, &[3, HEAP]);
    assert_eq!(needed(&memory, libc::SYS_seccomp, &[1, 0, STACK]), [(0, 1)]);
    let prctl = [libc::PR_SET_SECCOMP as usize, 2, STACK];
    assert_eq!(needed(&memory, libc::SYS_prctl, &prctl), [(0, 1)]);
    let (level, name) = (libc::SOL_SOCKET as usize, libc::SO_ATTACH_FILTER as usize);
    let option = [3, level, name, STACK, 16];
    assert_eq!(needed(&memory, libc::SYS_setsockopt, &option), [(0, 1)]);
    memory.put(STACK + 64, &[100]);
    let option = [3, 1, 2, HEAP, STACK + 64];
    assert_eq!(needed(&memory, libc::SYS_getsockopt, &option), [(0, 1)]);
    memory.put(STACK + 128, &[0, HEAP + PAGE, 0]);
    assert_eq!(
        needed(&memory, libc::SYS_futex_waitv, &[STACK + 128, 1]),
        [(1, 2)]
    );
}
