//! Arrays on a server of Redis: contents, connections that are cut, and what is lost.

use std::path::Path;
use std::time::Duration;

use tidemark_core::random::SplitMix64;
use tidemark_regions::{Builder, Engine, Error, Pager};
use tidemark_stores::{create, open, swap};
use tidemark_testing::permitted;

use crate::proxy::Proxy;
use crate::server::Server;

pub const PAGE: usize = 4096;
pub const MIB: u64 = 1 << 20;

pub fn settings() -> Builder {
    let settings = Engine::builder().memory(MIB);
    settings
        .swap_folder(Path::new("/var/tmp"))
        .swap_size(16 * MIB)
}

/// An engine, unless the kernel does not permit one.
pub fn start(settings: Builder) -> Option<Engine> {
    permitted(settings.start(), Error::is_refusal)
}

/// Reads and writes at random, in lockstep with an array, and calls `between` before each turn.
pub fn in_lockstep(region: &mut [u8], plain: &mut [u8], turns: u64, between: impl FnMut(u64)) {
    let mut random = SplitMix64::new(turns);
    tidemark_testing::in_lockstep(region, plain, turns, |most| random.below(most), between);
}

const BYTES: usize = 3 * MIB as usize + 777;

#[test]
fn what_is_written_is_there_when_it_is_opened_again() {
    let Some(server) = Server::start() else {
        return;
    };
    let Some(engine) = start(settings()) else {
        return;
    };
    let url = server.url("weights/one");
    let store = create(&url, BYTES as u64).unwrap();
    let mut region = engine.write_pager(store).unwrap();
    assert!(region.iter().all(|byte| *byte == 0));
    let mut plain = vec![0; BYTES];
    in_lockstep(region.as_mut_slice(), &mut plain, 500, |_| {});
    drop(region);

    let store = open(&url).unwrap();
    assert_eq!(store.bytes(), BYTES as u64);
    let region = engine.read_pager(store).unwrap();
    assert!(**region == plain);
    let last: usize = server.ask(&["STRLEN", &format!("weights/one:{}", BYTES >> 16)]);
    assert_eq!(last, BYTES % (64 << 10));
    let other = create(&url, 100).unwrap();
    assert_eq!(other.bytes(), 100);
    assert_eq!(server.ask::<u64>(&["DBSIZE"]), 2);
}

#[test]
fn connections_that_are_cut_are_made_anew_and_nothing_is_wrong() {
    let Some(server) = Server::start() else {
        return;
    };
    let Some(engine) = start(settings()) else {
        return;
    };
    let proxy = Proxy::start(server.port, Duration::ZERO);
    create(&server.url("cut"), BYTES as u64).unwrap();
    let url = format!("redis://127.0.0.1:{}/0/cut", proxy.port);
    let mut region = engine.write_pager(open(&url).unwrap()).unwrap();
    proxy.cut_after(1_500_000);
    let mut plain = vec![0; BYTES];
    in_lockstep(region.as_mut_slice(), &mut plain, 1000, |_| {});
    proxy.cut_after(0);
    region.flush(0..BYTES).unwrap();
    assert!(proxy.cuts() > 3, "{}", proxy.cuts());
    drop(region);
    let region = engine
        .read_pager(open(&server.url("cut")).unwrap())
        .unwrap();
    assert!(**region == plain);
}

#[test]
fn what_the_server_has_lost_is_an_error_and_never_zeros() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let store = create(&server.url("lost"), BYTES as u64).unwrap();
    let mut page = [7; PAGE];
    let removed: u64 = server.ask(&["DEL", "lost:1"]);
    assert_eq!(removed, 1);
    store.read(0, &mut page).unwrap();
    assert_eq!(page, [0; PAGE]);
    let error = store.read(64 << 10, &mut page).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("0 bytes of the 4096 at 0 of the key `lost:1`"),
        "{error}"
    );
    assert!(!error.is_temporary());

    server.kill();
    let error = store.read(0, &mut page).unwrap_err();
    assert!(error.is_temporary(), "{error}");
    server.forget();
    server.revive();
    // The connections that were there before have ended.
    let lasting = (0..20).find_map(|_| {
        let error = store.read(0, &mut page).unwrap_err();
        (!error.is_temporary()).then_some(error)
    });
    assert!(lasting.unwrap().to_string().contains("the key `lost:0`"));
}

#[test]
fn a_swap_store_takes_room_as_it_is_written_and_is_removed_with_its_engine() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.url("swap");
    let store = swap(&url, 16 * MIB).unwrap();
    assert_eq!(server.ask::<u64>(&["DBSIZE"]), 1);
    let refused = swap(&url, MIB).unwrap_err().to_string();
    assert!(refused.contains("the key `swap` exists"), "{refused}");
    let Some(engine) = start(settings().store(store)) else {
        return;
    };
    let mut region = engine.zeros(BYTES as u64).unwrap();
    let mut plain = vec![0; BYTES];
    in_lockstep(&mut region, &mut plain, 500, |_| {});
    assert!(server.ask::<u64>(&["DBSIZE"]) > 5);
    drop((region, engine));
    assert_eq!(server.ask::<u64>(&["DBSIZE"]), 0);
}

#[test]
fn a_bad_address_is_named_without_its_password() {
    let told = |url: &str| open(url).unwrap_err().to_string();
    assert!(told("redis://me:secret@127.0.0.1/0").contains("`redis://me@127.0.0.1/0` is no store"));
    assert!(told("redis://127.0.0.1/x/y").contains("no database or no name"));
    assert!(told("ftp://127.0.0.1/x").contains("its scheme is unknown"));
    assert!(told("nothing").contains("`nothing` is no store"));
    assert!(told("s3://bucket").contains("needs `s3://BUCKET/KEY`"));
    let closed = told("redis://me:secret@127.0.0.1:1/0/name");
    assert!(
        closed.contains("refused") && !closed.contains("secret"),
        "{closed}"
    );
    let refused = create("http://127.0.0.1/x", 5).unwrap_err().to_string();
    assert!(refused.contains("objects are only read"), "{refused}");
    let Some(server) = Server::start() else {
        return;
    };
    assert!(told(&server.url("none")).contains("there is no key `none`"));
    server.ask::<()>(&["SET", "none", "x"]);
    assert!(told(&server.url("none")).contains("`none` is `x`, and no size"));
}
