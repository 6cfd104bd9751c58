//! Files: what mapped files and programs' text are read from.
//!
//! Each file is one external object, whoever maps it. A space of its own maps all of them, so that
//! pages stay cached when the last program that mapped their file is gone.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tidemark_core::id::{ObjectId, PagerId, SpaceId, VirtPage};
use tidemark_core::load::Turn;
use tidemark_core::machine::Rights;
use tidemark_core::vm::Vm;

/// How many pages a file may have.
const FILE_PAGES: u64 = 1 << 30;

/// The files of a world.
pub(super) struct Files {
    by_name: BTreeMap<String, ObjectId>,
    /// Where each begins on its disk, in pages, by its pager's number.
    places: Vec<u64>,
}

impl Files {
    /// Lays out files one after the other, from `first` on: names, and how many pages each has.
    pub(super) fn new(vm: &mut Vm, sizes: &BTreeMap<Cow<'_, str>, u64>, first: u64) -> Files {
        let cache = vm.create_space();
        // Nobody runs there.
        let (order, is_active) = (u64::MAX, false);
        vm.handle_turn(cache, Turn { order, is_active });
        let mut files = Files {
            by_name: BTreeMap::new(),
            places: Vec::new(),
        };
        let mut place = first;
        for (name, &pages) in sizes {
            let object = files.create(vm, cache);
            files.by_name.insert(name.to_string(), object);
            files.places.push(place);
            place += pages;
        }
        files
    }

    /// The object of a file.
    ///
    /// - Needs: the file was among those laid out.
    pub(super) fn object(&self, name: &str) -> ObjectId {
        self.by_name[name]
    }

    /// Where a page of a file is on its disk.
    pub(super) fn place_of(&self, pager: PagerId, index: u64) -> u64 {
        self.places[pager.0 as usize] + index
    }

    fn create(&mut self, vm: &mut Vm, cache: SpaceId) -> ObjectId {
        let number = self.places.len() as u32;
        let at = VirtPage(u64::from(number) * FILE_PAGES);
        vm.map_external(cache, at, FILE_PAGES, PagerId(number), 0, Rights::Read)
            .expect("there are fewer files than a space has room for")
    }
}
