//! The formats of other tools, in small files written from their documentation.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::tests::{blocks, told};
use super::*;
use crate::appender::{Appender, Repeats};
use crate::container::Writer;
use crate::event::{Event, LifeEvent};
use crate::model::{Block, Kinds};

const LOAD: u8 = Kinds::LOAD.0;
const STORE: u8 = Kinds::STORE.0;
const FETCH: u8 = Kinds::FETCH.0;

/// `xz` of `1\n2\n3\n`, as xz 5.4.1 packs it.
const XZ: &[u8] = include_bytes!("pages.xz");

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzip_and_xz_are_seen_through_and_their_damage_is_told() {
    let import = |bytes: &[u8]| blocks(Repeats::Kept, |out| pages::import(open(bytes)?, out));
    let packed = gzip(b"1\n2\n3\n");
    let twice = [gzip(b"1\n2\n"), gzip(b"3\n")].concat();
    for bytes in [&packed[..], &twice[..], XZ] {
        assert_eq!(import(bytes).unwrap()[0].pages, [1, 2, 3]);
    }
    for (bytes, packer) in [(&packed[..], "gzip"), (XZ, "xz")] {
        let told = told(import(&bytes[..bytes.len() - 9]));
        let expected = format!("compressed with {packer}, and damaged or cut off");
        assert!(told.contains(&expected), "{told}");
    }
}

#[test]
fn end_marks_and_remarks_are_no_pages() {
    let text = b"1\n* \n2\n*\n#eof\n";
    let found = blocks(Repeats::Kept, |out| pages::import(&text[..], out)).unwrap();
    assert_eq!(found[0].pages, [1, 2]);
}

#[test]
fn a_line_of_lis_is_as_many_pages_as_it_says() {
    let import = |text: &str| blocks(Repeats::Kept, |out| lis::import(text.as_bytes(), out));
    let found = import("103 3 0 1\n 7  1 0 2 \n").unwrap();
    assert_eq!(found[0].pages, [103, 104, 105, 7]);
    for wrong in [
        "1\n",
        "1 0 0 1\n",
        "1 2 3\n",
        "1 2 3 4 5\n",
        "1 2 x 4\n",
        "1 9999999 0 1\n",
    ] {
        let told = told(import(wrong));
        assert!(
            told.starts_with("line 1: ") && told.contains("needs four numbers"),
            "{told}"
        );
    }
}

#[test]
fn pinatrace_ends_with_its_mark() {
    let import = |text: &str| {
        blocks(Repeats::Kept, |out| {
            pinatrace::import(text.as_bytes(), 4096, out)
        })
    };
    let text = "#\n# Memory Access Trace\n#\n0x7f205266c2b3: W 0x7ffd3b00e188\n\
                0x7f205266d054: R 0x5000 8 0x1\n#eof\n";
    let found = import(text).unwrap();
    assert_eq!(found[0].pages, [0x7_ffd3_b00e, 5]);
    assert_eq!(found[0].kinds, [STORE, LOAD]);
    let told = told(import("0x1: W 0x2\n0x1 W 0x2\n"));
    assert!(told.starts_with("line 2: "), "{told}");
}

fn vscsi_record(version: u16, code: u16, block: u64, length: u32, time_us: u64) -> Vec<u8> {
    let mut record = Vec::new();
    let (serial, segments) = (7_u32, 1_u32);
    let mark = version << 8;
    if version == 2 {
        record.extend(code.to_le_bytes());
        record.extend(mark.to_le_bytes());
        record.extend(serial.to_le_bytes());
        record.extend(length.to_le_bytes());
        record.extend(segments.to_le_bytes());
    } else {
        record.extend(serial.to_le_bytes());
        record.extend(length.to_le_bytes());
        record.extend(segments.to_le_bytes());
        record.extend(code.to_le_bytes());
        record.extend(mark.to_le_bytes());
    }
    record.extend(block.to_le_bytes());
    record.extend(time_us.to_le_bytes());
    if version == 2 {
        record.extend(9_u64.to_le_bytes());
    }
    record
}

#[test]
fn commands_of_vscsi_are_pages_of_their_blocks() {
    for version in [1, 2] {
        let bytes = [
            vscsi_record(version, 0x28, 16, 8192, 5_000_000),
            vscsi_record(version, 0x2a, 7, 512, 5_000_002),
            vscsi_record(version, 0x12, 8, 512, 5_000_001),
        ]
        .concat();
        let mut backward = 0;
        let import = |bytes: &[u8], out: &mut Appender<Vec<u8>>| vscsi::import(bytes, 4096, out);
        let writer = Writer::new(Vec::new(), &vscsi::header(4096)).unwrap();
        let mut out = Appender::new(writer, Repeats::Kept);
        backward += import(&bytes, &mut out).unwrap();
        assert_eq!(
            (backward, out.references(), out.time(0)),
            (1, 4, 5_000_002_000)
        );
        let found = blocks(Repeats::Kept, |out| import(&bytes, out).map(|_| ())).unwrap();
        assert_eq!(found[0].pages, [2, 3, 0, 1]);
        assert_eq!(found[0].kinds, [LOAD, LOAD, STORE, 0]);
        assert_eq!(found[0].gaps, [0, 0, 2000, 0]);
        let told = told(blocks(Repeats::Kept, |out| {
            import(&bytes[..bytes.len() - 1], out).map(|_| ())
        }));
        assert!(told.contains("of a record of"), "{told}");
    }
    let none = told(blocks(Repeats::Kept, |out| {
        vscsi::import(&[1; 400][..], 4096, out).map(|_| ())
    }));
    assert!(
        none.contains("needs two or more records of a vscsi trace"),
        "{none}"
    );
}

fn lcs_file(version: u64, records: &[(u64, u8)]) -> Vec<u8> {
    let mut file = lcs::MAGIC.to_vec();
    file.extend(version.to_le_bytes());
    file.resize(8184, 0);
    file.extend(lcs::MAGIC);
    for &(page, operation) in records {
        file.extend(1_u32.to_le_bytes());
        file.extend(page.to_le_bytes());
        match version {
            1 | 2 => file.extend(4096_u32.to_le_bytes()),
            _ => file.extend(4096_u64.to_le_bytes()),
        }
        if version >= 2 {
            file.extend([operation, 0, 0, 0]);
        }
        if version >= 3 {
            file.extend(0_u32.to_le_bytes());
        }
        file.extend((-1_i64).to_le_bytes());
        let features = [0, 0, 0, 1, 2, 4, 8, 16][version as usize - 1];
        file.extend(vec![0; 4 * features]);
    }
    file
}

#[test]
fn every_version_of_lcs_is_read() {
    let import = |bytes: &[u8]| blocks(Repeats::Kept, |out| lcs::import(bytes, out));
    for version in 1..=8 {
        let found = import(&lcs_file(version, &[(7, 1), (u64::MAX, 3), (7, 12)])).unwrap();
        assert_eq!(found[0].pages, [7, u64::MAX, 7], "{version}");
        let kinds = if version == 1 {
            [0; 3]
        } else {
            [LOAD, STORE, LOAD]
        };
        assert_eq!(found[0].kinds, kinds, "{version}");
    }
    let whole = lcs_file(2, &[(7, 1)]);
    let told_cut = told(import(&whole[..whole.len() - 3]));
    assert!(
        told_cut.contains("25 bytes of a record of 28"),
        "{told_cut}"
    );
    let mut newer = whole.clone();
    newer[8] = 9;
    assert!(told(import(&newer)).contains("needs an lcs file of version 1 to 8"));
    assert!(told(import(&whole[..1024])).contains("needs a header of 8192 bytes"));
    assert!(told(import(&[0; 9000])).contains("needs the mark of an lcs file"));
}

#[test]
fn instructions_of_champsim_fetch_load_and_store() {
    let mut record = vec![0; 64];
    record[..8].copy_from_slice(&0x40_1000_u64.to_le_bytes());
    record[8] = 1;
    record[16..24].copy_from_slice(&0x9000_u64.to_le_bytes());
    record[32..40].copy_from_slice(&0x7000_u64.to_le_bytes());
    let import = |bytes: &[u8]| blocks(Repeats::Kept, |out| champsim::import(bytes, 4096, out));
    let found = import(&[record.clone(), record.clone()].concat()).unwrap();
    assert_eq!(found[0].pages, [0x401, 7, 9, 0x401, 7, 9]);
    assert_eq!(found[0].kinds[..3], [FETCH, LOAD, STORE]);
    assert_eq!(found[0].gaps, [1, 0, 0, 1, 0, 0]);
    record[9] = 2;
    assert!(told(import(&record)).contains("needs an instruction's address"));
    assert!(told(import(&record[..63])).contains("63 bytes of a record of 64"));
}

const VIEW: &str = "Hello\nOutput format:\n<--record#-> <--instr#->: <---tid---> <record details>\n\
    ------------------------------------------------------------\n\
    \x20          1           0:        1443 <marker: version 6>\n\
    \x20          2           1:        1443 ifetch       3 byte(s) @ 0x0000000000401ffe 48 89 e7\
    \x20            mov    %rsp -> %rdi\n\
    \x20          2           1:        1443                                            00\n\
    \x20          3           1:        1443 write        8 byte(s) @ 0x0000000000005ffc by PC \
    0x0000000000401ffe\n\
    \x20          4           2:        1444 ifetch       2 byte(s) @ 0x0000000000402001 jump\n\
    \x20          5           2:        1444 pref-r       1 byte(s) @ 0x0000000000009000 by PC 1\n\
    \x20          6           2:        1444 <thread 1444 exited>\n\
    View tool results:\n              2 : total instructions\n";

#[test]
fn what_drmemtrace_views_becomes_references() {
    let import = |text: &str| {
        blocks(Repeats::Merged, |out| {
            drmemtrace::import(text.as_bytes(), 4096, out)
        })
    };
    let found = import(VIEW).unwrap();
    assert_eq!(found[0].pages, [0x401, 0x402, 5, 6, 0x402]);
    assert_eq!(found[0].kinds, [FETCH, FETCH, STORE, STORE, FETCH]);
    assert_eq!(found[0].gaps, [1, 0, 0, 0, 1]);
    let broken = VIEW.replace("<thread 1444 exited>", "write 8 bytes");
    assert!(told(import(&broken)).contains("needs a line of drmemtrace's view tool"));
}

/// As perf 6.1 prints page faults, with `-F comm,pid,tid,time,event,addr,ip` and without a process.
const PERF: &str = "         python3 14843/14843   395.600298: page-faults:     561aaa315424 \
    ffffffff817554ea\n  Web Content 14844 [002] 395.600371:  1  cpu/mem-loads,ldlat=30/P:  \
    7f7d7ceff110 |OP LOAD|LVL L1 hit\n\n python3 14843 396.600298: cpu/mem-stores/P: 561aaa315000\n\
    python3 14843   397.5: page-faults: 0\n";

#[test]
fn samples_of_perf_script_have_addresses_times_and_processes() {
    let import = |text: &str| {
        let mut left_out = perf::LeftOut::default();
        let found = {
            let writer = Writer::new(Vec::new(), &perf::header(4096)).unwrap();
            let mut out = Appender::new(writer, Repeats::Kept);
            left_out = perf::import(text.as_bytes(), 4096, &mut out).unwrap_or(left_out);
            blocks(Repeats::Kept, |out| {
                perf::import(text.as_bytes(), 4096, out).map(|_| ())
            })
        };
        (found, left_out)
    };
    let (found, left_out) = import(PERF);
    let found = found.unwrap();
    assert_eq!((left_out.without_address, left_out.backward), (1, 0));
    let of = |block: &Block| (block.process, block.pages.clone(), block.kinds.clone());
    assert_eq!(of(&found[0]), (0, vec![0x5_61aa_a315], vec![0]));
    assert_eq!(of(&found[1]), (1, vec![0x7_f7d7_ceff], vec![LOAD]));
    assert_eq!(of(&found[2]), (0, vec![0x5_61aa_a315], vec![STORE]));
    assert_eq!(found[0].time_start, 395_600_298_000);
    assert_eq!(found[2].gaps, [1_000_000_000]);
    assert!(matches!(
        found[1].events[0].event,
        Event::Life(LifeEvent::Start { pid: 14844, .. })
    ));
    // The address of an instruction is not the address it accessed.
    let without =
        "python3 14843 395.600298: 1 page-faults: ffffffff817554ea elf_load+0x28a ([k])\n";
    assert!(told(import(without).0).contains("needs a sample with its time, event and address"));
}

/// As damo 1.9.9 prints.
const RAW: &str = "base_time_absolute: 8 m 33.329 s\n\nmonitoring_start:                0 ns\n\
    monitoring_end:            122.745 ms\nmonitoring_duration:       122.745 ms\ntarget_id: 0\n\
    nr_regions: 2\n# start_addr     end_addr        length  nr_accesses   age\n\
    000000001000-000000003000 (   8.000 KiB)           0    10\n\
    000000003000-000000005000 (   8.000 KiB)           3     4\n\n\
    monitoring_start:          122.745 ms\nmonitoring_end:            251.750 ms\n\
    monitoring_duration:       129.005 ms\ntarget_id: 0\nnr_regions: 1\n\
    000000004000-000000005000 (   4.000 KiB)           1     4\n";
/// As damo 3.4.3 prints the same in raw numbers.
const ACCESS: &str = "snapshot time: [0, 122745000] (122745000)\nheatmap: 000\n\
    # min/max temperatures: -110000000, 500, column size: 335544268\n\
    intervals: sample 5000 aggr 100000 (max access hz 200.000000)\n\
    0   addr 4096         size 8192         access 0.000000 age 1000000      \n\
    1   addr 12288        size 8192         access 30.000000 age 400000       \n\
    memory bw estimate: 9087057920 per second\ntotal size: 26843541504\n\n\
    snapshot time: [122745000, 251750000] (129005000)\n\
    0   addr 16384        size 4096         access 10.000000 age 0\n";

#[test]
fn regions_that_damon_saw_accessed_are_touched_in_windows() {
    for text in [RAW, ACCESS] {
        let import = |text: &str, out: &mut Appender<Vec<u8>>| {
            damon::Report::open(text.as_bytes())?.import(4096, out)
        };
        let found = blocks(Repeats::Kept, |out| import(text, out)).unwrap();
        assert_eq!(found[0].pages, [3, 4, 4]);
        assert_eq!(found[0].gaps, [0, 0, 122_745_000]);
        assert_eq!(found[0].events[0].event, Event::Windows { ns: 129_005_000 });
        let header = damon::Report::open(text.as_bytes()).unwrap().header(4096);
        assert_eq!(header.granularity, Granularity::Regions(122_745_000));
        assert_eq!(header.time, TimeUnit::Nanoseconds);
        let broken = format!("{text}what is this\n");
        let told = told(blocks(Repeats::Kept, |out| import(&broken, out)));
        assert!(told.contains("needs a line of `damo report raw`"), "{told}");
    }
    // Rounded sizes are no addresses.
    let rounded = ACCESS.replace(
        "addr 12288        size 8192 ",
        "addr 12.000 KiB  size 8.000 KiB",
    );
    let told = told(blocks(Repeats::Kept, |out| {
        damon::Report::open(rounded.as_bytes())?.import(4096, out)
    }));
    assert!(told.contains("--raw_number"), "{told}");
}

#[test]
fn files_of_another_kind_are_known_by_their_beginning() {
    let name = |start: &[u8]| foreign::find_marked(start).map(|known| known.name);
    for (start, expected) in [
        (&b"\x7fELF\x02\x01\x01\0"[..], "a program or library"),
        (b"PK\x03\x04\x14\0", "a zip archive"),
        (b"BZh91AY", "compressed with bzip2"),
        (b"PERFILE2", "a record of perf's"),
        (b"PAR1\x15", "a Parquet file"),
        (b"\x89TIDE\r\n", "a trace of tidemark's"),
        (b"gem5\x10", "a packet trace of gem5's"),
        (&lcs::MAGIC, "libCacheSim's lcs"),
        (
            &[25, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 28, 0],
            "a binary trace of drmemtrace's",
        ),
    ] {
        assert_eq!(name(start), Some(expected));
    }
    assert_eq!(name(b"1\n2\n"), None);
    let likely = |start: &[u8]| foreign::find_likely(start).map(|known| known.name);
    assert_eq!(
        likely(b"page,time\n1,2\n3,4\n5,6\n7,8\n9,0\n"),
        Some("text")
    );
    let wide: Vec<u8> = (1..40_u64).flat_map(u64::to_le_bytes).collect();
    assert_eq!(likely(&wide), Some("numbers of 64 bits"));
    let commands: Vec<u8> = (0..9)
        .flat_map(|at| vscsi_record(2, 0x28, at * 8, 4096, at))
        .collect();
    assert_eq!(likely(&commands), Some("a vscsi trace"));
    let oracle: Vec<u8> = (1..20_u64)
        .flat_map(|at| {
            let mut record = (at as u32).to_le_bytes().to_vec();
            record.extend((at % 3).to_le_bytes());
            record.extend(4096_u32.to_le_bytes());
            record.extend((at as i64 + 3).to_le_bytes());
            record
        })
        .collect();
    assert_eq!(likely(&oracle), Some("libCacheSim's oracleGeneral"));
    // Numbers that are what they are said to be: small, large, in turns with 0.
    for step in [1, 977, 1_000_003] {
        let words: Vec<u8> = (0..4096_u32)
            .flat_map(|at| (at.wrapping_mul(step) % 900_000 + 1).to_le_bytes())
            .collect();
        assert_eq!(likely(&words), None, "{step}");
    }
}

#[test]
fn numbers_that_can_be_no_pages_are_doubted() {
    let doubt = |pages: &mut dyn Iterator<Item = u32>| {
        let mut plausibility = foreign::Plausibility::new();
        pages.for_each(|page| plausibility.see(page));
        plausibility.doubt()
    };
    let noise = doubt(&mut (0..5000_u32).map(|at| at.wrapping_mul(2_654_435_761)));
    assert!(
        noise
            .unwrap()
            .contains("5000 of the first 5000 numbers are different")
    );
    assert_eq!(doubt(&mut (0..5000)), None);
    assert_eq!(
        doubt(&mut (0..5000).map(|at: u32| (at % 9).wrapping_mul(2_654_435_761))),
        None
    );
}
