//! Files: what mapped files and programs' text are read from, and what system calls read and write.
//!
//! Each file is one external object for all that map it or copy from it: there is one cache. A
//! separate space keeps all of them, so that pages stay cached when the last program that used
//! their file is gone, until their frames are wanted.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tidemark_core::id::{ObjectId, PagerId, SpaceId, VirtPage};
use tidemark_core::load::Turn;
use tidemark_core::vm::Vm;

/// The most pages that a file may have.
pub(super) const FILE_PAGES: u64 = 1 << 30;

/// The files of a world.
pub(super) struct Files {
    by_name: BTreeMap<String, File>,
    /// The beginning of each on its disk, in pages, by its pager's number.
    places: Vec<u64>,
}

/// A file.
#[derive(Clone, Copy, Debug)]
pub(super) struct File {
    /// Its pages, in the one cache.
    pub(super) object: ObjectId,
    /// The pager that has it.
    pub(super) pager: PagerId,
    /// The number it ever has.
    pub(super) pages: u64,
    /// Its length in bytes: all that may ever be read, until it has been cut for the first time.
    pub(super) length: u64,
}

impl Files {
    /// Lays out files one after the other, from `first` on: names, and how many pages each has.
    pub(super) fn new(vm: &mut Vm, sizes: &BTreeMap<Cow<'_, str>, u64>, first: u64) -> Files {
        let cache = vm.create_space();
        // No program runs there.
        let turn = Turn {
            order: u64::MAX,
            is_active: false,
            ..Turn::default()
        };
        vm.handle_turn(cache, turn);
        let mut files = Files {
            by_name: BTreeMap::new(),
            places: Vec::new(),
        };
        let mut place = first;
        for (name, &pages) in sizes {
            let pager = PagerId(files.places.len() as u32);
            let object = create(vm, cache, pager);
            let length = u64::MAX;
            let file = File {
                object,
                pager,
                pages,
                length,
            };
            files.by_name.insert(name.to_string(), file);
            files.places.push(place);
            place += pages;
        }
        files
    }

    /// A file.
    ///
    /// - Needs: it was among those laid out.
    pub(super) fn find(&self, name: &str) -> File {
        self.by_name[name]
    }

    /// Changes the length of a file that was among those laid out.
    pub(super) fn set_length(&mut self, name: &str, length: u64) {
        let file = self.by_name.get_mut(name);
        file.expect("files are laid out before they are used")
            .length = length;
    }

    /// The place of a page of a file on its disk.
    pub(super) fn place_of(&self, pager: PagerId, index: u64) -> u64 {
        self.places[pager.0 as usize] + index
    }
}

fn create(vm: &mut Vm, cache: SpaceId, pager: PagerId) -> ObjectId {
    let at = VirtPage(u64::from(pager.0) * FILE_PAGES);
    vm.keep_external(cache, at, FILE_PAGES, pager)
        .expect("there are fewer files than a space has room for")
}
