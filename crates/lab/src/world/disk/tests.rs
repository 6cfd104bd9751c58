use super::*;

fn request(ticket: u64, direction: Direction, address: u64, pages: u32) -> DiskRequest {
    DiskRequest {
        memory: 0,
        errand: Errand::Request(Ticket(ticket)),
        direction,
        address,
        pages,
    }
}

fn named(name: &str) -> Disk {
    let preset = presets::find(name).expect("a preset");
    Disk::new("test", preset.model.clone(), 1)
}

/// Serves all there is, and answers whose requests were done, and when.
fn run(disk: &mut Disk) -> Vec<(u64, u64)> {
    let mut done = Vec::new();
    while let Some(at) = disk.next_done() {
        if let Some((_, Errand::Request(ticket))) = disk.finish(at) {
            done.push((ticket.0, at));
        }
    }
    done
}

#[test]
fn a_page_at_random_takes_a_seek_and_half_a_turn() {
    let mut disk = named("hdd");
    let mut random = SplitMix64::new(7);
    let (mut now, rounds) = (0, 2000);
    for number in 0..rounds {
        let address = random.draw() % (330_000 * 366 * 8);
        disk.submit(now, request(number, Direction::Fetch, address, 1));
        now = disk.next_done().unwrap();
        disk.finish(now);
    }
    // A third of the way across takes 9.5 ms on average; half a turn 4.2.
    let each_us = now / rounds / 1000;
    assert!((12_500..14_500).contains(&each_us), "{each_us}");
}

#[test]
fn the_arm_goes_up_and_then_begins_anew() {
    let mut disk = named("hdd");
    let far = 366 * 8;
    disk.submit(0, request(0, Direction::Fetch, 50 * far, 1));
    for (ticket, cylinder) in [(1, 10), (2, 90), (3, 60), (4, 20)] {
        disk.submit(1, request(ticket, Direction::Fetch, cylinder * far, 1));
    }
    let order: Vec<u64> = run(&mut disk).iter().map(|&(ticket, _)| ticket).collect();
    assert_eq!(order, [0, 3, 2, 1, 4]);
    assert_eq!(disk.usage().queue_max, 5);
}

#[test]
fn what_follows_right_behind_is_moved_in_the_same_turn() {
    let mut disk = named("hdd");
    disk.submit(0, request(0, Direction::Store, 100_000, 1));
    for ticket in 1..9 {
        let address = 5_000_000 + (ticket - 1) * 4;
        disk.submit(1, request(ticket, Direction::Store, address, 4));
    }
    let done = run(&mut disk);
    let (first, last) = (done[1].1, done[8].1);
    assert_eq!(last - first, 7 * 4 * (8_333_333 / 366));
    // Reading on costs no turn either, even when it is asked for later.
    let mut disk = named("hdd");
    disk.submit(0, request(0, Direction::Fetch, 5_000_000, 4));
    let now = disk.next_done().unwrap();
    disk.finish(now);
    disk.submit(now + 50_000, request(1, Direction::Fetch, 5_000_004, 4));
    assert!(disk.next_done().unwrap() - now < 300_000);
}

#[test]
fn a_cached_write_is_over_at_once_until_the_cache_is_full() {
    let mut disk = named("hdd-cached");
    for ticket in 0..300 {
        let address = (ticket * 7919 % 1000) * 1_000_000;
        disk.submit(0, request(ticket, Direction::Store, address, 16));
    }
    let done = run(&mut disk);
    assert_eq!(done.len(), 300);
    let quick = done.iter().filter(|&&(_, at)| at < 1_000_000).count();
    // 4096 pages are 256 requests; the first goes to the platter at once and makes room for one.
    assert!((256..260).contains(&quick), "{quick}");
    assert_eq!((disk.cached, disk.channels_used, disk.depth()), (0, 0, 0));
}

#[test]
fn flash_serves_in_parallel_up_to_what_its_link_carries() {
    let mut disk = named("ssd");
    for ticket in 0..32_000 {
        disk.submit(0, request(ticket, Direction::Fetch, ticket * 977, 1));
    }
    let last = run(&mut disk).last().unwrap().1;
    // 32 at a time of 90 us would be 350,000 a second; the link carries 122,000.
    assert!((8_200 * 32_000..8_200 * 32_500).contains(&last), "{last}");
    let mut disk = named("ssd");
    let mut waits: Vec<u64> = Vec::new();
    let mut now = 0;
    for ticket in 0..10_000 {
        disk.submit(now, request(ticket, Direction::Fetch, 0, 1));
        let done = disk.next_done().unwrap();
        disk.finish(done);
        waits.push(done - now);
        now = done;
    }
    waits.sort_unstable();
    assert!((85_000..91_000).contains(&waits[5_000]), "{}", waits[5_000]);
    assert!(
        (190_000..250_000).contains(&waits[9_900]),
        "{}",
        waits[9_900]
    );
}

#[test]
fn a_measured_disk_takes_what_was_measured() {
    let latency = |name: &str, p50_us, p99_us| tidemark_results::host::Latency {
        name: name.into(),
        p50_us,
        p99_us,
        samples: 100,
        rate: None,
    };
    let latencies = [
        latency("read of 4 KiB", 100.0, 1000.0),
        latency("read of 256 KiB", 400.0, 2000.0),
        latency("write of 256 KiB", 500.0, 500.0),
    ];
    assert_eq!(table::Table::from_latencies(&latencies[..2]), None);
    let table = table::Table::from_latencies(&latencies).unwrap();
    let mut random = SplitMix64::new(3);
    let mut draw = |direction, pages| {
        let mut drawn: Vec<u64> = (0..1001)
            .map(|_| table.draw_ns(direction, pages, &mut random))
            .collect();
        drawn.sort_unstable();
        (drawn[450], drawn[990])
    };
    assert_eq!(draw(Direction::Store, 64), (500_000, 500_000));
    assert_eq!(draw(Direction::Store, 1), (500_000, 500_000));
    assert_eq!(draw(Direction::Store, 128), (1_000_000, 1_000_000));
    let (median, slow) = draw(Direction::Fetch, 1);
    assert_eq!(median, 100_000);
    assert!((850_000..1_100_000).contains(&slow), "{slow}");
    // Half way between the sizes.
    assert_eq!(draw(Direction::Fetch, 32).0, 247_619);
    assert_eq!(table.channels, 1);
}

#[test]
fn a_measured_disk_serves_as_many_at_a_time_as_take_no_longer_so() {
    let latency = |name: &str, p50_us| tidemark_results::host::Latency {
        name: name.into(),
        p50_us,
        p99_us: p50_us,
        samples: 100,
        rate: None,
    };
    let channels = |beside_us| {
        let latencies = [
            latency("read of 4 KiB", 100.0),
            latency("read of 4 KiB, 8 at a time", beside_us),
            latency("write of 4 KiB", 50.0),
            latency("write of 256 KiB", 500.0),
        ];
        let table = table::Table::from_latencies(&latencies).unwrap();
        let small = table.draw_ns(Direction::Store, 1, &mut SplitMix64::new(3));
        assert_eq!(small, 50_000);
        table.channels
    };
    assert_eq!(channels(90.0), 8);
    assert_eq!(channels(200.0), 4);
    assert_eq!(channels(5000.0), 1);
}
