#!/usr/bin/env python3
"""Compares what the lab predicts of five real programs with what live runs come to.

    python3 bench/compare-predictions.py [--runs 3] [--only NAME,…] FOLDER

FOLDER is where the programs' inputs and recordings are put, about 300 MB; what is there already is
taken again. Each program is recorded, replayed and run live by `tidemark compare` in 75, 50 and
25 % of the memory it uses, so often each. Needs `tidemark` as it was built for release, or the one
that TIDEMARK names, what `tidemark record` and `tidemark run` need, and `sort`, `sqlite3`, `python3` and `g++`.

Prints a table of page-ins: predicted, over the median of the live runs, in percent, and in
brackets how far the live runs are apart, in percent of that median. Bounds are 5 % for programs of
one thread and process, and 15 % for others. A cell is `ok` within its bound, `wide` where live runs
themselves are further apart than that, and `off` otherwise.

Ends with 1 if a cell is off.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

OURS = Path(__file__).resolve().parent.parent
TIDEMARK = os.environ.get("TIDEMARK", str(OURS / "target/release/tidemark"))
SHARES = (75, 50, 25)

LINES = 200_000
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
with recursive c(x) as (values(1) union all select x + 1 from c where x < 250000)
insert into t select x, (x * 7919) % 1000003 from c;
create index i on t(b);
select sum(a) from (select a from t order by b desc);
select count(*) from t x join t y on x.b = y.b + 1;
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

# Name, the bound in percent, and the words; in FOLDER.
PROGRAMS = [
    ("sort-1", 5, ["sort", "--parallel=1", "-S", "100M", "lines.txt"]),
    ("sqlite3", 5, ["sqlite3", ":memory:", ".read join.sql"]),
    ("python3", 5, [os.path.realpath(sys.executable), "dict.py", "40000"]),
    ("g++", 15, ["g++", "-O1", "-c", "headers.cpp", "-o", "headers.o"]),
    ("sort-2", 15, ["sort", "--parallel=2", "-S", "100M", "lines.txt"]),
]


def write_inputs(folder):
    def line(number):
        return hashlib.sha1(str(number).encode()).hexdigest() + "." * 48 + "\n"

    contents = {
        "lines.txt": "".join(line(number) for number in range(LINES)),
        "dict.py": DICT,
        "join.sql": JOIN,
        "headers.cpp": HEADERS,
    }
    for name, text in contents.items():
        (folder / name).write_text(text)


def compare(folder, name, words, runs):
    """What `tidemark compare` finds, as its record."""
    memory = ",".join(f"{share}%" for share in SHARES)
    command = [TIDEMARK, "compare", "--json", "--memory", memory]
    command += ["--runs", str(runs), "--trace", f"{name}.tide", "--", *words]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"`{name}`: `tidemark compare` ended with {done.returncode}")
    return json.loads(done.stdout)


def judge(case, bound):
    """The cell of a case: how far the prediction is off, the spread, and what that means."""
    live = sorted(counts["page_ins"] for counts in case["live"])
    median = live[(len(live) - 1) // 2] or 1
    off = 100 * (case["predicted"]["page_ins"] - median) / median
    spread = 100 * (live[-1] - live[0]) / median
    word = "ok" if abs(off) <= bound else "wide" if spread > bound else "off"
    return off, spread, word


def main():
    names = [name for name, _, _ in PROGRAMS]
    parser = argparse.ArgumentParser(description="compares predictions with live runs")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", type=lambda text: text.split(","), default=names)
    arguments = parser.parse_args()
    unknown = set(arguments.only) - set(names)
    if unknown:
        parser.error(f"no program is called `{unknown.pop()}`; there are {', '.join(names)}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    write_inputs(arguments.folder)
    print("| program | managed | bound | " + " | ".join(f"{share} %" for share in SHARES) + " |")
    print("|---|---|---|" + "---|" * len(SHARES))
    is_off = False
    for name, bound, words in PROGRAMS:
        if name not in arguments.only:
            continue
        record = compare(arguments.folder, name, words, arguments.runs)
        (arguments.folder / f"{name}.json").write_text(json.dumps(record))
        cells = [judge(case, bound) for case in reversed(record["cases"])]
        is_off |= any(word == "off" for _, _, word in cells)
        told = " | ".join(f"{off:+.1f} ({spread:.0f}) {word}" for off, spread, word in cells)
        managed = record["footprint_pages"] * record["page_bytes"] / (1 << 20)
        print(f"| {name} | {managed:.1f} MiB | {bound} % | {told} |", flush=True)
    sys.exit(1 if is_off else 0)


if __name__ == "__main__":
    main()
