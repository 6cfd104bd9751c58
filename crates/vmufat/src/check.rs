//! Checking: what on a volume contradicts itself.
//!
//! Every record's chain is followed until it ends, or until it reaches a block that can't be its
//! next. Of two files that claim a block the one whose record comes first has it. The work is one
//! step for each block and each record, whatever the volume says.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::layout::Layout;
use crate::name::Name;
use crate::record::{File, Record, unknown_kind};
use crate::table::{DAMAGED, END, FREE, Table};

/// Something that is wrong with a volume. Records are numbered from 0, in the directory's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The FAT does not say of a block that it is part of the FAT, the directory or the root.
    SystemWord {
        /// The block.
        block: u16,
        /// Its word in the FAT.
        word: u16,
        /// The word it should have.
        expected: u16,
    },
    /// A record is of no known kind.
    UnknownKind {
        /// The record.
        slot: usize,
        /// The file's name.
        name: Name,
        /// The byte for the kind.
        byte: u8,
    },
    /// A record is there twice: a deletion was cut off.
    Doubled {
        /// The second of the two.
        slot: usize,
        /// The file's name.
        name: Name,
        /// The first.
        of: usize,
    },
    /// Two files have the same name.
    SameName {
        /// The second of the two.
        slot: usize,
        /// The name.
        name: Name,
        /// The first.
        of: usize,
    },
    /// A file has no name.
    Nameless {
        /// The number of the file's directory record.
        slot: usize,
    },
    /// A file is not in the blocks that its record promises.
    Chain {
        /// The number of the file's directory record.
        slot: usize,
        /// Its name.
        name: Name,
        /// The fault at its end.
        fault: Fault,
        /// The number of sound blocks from its beginning.
        sound_blocks: u16,
        /// The last of these; the first block if there is none.
        sound_last: u16,
    },
    /// Blocks are in use, and by no file: a change was cut off.
    Lost {
        /// The lowest of them.
        first: u16,
        /// The number of these blocks.
        blocks: u16,
    },
}

/// A fault of the chain of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The chain leads to a block that is none of those for files.
    OutOfRange(u16),
    /// The chain leads to a block that is free.
    Free(u16),
    /// The chain leads to a block that is marked as damaged.
    Damaged(u16),
    /// The chain comes back to one of its own blocks.
    Cycle(u16),
    /// The chain leads to a block of another file.
    Shared {
        /// The block.
        block: u16,
        /// The other file's record.
        with: usize,
    },
    /// The chain ends, but has another number of blocks than its record says.
    Length {
        /// The record's number of blocks.
        recorded: u16,
    },
}

impl Finding {
    /// Reports whether files can be written and deleted all the same.
    pub fn is_harmless(&self) -> bool {
        match self {
            Finding::SystemWord { .. }
            | Finding::UnknownKind { .. }
            | Finding::SameName { .. }
            | Finding::Nameless { .. }
            | Finding::Lost { .. } => true,
            // To free the blocks of one file would free those of another.
            Finding::Doubled { .. } | Finding::Chain { .. } => false,
        }
    }
}

/// The outcome of a check.
pub(crate) struct Checked {
    /// Everything that is wrong.
    pub(crate) findings: Vec<Finding>,
    /// The blocks of [`Finding::Lost`].
    pub(crate) lost: Vec<u16>,
}

/// Checks a volume.
pub(crate) fn check(layout: &Layout, table: &Table, records: &[Record]) -> Checked {
    let mut findings = check_system(layout, table);
    let mut owners = Owners::new(layout);
    let mut seen: BTreeMap<Name, usize> = BTreeMap::new();
    for (slot, record) in records.iter().enumerate() {
        let Some(file) = File::decode(record) else {
            continue;
        };
        let name = file.name;
        let of = seen.get(&name).copied();
        if let Some(of) = of.filter(|&of| records[of] == *record) {
            findings.push(Finding::Doubled { slot, name, of });
            continue;
        }
        if let Some(byte) = unknown_kind(record) {
            findings.push(Finding::UnknownKind { slot, name, byte });
        }
        match of {
            _ if name.is_empty() => findings.push(Finding::Nameless { slot }),
            Some(of) => findings.push(Finding::SameName { slot, name, of }),
            None => {
                seen.insert(name, slot);
            }
        }
        findings.extend(owners.follow(table, slot, &file));
    }
    let lost = owners.find_lost(table);
    if let Some(&first) = lost.first() {
        let blocks = lost.len() as u16;
        findings.push(Finding::Lost { first, blocks });
    }
    Checked { findings, lost }
}

/// Checks what the table says of the volume's own blocks.
fn check_system(layout: &Layout, table: &Table) -> Vec<Finding> {
    let wrong = layout.system_words().filter_map(|(block, expected)| {
        let word = table.word(block);
        (word != expected).then_some(Finding::SystemWord {
            block,
            word,
            expected,
        })
    });
    wrong.collect()
}

/// The owners of the blocks for files.
struct Owners {
    /// The record of each block's file, and one more; 0 for none.
    slots: Vec<u32>,
}

impl Owners {
    fn new(layout: &Layout) -> Owners {
        Owners {
            slots: vec![0; usize::from(layout.directory_first())],
        }
    }

    /// Follows the chain of a file, and gives it the blocks that are sound.
    fn follow(&mut self, table: &Table, slot: usize, file: &File) -> Option<Finding> {
        let mut at = file.first;
        let (mut sound_blocks, mut sound_last) = (0, at);
        let fault = loop {
            if let Some(fault) = self.obstacle(table, slot, at) {
                break fault;
            }
            self.slots[usize::from(at)] = slot as u32 + 1;
            sound_blocks += 1;
            sound_last = at;
            match table.word(at) {
                END if sound_blocks == file.blocks => return None,
                END => {
                    break Fault::Length {
                        recorded: file.blocks,
                    };
                }
                next => at = next,
            }
        };
        Some(Finding::Chain {
            slot,
            name: file.name,
            fault,
            sound_blocks,
            sound_last,
        })
    }

    /// The reason why `block` can't be the next of a file, if there is one.
    fn obstacle(&self, table: &Table, slot: usize, block: u16) -> Option<Fault> {
        let Some(&owner) = self.slots.get(usize::from(block)) else {
            return Some(Fault::OutOfRange(block));
        };
        match (owner as usize, table.word(block)) {
            (0, FREE) => Some(Fault::Free(block)),
            (0, DAMAGED) => Some(Fault::Damaged(block)),
            (0, _) => None,
            (owner, _) if owner == slot + 1 => Some(Fault::Cycle(block)),
            (owner, _) => Some(Fault::Shared {
                block,
                with: owner - 1,
            }),
        }
    }

    /// The blocks in use that no file has.
    fn find_lost(&self, table: &Table) -> Vec<u16> {
        let blocks = (0..).zip(&self.slots);
        let lost = blocks
            .filter(|&(block, &owner)| owner == 0 && !matches!(table.word(block), FREE | DAMAGED));
        lost.map(|(block, _)| block).collect()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::SystemWord {
                block,
                word,
                expected,
            } => write!(
                out,
                "block {block} is the volume's own, and the FAT has {word:#06x} for it instead of \
                 {expected:#06x}"
            ),
            Finding::UnknownKind { slot, name, byte } => {
                write!(
                    out,
                    "`{name}` (record {slot}) is of unknown kind {byte:#04x}"
                )
            }
            Finding::Doubled { slot, name, of } => {
                write!(
                    out,
                    "`{name}` is recorded twice, in records {of} and {slot}"
                )
            }
            Finding::SameName { slot, name, of } => {
                write!(
                    out,
                    "two files are called `{name}`, in records {of} and {slot}"
                )
            }
            Finding::Nameless { slot } => write!(out, "the file of record {slot} has no name"),
            Finding::Chain {
                slot,
                name,
                fault,
                sound_blocks,
                ..
            } => match fault {
                Fault::Length { .. } => write!(
                    out,
                    "`{name}` (record {slot}) has {sound_blocks} blocks, and {fault}"
                ),
                _ => write!(
                    out,
                    "`{name}` (record {slot}) is good for {sound_blocks} blocks, and then {fault}"
                ),
            },
            Finding::Lost { first, blocks } => write!(
                out,
                "{blocks} blocks are in use by no file, the first of them {first}"
            ),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::OutOfRange(block) => {
                write!(
                    out,
                    "leads to block {block}, which is none of those for files"
                )
            }
            Fault::Free(block) => write!(out, "leads to block {block}, which is free"),
            Fault::Damaged(block) => {
                write!(out, "leads to block {block}, which is marked as damaged")
            }
            Fault::Cycle(block) => write!(out, "comes back to its own block {block}"),
            Fault::Shared { block, with } => {
                write!(
                    out,
                    "leads to block {block}, which is of the file of record {with}"
                )
            }
            Fault::Length { recorded } => write!(out, "its record says {recorded}"),
        }
    }
}
