//! Every simulated machine passes the suite for machines.

use tidemark_model::conformance::{MACHINE, SHARING_MACHINE};
use tidemark_model::machine::{Kind, SimMachine};
use tidemark_model::physical::Physical;

#[test]
fn machines_keep_their_contract() {
    for kind in [Kind::Bits, Kind::SoftFaults] {
        for (name, test) in MACHINE.iter().chain(SHARING_MACHINE) {
            println!("{kind:?}: {name}");
            test(&mut SimMachine::new(kind, Physical::new(4)));
        }
    }
}
