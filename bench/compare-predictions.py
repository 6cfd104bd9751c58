#!/usr/bin/env python3
"""Compares what the lab predicts of five real programs with what live runs come to.

    python3 bench/compare-predictions.py [--store KIND] [--runs 3] [--shares 75,50,25] [--only …] FOLDER
    python3 bench/compare-predictions.py --in-step [--policy NAME,…] [--shares …] [--only …] FOLDER

FOLDER is where the programs' inputs and recordings are put, about 300 MB; what is there already is
taken again. Each program is recorded, replayed and run live by `tidemark compare` in 75, 50 and 25 %
of the memory it uses, so often each, which takes tens of minutes. Needs `tidemark` as it was built for
release, or the one that TIDEMARK names, what `tidemark record` and `tidemark run` need, and `sort`,
`sqlite3`, `python3` and `g++`.

The store is `file`, or the one that `--store compressed+file` names. With that there are two lines
for each program: pages that came back compressed, and pages that were read from disk; the bound is 10 %.

Prints a table of page-ins: predicted, over the median of the live runs, in percent, and in
brackets how far the live runs are apart, in percent of that median. Bounds are 5 % for programs of
one thread and process, and 15 % for others. A cell is `ok` within its bound, `wide` where live runs
themselves are further apart than that, and `off` otherwise. Where live runs are far apart, the median
of three is so, too: `--only sqlite3 --shares 75 --runs 21` takes a closer look at one cell.

With `--in-step` the lab and the live program are in step, and all that they decide must be the
same. The programs are of one thread then: `sort`, `sqlite3`, `python3`, `perl` and `mawk`. Prints how
many decisions there were, and the page-ins that they came to on both sides.

Ends with 1 if a cell is off, or if decisions part.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

OURS = Path(__file__).resolve().parent.parent
TIDEMARK = os.environ.get("TIDEMARK", str(OURS / "target/release/tidemark"))

LINES = 200_000
LINES_FEWER = 130_000
LINES_MORE = 600_000
ROWS = 750_000
ROWS_FEWER = 215_000
DICT = """\
import sys
n = int(sys.argv[1])
table = {}
for i in range(n):
    table[str(i)] = [i, i * i, "x%d" % i]
total = 0
for i in range(0, n, 3):
    total += table[str(i)][0]
entries = sorted(table.items(), key=lambda entry: entry[1][2])
for _ in range(2):
    for _, value in entries:
        total += value[1]
print(total)
"""
JOIN = """\
pragma cache_size = -40000;
pragma temp_store = 2;
create table t(a, b);
with recursive c(x) as (values(1) union all select x + 1 from c where x < ROWS)
insert into t select x, (x * 7919) % 1000003 from c;
create index i on t(b);
select sum(a) from (select a from t order by b desc);
select count(*) from t x join t y on x.b = y.b + 1;
"""
HASH = """\
my %table;
for my $i (0 .. $ARGV[0] - 1) {
    $table{$i} = [$i, $i * $i, "x$i"];
}
my $total = 0;
for (1 .. 2) {
    for my $key (keys %table) {
        $total += $table{$key}[1];
    }
}
print "$total\\n";
"""
PREFIXES = """\
NR > most {
    exit
}
{
    line[NR] = $0
    last[substr($0, 1, 8)] = NR
}
END {
    for (i = NR; i > 0; i--)
        total += last[substr(line[i], 1, 8)]
    print total
}
"""
HEADERS = """\
#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>
int main() {
    std::map<std::string, std::vector<int>> map;
    for (int i = 0; i < 1000; i++)
        map[std::to_string(i)].push_back(i);
    std::cout << map.size();
}
"""

PYTHON = os.path.realpath(sys.executable)
# Name, the bound in percent, and the words; in FOLDER.
PROGRAMS = [
    ("sort-1", 5, ["sort", "--parallel=1", "-S", "100M", "lines.txt"]),
    ("sqlite3", 5, ["sqlite3", ":memory:", ".read join.sql"]),
    ("python3", 5, [PYTHON, "dict.py", "160000"]),
    ("g++", 15, ["g++", "-O1", "-c", "headers.cpp", "-o", "headers.o"]),
    ("sort-2", 15, ["sort", "--parallel=2", "-S", "100M", "more.txt"]),
]
# Those that are run in step. A quarter of their memory is the least that a program is run in, 4 MiB,
# and little more: each fault waits for the disk twice.
IN_STEP = [
    ("sort-1", ["sort", "--parallel=1", "-S", "100M", "fewer.txt"]),
    ("sqlite3", ["sqlite3", ":memory:", ".read smaller-join.sql"]),
    ("python3", [PYTHON, "dict.py", "40000"]),
    ("perl", ["perl", "hash.pl", "40000"]),
    ("mawk", ["mawk", "-v", "most=72000", "-f", "prefixes.awk", "lines.txt"]),
]


# What is compared, by what is added to the name of the program: without compressed memory, and with.
PLAIN = {"": "page_ins"}
COMPRESSED = {", decompressed": "decompressed_pages", ", read from disk": "bytes_read"}


def write_inputs(folder):
    def line(number):
        return hashlib.sha1(str(number).encode()).hexdigest() + "." * 48 + "\n"

    lines = [line(number) for number in range(LINES_MORE)]
    contents = {
        "lines.txt": "".join(lines[:LINES]),
        "more.txt": "".join(lines),
        "fewer.txt": "".join(lines[:LINES_FEWER]),
        "dict.py": DICT,
        "join.sql": JOIN.replace("ROWS", str(ROWS)),
        "smaller-join.sql": JOIN.replace("ROWS", str(ROWS_FEWER)),
        "hash.pl": HASH,
        "prefixes.awk": PREFIXES,
        "headers.cpp": HEADERS,
    }
    for name, text in contents.items():
        (folder / name).write_text(text)


def compare(arguments, name, words, options):
    """The findings of `tidemark compare`, as its record."""
    memory = ",".join(f"{share}%" for share in arguments.shares)
    command = [TIDEMARK, "compare", "--json", "--memory", memory, *options, "--", *words]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        command,
        cwd=arguments.folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    # In step it ends with 1 where decisions part, which is on record.
    if done.returncode not in ((0, 1) if "--in-step" in options else (0,)):
        sys.exit(f"`{name}`: `tidemark compare` ended with {done.returncode}")
    return json.loads(done.stdout)


def managed(record):
    """All the managed memory that the program uses."""
    return f"{record['footprint_pages'] * record['page_bytes'] / (1 << 20):.1f} MiB"


def judge(case, count, bound):
    """The cell of a case: how far the prediction is off, the spread, and what that means."""
    live = sorted(counts[count] for counts in case["live"])
    median = live[(len(live) - 1) // 2] or 1
    off = 100 * (case["predicted"][count] - median) / median
    spread = 100 * (live[-1] - live[0]) / median
    word = "ok" if abs(off) <= bound else "wide" if spread > bound else "off"
    return off, spread, word


def print_predictions(arguments):
    """The table of predictions over live runs. Answers whether all cells are well."""
    shares = "".join(f" {share} % |" for share in arguments.shares)
    print(f"| program | managed | bound |{shares}")
    print("|---|---|---|" + "---|" * len(arguments.shares))
    are_well = True
    for name, bound, words in PROGRAMS:
        if name not in arguments.only:
            continue
        options = ["--runs", str(arguments.runs), "--trace", f"{name}.tide"]
        options += ["--store", arguments.store]
        record = compare(arguments, name, words, options)
        (arguments.folder / f"{name}.json").write_text(json.dumps(record))
        is_plain = arguments.store == "file"
        bound = bound if is_plain else max(bound, 10)
        for what, count in (PLAIN if is_plain else COMPRESSED).items():
            cells = [judge(case, count, bound) for case in reversed(record["cases"])]
            are_well &= all(word != "off" for _, _, word in cells)
            told = " | ".join(f"{off:+.1f} ({spread:.0f}) {word}" for off, spread, word in cells)
            print(f"| {name}{what} | {managed(record)} | {bound} % | {told} |", flush=True)
    return are_well


def print_in_step(arguments):
    """The table of decisions, a line a case. Answers whether they are the same throughout."""
    print("| program | managed | policy | memory | decisions | page-ins, predicted | live | |")
    print("|---|---|---|---|---|---|---|---|")
    are_same = True
    for name, words in IN_STEP:
        if name not in arguments.only:
            continue
        # The recording is not kept: it is of the environment that this was started in.
        options = ["--in-step", "--policy", arguments.policy]
        record = compare(arguments, name, words, options)
        (arguments.folder / f"{name}-in-step.json").write_text(json.dumps(record))
        shares = arguments.shares[::-1] * (len(record["cases"]) // len(arguments.shares))
        for share, case in zip(shares, record["cases"], strict=True):
            decisions, page_ins = case["decisions"], case["predicted"]["page_ins"]
            parting = decisions["first_difference"]
            is_same = parting is None and page_ins == case["live"][0]["page_ins"]
            are_same &= is_same
            word = "the same" if is_same else f"part at {parting and parting['line']}"
            print(
                f"| {name} | {managed(record)} | {case['policy']} | {share} % "
                f"| {decisions['live']:,} | {page_ins:,} | {case['live'][0]['page_ins']:,} "
                f"| {word} |",
                flush=True,
            )
    return are_same


def shares_of(text):
    """The shares of memory that `text` lists, falling."""
    shares = {int(part) for part in text.split(",") if part.isdecimal()}
    if len(shares) != len(text.split(",")) or not shares <= set(range(1, 101)):
        raise argparse.ArgumentTypeError(f"`{text}` is no list of percents, like 75,50,25")
    return sorted(shares, reverse=True)


def main():
    parser = argparse.ArgumentParser(description="compares predictions with live runs")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--in-step", action="store_true", help="compare decisions one by one")
    parser.add_argument("--policy", default="tidemark", help="of those that can run live, in step")
    parser.add_argument("--store", choices=["file", "compressed+file"], default="file")
    parser.add_argument("--runs", type=int, default=3, help="live runs of each case, out of step")
    parser.add_argument("--shares", type=shares_of, default="75,50,25", help="in percent")
    parser.add_argument("--only", type=lambda text: text.split(","))
    arguments = parser.parse_args()
    names = [row[0] for row in (IN_STEP if arguments.in_step else PROGRAMS)]
    arguments.only = arguments.only or names
    unknown = set(arguments.only) - set(names)
    if unknown:
        parser.error(f"no program is called `{unknown.pop()}`; there are {', '.join(names)}")
    if not shutil.which(TIDEMARK):
        parser.error(f"there is no `{TIDEMARK}`; build it with `make build`, or name one in TIDEMARK")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    write_inputs(arguments.folder)
    is_well = print_in_step(arguments) if arguments.in_step else print_predictions(arguments)
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
