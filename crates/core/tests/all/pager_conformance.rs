//! Every simulated pager passes the suite for pagers.

use tidemark_core::id::{FrameId, PageId, PagerId, SlotId};
use tidemark_core::seams::pager::{Direction, Place, Reply, Request};
use tidemark_model::conformance::{Depot, PAGER};
use tidemark_model::pager::{SimPager, Temper};
use tidemark_model::physical::{Physical, Stamp};

struct SimDepot {
    pager: SimPager,
    physical: Physical,
    place: Place,
}

impl Depot for SimDepot {
    fn start(&mut self, request: Request, pages: &[PageId], frames: &[FrameId]) {
        self.pager.start(request, pages, frames);
    }

    fn next_reply(&mut self) -> Option<Reply> {
        self.pager.next_reply()
    }

    fn place_of(&self, _pages: u32) -> Place {
        self.place
    }

    fn write_frame(&mut self, frame: FrameId, stamp: Stamp) {
        self.physical.replace(frame, stamp);
    }

    fn read_frame(&mut self, frame: FrameId) -> Stamp {
        self.physical.contents(frame)
    }

    fn wait_reply(&mut self) -> Reply {
        let due = self.pager.next_due().expect("a transfer is under way");
        self.pager.advance(due);
        self.pager.next_reply().expect("it was due")
    }

    fn fail_next(&mut self, direction: Direction) -> bool {
        match direction {
            Direction::Fetch => self.pager.fail_next_fetches(1),
            Direction::Store => self.pager.fail_next_stores(1),
        }
        true
    }
}

#[test]
fn pagers_keep_their_contract() {
    let slow = Temper {
        latency_ns_min: 10,
        latency_ns_max: 1_000_000_000,
        ..Temper::CALM
    };
    let places = [
        Place::Swap { first: SlotId(3) },
        Place::External { pager: PagerId(2) },
    ];
    for temper in [Temper::CALM, slow] {
        for place in places {
            for (name, test) in PAGER {
                println!("{temper:?}, {place:?}: {name}");
                let physical = Physical::new(4);
                let pager = SimPager::new(physical.clone(), temper, 1);
                test(&mut SimDepot {
                    pager,
                    physical,
                    place,
                });
            }
        }
    }
}
