//! SQLite with a database in memory.

use super::needs;
use super::scratch::Scratch;
use super::trial::Trial;

#[test]
fn a_database_in_memory_answers_the_same() {
    if !needs::are_met(&["sqlite3"]) {
        return;
    }
    let scratch = Scratch::new("sqlite");
    let rows = needs::size(60_000, 1_000_000);
    let script = scratch
        .write("rows.sql", script(rows))
        .display()
        .to_string();
    let read = format!(".read {script}");
    Trial::new("sqlite", &scratch, &["sqlite3", ":memory:", &read]).compare();
}

/// Fills a table, indexes it, changes and deletes rows, joins, and prints hashes of everything.
fn script(rows: u64) -> String {
    format!(
        "create table item(id integer primary key, key integer, text text, filler blob);
        with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})
        insert into item select i, (i * 7919) % {rows}, printf('item %d of %x', i, i * i), \
            zeroblob(40) || i from n;
        create index by_key on item(key);
        create index by_text on item(text);
        update item set text = text || ' again' where key % 5 = 0;
        delete from item where id % 11 = 3;
        select count(*), sum(key), min(text), max(text) from item;
        select count(*) from item a join item b on b.key = a.id where a.key % 3 = 1;
        pragma integrity_check;\n.sha3sum\n"
    )
}
