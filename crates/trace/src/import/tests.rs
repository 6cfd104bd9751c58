//! The result of each format, and of input that does not follow it.

use std::io::Read;

use super::csv::{Clock, Column, Form, Role};
use super::time::Scale;
use super::*;
use crate::appender::{Appender, Repeats};
use crate::container::{Reader, Writer};
use crate::event::{Event, LifeEvent};
use crate::model::{Block, Kinds};

/// Imports with `import`, and reads the trace back.
pub(super) fn blocks(
    repeats: Repeats,
    import: impl Fn(&mut Appender<Vec<u8>>) -> Result<(), Error>,
) -> Result<Vec<Block>, Error> {
    let writer = Writer::new(Vec::new(), &header("a test", 4096))?;
    let mut appender = Appender::new(writer, repeats);
    import(&mut appender)?;
    let bytes = appender.finish()?;
    let mut reader = Reader::new(&bytes[..])?;
    let mut blocks = vec![Block::default()];
    while reader.next_block(blocks.last_mut().unwrap())? {
        blocks.push(Block::default());
    }
    blocks.pop();
    Ok(blocks)
}

fn lackey_blocks(text: &str) -> Result<Vec<Block>, Error> {
    blocks(Repeats::Merged, |out| {
        lackey::import(text.as_bytes(), 4096, out)
    })
}

fn csv_blocks(text: &str, columns: &[(Role, Column)]) -> Result<Vec<Block>, Error> {
    let form = Form {
        delimiter: b',',
        is_hexadecimal: false,
        page_bytes: 4096,
        time: Clock::In(Scale::Instructions),
        columns: columns.to_vec(),
    };
    blocks(Repeats::Kept, |out| {
        csv::Table::open(text.as_bytes(), &form)?.import(out)
    })
}

pub(super) fn told(result: Result<Vec<Block>, Error>) -> String {
    result.unwrap_err().to_string()
}

const LACKEY: &str = "==12== Lackey, an example Valgrind tool\n==12== Command: x\nI  00401000,3\n \
     L 1ffefffffe,4\nI  00401003,5\nI  00401008,1\n M 00402000,8\n S 00402008,8\n--12-- done\n\
     ==12== \n";

#[test]
fn lackey_lines_become_page_changes() {
    let found = lackey_blocks(LACKEY).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].pages, [0x401, 0x1ffefff, 0x1fff000, 0x401, 0x402]);
    let both = Kinds::LOAD.with(Kinds::STORE).0;
    assert_eq!(found[0].kinds, [1, 2, 2, 1, both]);
    // The fourth record begins with the second instruction, the last with the third.
    assert_eq!(found[0].gaps, [1, 0, 0, 1, 1]);
}

#[test]
fn a_line_that_is_not_lackeys_is_named() {
    for line in [
        "hello",
        " L 1ffe",
        " L xyz,8",
        " L 10,0",
        " L 10,99999",
        "I 10,2",
        " Q 10,2",
        "=12= no",
        " L ,4",
    ] {
        let text = format!("I  00401000,3\n{line}\n");
        let told = told(lackey_blocks(&text));
        assert!(
            told.starts_with(&format!("line 2: `{line}`; needs a line of lackey")),
            "{told}"
        );
    }
}

#[test]
fn an_access_at_the_end_of_the_address_space_is_no_trouble() {
    let found = lackey_blocks(" L ffffffffffffffff,8\n").unwrap();
    assert_eq!(found[0].pages, [u64::MAX >> 12]);
}

#[test]
fn text_may_hold_comments_and_hexadecimal_numbers() {
    let text = "# pages\n1\r\n\n 0x2a # the answer\n18446744073709551615";
    let found = blocks(Repeats::Kept, |out| pages::import(text.as_bytes(), out)).unwrap();
    assert_eq!(found[0].pages, [1, 42, u64::MAX]);
    assert_eq!(found[0].gaps, [1, 1, 1]);
    for wrong in [
        "1\n-2\n",
        "1\n18446744073709551616\n",
        "1\n0x\n",
        "1\n2 3\n",
        "1\nx\n",
    ] {
        let told = told(blocks(Repeats::Kept, |out| {
            pages::import(wrong.as_bytes(), out)
        }));
        assert!(
            told.starts_with("line 2: ") && told.contains("needs a page number"),
            "{told}"
        );
    }
}

#[test]
fn a_line_without_an_end_takes_bounded_memory() {
    let told = told(blocks(Repeats::Kept, |out| {
        pages::import(std::io::repeat(b'1').take(1 << 30), out)
    }));
    assert!(told.contains("a line of at most 65536 bytes"), "{told}");
}

#[test]
fn words_are_pages() {
    let bytes = [1, 0, 0, 0, 255, 255, 255, 255];
    let found = blocks(Repeats::Kept, |out| {
        words::import(&bytes[..], out).map(drop)
    })
    .unwrap();
    assert_eq!(found[0].pages, [1, u64::from(u32::MAX)]);
    let told = told(blocks(Repeats::Kept, |out| {
        words::import(&bytes[..7], out).map(drop)
    }));
    assert!(
        told.starts_with("byte 4: 3 bytes of a record of 4"),
        "{told}"
    );
}

fn oracle_record(page: u64, next: i64) -> Vec<u8> {
    let mut record = vec![0; 4];
    record.extend(page.to_le_bytes());
    record.extend(4096_u32.to_le_bytes());
    record.extend(next.to_le_bytes());
    record
}

#[test]
fn oracle_records_are_checked_against_their_order() {
    let whole = [
        oracle_record(7, 3),
        oracle_record(9, -1),
        oracle_record(7, -1),
    ]
    .concat();
    let found = blocks(Repeats::Kept, |out| oracle::import(&whole[..], out)).unwrap();
    assert_eq!(found[0].pages, [7, 9, 7]);
    let told_cut = told(blocks(Repeats::Kept, |out| {
        oracle::import(&whole[..30], out)
    }));
    assert!(
        told_cut.starts_with("byte 24: 6 bytes of a record of 24"),
        "{told_cut}"
    );
    for next in [0, 1, -2, i64::MIN] {
        let wrong = [oracle_record(7, 2), oracle_record(7, next)].concat();
        let told = told(blocks(Repeats::Kept, |out| oracle::import(&wrong[..], out)));
        assert!(told.starts_with("record 2: "), "{next}: {told}");
    }
}

#[test]
fn compressed_input_is_unpacked_and_its_damage_told() {
    let packed = zstd::encode_all(&b"1\n2\n3\n"[..], 3).unwrap();
    let import = |bytes: &[u8]| blocks(Repeats::Kept, |out| pages::import(open(bytes)?, out));
    assert_eq!(import(&packed).unwrap()[0].pages, [1, 2, 3]);
    let told = told(import(&packed[..packed.len() - 2]));
    assert!(
        told.contains("compressed with zstd, and damaged or cut off"),
        "{told}"
    );
}

#[test]
fn columns_are_found_by_their_names() {
    let text = "time,process,page,kinds\n5,10,7,rw\n6,11,8,x\n9,10,9,\n";
    let found = csv_blocks(text, &[]).unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(
        (found[0].process, &found[0].pages[..], found[0].time_end()),
        (0, &[7][..], 5)
    );
    assert_eq!(found[0].kinds, [Kinds::LOAD.with(Kinds::STORE).0]);
    assert!(matches!(
        found[0].events[0].event,
        Event::Life(LifeEvent::Start { pid: 10, .. })
    ));
    assert_eq!((found[1].process, found[1].time_end()), (1, 6));
    assert_eq!((found[2].process, found[2].time_end()), (0, 9));
}

#[test]
fn a_time_column_is_the_unit_of_time() {
    let unit = |text: &str| {
        let form = Form {
            delimiter: b',',
            is_hexadecimal: false,
            page_bytes: 4096,
            time: Clock::In(Scale::Nanoseconds),
            columns: Vec::new(),
        };
        let table = csv::Table::open(text.as_bytes(), &form).unwrap();
        table.header().time
    };
    assert_eq!(unit("page,time\n1,1\n"), TimeUnit::Nanoseconds);
    assert_eq!(unit("page\n1\n"), TimeUnit::References);
    assert_eq!(unit(""), TimeUnit::References);
}

#[test]
fn columns_are_chosen_by_number_or_name() {
    let chosen = [
        (Role::Address, Column::Number(2)),
        (Role::Bytes, Column::Number(3)),
        (Role::Kinds, Column::Number(1)),
    ];
    let found = csv_blocks("store,0x1fff,2\nLOAD,4096,1\n", &chosen).unwrap();
    assert_eq!(found[0].pages, [1, 2, 1]);
    assert_eq!(found[0].kinds, [4, 4, 2]);
    let chosen = [(Role::Page, Column::Name("object".into()))];
    let found = csv_blocks("\"a, b\",Object\n1,70\n2,71\n", &chosen).unwrap();
    assert_eq!(found[0].pages, [70, 71]);
    assert_eq!(csv_blocks("5\n6\n", &[]).unwrap()[0].pages, [5, 6]);
}

#[test]
fn found_h3_no_column_is_taken_for_pages_by_its_place() {
    // A block trace: the first column would have been one page over and over.
    let block = csv_blocks("version,time,op,size,lbn\n1,5,r,8,70\n1,6,w,8,71\n", &[]).unwrap();
    assert_eq!(
        (&block[0].pages[..], block[0].time_end()),
        (&[70, 71][..], 6)
    );
    let unknown = told(csv_blocks("version,when,what\n1,5,7\n", &[]));
    assert_eq!(
        unknown,
        "line 1: no column is known to hold pages among: version, when, what; name one"
    );
    let several = told(csv_blocks("id,op,lba,address\n1,r,5,7\n", &[]));
    assert!(
        several.contains("could hold pages: id, lba, address; name one"),
        "{several}"
    );
    let nameless = told(csv_blocks("1,5\n2,6\n", &[]));
    assert!(
        nameless.starts_with("line 1: 2 columns without names"),
        "{nameless}"
    );
    // One choice, and none is needed.
    assert!(told(csv_blocks("what\n5\n", &[])).contains("among: what;"));
    for name in ["Page", "page-number", "Virtual Address", "OBJ_ID", " vpn "] {
        let found = csv_blocks(&format!("{name},other\n8192,1\n"), &[]);
        assert_eq!(found.unwrap()[0].pages.len(), 1, "{name}");
    }
    let wide: Vec<String> = (0..1000).map(|at| format!("column{at}")).collect();
    assert!(told(csv_blocks(&wide.join(","), &[])).len() < 500);
}

/// Imports with columns as they are found, and says what was used and what was not.
fn table(text: &str, time: Clock) -> Result<(Vec<Block>, String, String), Error> {
    let form = Form {
        delimiter: b',',
        is_hexadecimal: false,
        page_bytes: 4096,
        time,
        columns: Vec::new(),
    };
    let table = csv::Table::open(text.as_bytes(), &form)?;
    let (used, unused) = (table.used(), table.unused());
    let found = blocks(Repeats::Kept, |out| {
        csv::Table::open(text.as_bytes(), &form)?.import(out)
    });
    Ok((found?, used, unused))
}

#[test]
fn found_a5_bytes_and_count_beside_a_page_are_pages() {
    let page = |name: &str| Column::Name(name.into());
    let chosen = [(Role::Page, page("page")), (Role::Bytes, page("size"))];
    let found = csv_blocks("page,size\n10,8192\n20,1\n30,0\n40,4097\n", &chosen).unwrap();
    assert_eq!(found[0].pages, [10, 11, 20, 30, 40, 41]);
    let chosen = [
        (Role::Page, Column::Number(1)),
        (Role::Count, Column::Number(2)),
    ];
    let found = csv_blocks("7,3\n9,1\n", &chosen).unwrap();
    assert_eq!(found[0].pages, [7, 8, 9, 9]);
    let none = told(csv_blocks("7,0\n", &chosen));
    assert!(none.contains("needs a number of pages from 1 up"), "{none}");
    let many = told(csv_blocks("7,1048577\n", &chosen));
    assert!(many.contains("at most 1048576 pages"), "{many}");
    // SPC: blocks of 512 bytes from the second column on, as many bytes as the third says.
    let chosen = [
        (Role::Sector, Column::Number(2)),
        (Role::Bytes, Column::Number(3)),
        (Role::Kinds, Column::Number(4)),
    ];
    let found = csv_blocks("0,7,1024,w,0.1\n0,16,4096,R,0.2\n", &chosen).unwrap();
    assert_eq!(found[0].pages, [0, 1, 2]);
    assert_eq!(found[0].kinds, [4, 4, 2]);
}

#[test]
fn csv_visits_begin_where_their_text_changes_and_objects_have_one_size() {
    let chosen = [Role::Key, Role::Visit, Role::Bytes].map(|role| {
        let name = match role {
            Role::Key => "object",
            _ => role.name(),
        };
        (role, Column::Name(name.into()))
    });
    let text = "object,visit,bytes\na,1,10\nb,1,9000\na,2,10\na,1,10\n";
    let block = &csv_blocks(text, &chosen).unwrap()[0];
    let (a, b) = (block.pages[0], block.pages[1]);
    assert_eq!(block.pages, [a, b, a, a]);
    let events = block.events.iter();
    let events: Vec<(u32, Event)> = events.map(|at| (at.after, at.event.clone())).collect();
    let size = |page, bytes| Event::Size { page, bytes };
    let expected = [
        (0, Event::Visit),
        (0, size(a, 10)),
        (1, size(b, 9000)),
        (2, Event::Visit),
        (3, Event::Visit),
    ];
    assert_eq!(events, expected);
}

#[test]
fn found_a5_an_import_says_which_columns_it_uses_and_which_not() {
    let msr = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
               128166372003061629,usr,0,Read,7014609920,24576,41286\n\
               128166372016382155,usr,0,Write,0,4096,1963\n";
    let (found, used, unused) = table(msr, Clock::In(Scale::HundredNanoseconds)).unwrap();
    // The first is not aligned: six pages' length lie in seven.
    assert_eq!(found[0].len() + found.get(1).map_or(0, Block::len), 8);
    assert_eq!(
        used,
        "address from `Offset`, bytes from `Size`, kinds from `Type`, time from `Timestamp`"
    );
    assert_eq!(unused, "`Hostname`, `DiskNumber`, `ResponseTime`");
    let (_, used, unused) = table("obj_id,size,op\n1,4096,get\n", Clock::ByName).unwrap();
    assert_eq!(
        (&used[..], &unused[..]),
        ("page from `obj_id`, kinds from `op`", "`size`")
    );
    // A column that is guessed, and whose values are none of its kind, is not used, and said.
    let (_, _, unused) = table("page,type\n1,inode\n", Clock::ByName).unwrap();
    assert_eq!(unused, "`type`");
}

#[test]
fn found_b3_times_without_a_unit_are_asked_for() {
    for name in ["time", "Timestamp", "ts", "# time"] {
        let text = format!("{name},page\n1600000000,1\n");
        let told = table(&text, Clock::ByName).unwrap_err().to_string();
        let column = name.trim_start_matches("# ");
        let expected = format!("line 1: column `{column}` has times of no unit; name it");
        assert!(told.starts_with(&expected), "{told}");
        let (found, _, unused) = table(&text, Clock::None).unwrap();
        assert_eq!(
            (&found[0].pages[..], &found[0].gaps[..]),
            (&[1][..], &[1][..])
        );
        assert_eq!(unused, format!("`{column}`"));
    }
    let text = "time_s,page\n1600000000.25,1\n1600000000.5,2\n1600000001,1\n";
    let (found, ..) = table(text, Clock::ByName).unwrap();
    assert_eq!(found[0].time_start, 1_600_000_000_250_000_000);
    assert_eq!(found[0].gaps, [0, 250_000_000, 500_000_000]);
    let chosen = [
        (Role::Page, Column::Number(1)),
        (Role::Time, Column::Number(2)),
    ];
    let form = Form {
        delimiter: b',',
        is_hexadecimal: false,
        page_bytes: 4096,
        time: Clock::ByName,
        columns: chosen.to_vec(),
    };
    let nameless = csv::Table::open(&b"1,5\n"[..], &form)
        .err()
        .unwrap()
        .to_string();
    assert!(
        nameless.contains("`column 2` has times of no unit"),
        "{nameless}"
    );
}

#[test]
fn found_b4_text_keys_are_hashed_and_remarks_left_out() {
    let text = "# a cache's log\nkey,op\nuser:1,get\n# here\nuser:2,set\nuser:1,get\n";
    let (found, used, _) = table(text, Clock::ByName).unwrap();
    let pages = &found[0].pages;
    assert_eq!(
        (pages.len(), pages[0] == pages[2], pages[0] != pages[1]),
        (3, true, true)
    );
    assert_eq!(found[0].kinds, [2, 4, 2]);
    assert_eq!(used, "key from `key`, kinds from `op`");
    let chosen = [(Role::Key, Column::Number(2))];
    let found = csv_blocks("1,a\n2,b\n3,a\n", &chosen).unwrap();
    assert_eq!(
        (found[0].len(), found[0].pages[0] == found[0].pages[2]),
        (3, true)
    );
    // Keys that are numbers at first.
    let mixed = csv_blocks("id\n1\nx\n", &[]).unwrap_err();
    let otherwise = Some(Otherwise::ByKey);
    assert!(
        matches!(mixed.kind, ErrorKind::Malformed { otherwise: found, .. } if found == otherwise),
        "{mixed}"
    );
}

#[test]
fn blanks_in_a_row_are_one_delimiter() {
    let form = Form {
        delimiter: b' ',
        is_hexadecimal: false,
        page_bytes: 4096,
        time: Clock::ByName,
        columns: vec![
            (Role::Address, Column::Number(2)),
            (Role::Bytes, Column::Number(3)),
        ],
    };
    let text = b"readi   0x04000BE0 2\n  write 0xBEFFFFFF   4\n*\n";
    let found = blocks(Repeats::Kept, |out| {
        csv::Table::open(&text[..], &form)?.import(out)
    });
    assert_eq!(found.unwrap()[0].pages, [0x4000, 0xBEFFF, 0xBF000]);
}

#[test]
fn wrong_columns_and_fields_are_named() {
    let chosen = [(Role::Page, Column::Name("pgae".into()))];
    assert!(told(csv_blocks("page\n1\n", &chosen)).contains("no column `pgae`"));
    let chosen = [(Role::Page, Column::Number(3))];
    assert!(told(csv_blocks("1,2\n", &chosen)).starts_with("line 1: no column `3`"));
    let chosen = [(Role::Page, Column::Number(0))];
    assert!(told(csv_blocks("1,2\n", &chosen)).contains("no column `0`"));
    let cases = [
        ("page\n1\nx\n", "line 3: `x`; needs a page number"),
        (
            "page,time\n1,5\n1,4\n",
            "line 3: `4`; needs a time that does not go back",
        ),
        (
            "page,time\n1,5\n1,1.5\n",
            "line 3: `1.5`; needs a whole number of instructions",
        ),
        (
            "page,kinds\n1,r\n1,q\n",
            "line 3: `q`; needs kinds of access",
        ),
        (
            "page,process\n1,1\n1\n",
            "line 3: ``; needs the number of a process",
        ),
        (
            "address,bytes\n1,9999999999\n",
            "line 2: `9999999999`; needs an access of at most 1048576 pages",
        ),
    ];
    for (text, expected) in cases {
        let told = told(csv_blocks(text, &[]));
        assert!(told.starts_with(expected), "{told}");
    }
}

#[test]
fn lines_and_columns_without_end_take_bounded_memory() {
    let long = format!("1,{}\n", "x".repeat(1 << 17));
    assert!(told(csv_blocks(&long, &[])).contains("at most 65536 bytes"));
    let wide = ",".repeat(5000);
    assert!(told(csv_blocks(&wide, &[])).contains("at most 1024 columns"));
    let quoted = format!("\"{}", "1\n".repeat(1 << 17));
    assert!(told(csv_blocks(&quoted, &[])).contains("at most 65536 bytes"));
}

#[test]
fn nothing_is_no_trace() {
    for text in ["", "\n\n", "# only a comment\n"] {
        let told = told(blocks(Repeats::Kept, |out| {
            pages::import(text.as_bytes(), out)
        }));
        assert!(told.starts_with("no reference in it"), "{told}");
    }
    assert!(told(lackey_blocks("==1== nothing\n")).starts_with("no reference in it"));
}
