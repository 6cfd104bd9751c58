#!/usr/bin/env python3
"""Compares the memory that `tidemark curve` says a program needs with live runs in it.

    python3 bench/memory-needed.py [--runs 5] [--slowdown 10,50] [--only NAME,…] FOLDER

FOLDER is where the programs' inputs and recordings are put; what is there already is taken again. The
disk and faults are measured first (`tidemark doctor --calibrate`, kept in FOLDER alone). Each program
is recorded with `tidemark record --time`, `tidemark curve` tells the least memory under `tidemark run`
for each slow-down, and it is run in that, in turns with runs by itself: so often each, the median counts.
Some ten minutes with five runs, on two quiet processors. Needs `tidemark` as it was built for
release, or the one that TIDEMARK names, what `tidemark record` and `tidemark run` need, and `sort`,
`sqlite3`, `python3`, `node`, `g++` and `perl`.

Prints a table: the memory that was told, its range, and how much slower live runs are. Ends with 1 if
for 10 % the median over programs is not between 0 and 20 %, or one is above 40 %.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

OURS = Path(__file__).resolve().parent.parent
TIDEMARK = os.environ.get("TIDEMARK", str(OURS / "target/release/tidemark"))

# What is held to, in percent, of a bound of 10 %.
BOUND = 10
MEDIAN = (0, 20)
WORST = 40

# Pages are told apart to some microseconds, which is plenty, and traces stay short.
QUANTUM = "20000"

LINES = 250_000
FUNCTIONS = 60
TABLE = """\
import sys
n = int(sys.argv[1])
table = {str(i): [i, i * i, "x%d" % i] for i in range(n)}
total = 0
for _ in range(220):
    total += sum(value[1] for value in table.values())
words = [key for key, value in table.items() if value[0] % 7 == 0]
for _ in range(1400):
    words.sort(key=len)
    total += sum(table[word][0] for word in words)
print(total)
"""
JOIN = """\
pragma cache_size = -40000;
pragma temp_store = 2;
create table t(a, b);
with recursive c(x) as (values(1) union all select x + 1 from c where x < 150000)
insert into t select x, (x * 7919) % 1000003 from c;
create index i on t(b);
select sum(a) from (select a from t order by b desc);
with recursive n(i) as (values(1) union all select i + 1 from n where i < 24)
select sum((select count(*) from t x join t y on x.b = y.b + i)) from n;
with recursive n(i) as (values(1) union all select i + 1 from n where i < 200)
select sum((select sum(a * i) from t where rowid < 30000)) from n;
"""
MAP = """\
const map = new Map();
for (let i = 0; i < 60000; i++) map.set("k" + i, {n: i, text: "x" + (i * 7919) % 1000003});
let total = 0;
for (let round = 0; round < 40; round++)
    for (const [key, value] of map) total += value.n + key.length;
const few = [...map.keys()].slice(0, 15000);
for (let round = 0; round < 800; round++) for (const key of few) total += map.get(key).n;
console.log(total);
"""
HASH = """\
my %table;
for my $i (0 .. 49_999) { $table{$i} = [$i, $i * $i, "x$i"]; }
my $total = 0;
for (1 .. 8) { for my $key (sort keys %table) { $total += $table{$key}[1]; } }
for (1 .. 1500) { for my $i (0 .. 9_999) { $total += $table{$i}[0]; } }
print "$total\\n";
"""
FUNCTION = """\
double work_%d(const double *a, const double *b, double *c, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < 8; k++) {
                c[i * n + j] += a[i * n + k] * b[k * n + j] * %d;
                sum += c[i * n + j] > %d ? a[k] : b[k + j];
                if (sum > 1e9) sum /= c[k] + %d;
            }
    return sum;
}
"""

PYTHON = os.path.realpath(sys.executable)
# Name and words; in FOLDER.
PROGRAMS = {
    "sort": ["sort", "--parallel=1", "-V", "-S", "200M", "lines.txt", "-o", "sorted.txt"],
    "sqlite3": ["sqlite3", ":memory:", ".read join.sql"],
    "python3": [PYTHON, "table.py", "45000"],
    "node": ["node", "--single-threaded", "map.js"],
    "g++": ["g++", "-O3", "-c", "many.cpp", "-o", "many.o"],
    "perl": ["perl", "hash.pl"],
}


def write_inputs(folder):
    def line(number):
        digest = hashlib.sha1(str(number).encode()).hexdigest()
        return f"release-2026.10.21-rc.7-build.1234567-{int(digest[:12], 16)}\n"

    contents = {
        "lines.txt": lambda: "".join(line(number) for number in range(LINES)),
        "table.py": lambda: TABLE,
        "join.sql": lambda: JOIN,
        "map.js": lambda: MAP,
        "hash.pl": lambda: HASH,
        "many.cpp": lambda: "".join(FUNCTION % ((number,) * 4) for number in range(FUNCTIONS)),
    }
    for name, text in contents.items():
        path = folder / name
        if name != "lines.txt" or not path.exists():
            path.write_text(text())


def environment(folder):
    seeds = {"PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    return {**os.environ, "LC_ALL": "C", **seeds, **cache}


def call(folder, words, **options):
    """Runs a command in FOLDER that has to succeed. Answers it, and how long it took."""
    began = time.monotonic()
    done = subprocess.run(
        words, cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL, check=False, **options
    )
    if done.returncode != 0:
        sys.exit(f"`{' '.join(map(str, words))}` ended with {done.returncode}")
    return done, time.monotonic() - began


def tell_needs(folder, name, words, slowdowns):
    """The answer of `tidemark curve` for the program under `tidemark run`."""
    trace = folder / f"{name}.tide"
    if not trace.exists():
        command = [TIDEMARK, "record", "--time", "--quantum", QUANTUM, "-o", trace, "--", *words]
        call(folder, command, stdout=subprocess.DEVNULL)
    bounds = ",".join(map(str, slowdowns))
    command = [TIDEMARK, "curve", "--json", "--policies", "lru", "--rehearse", "always", "--slowdown", bounds, trace]
    done, took = call(folder, command, stdout=subprocess.PIPE, text=True)
    record = json.loads(done.stdout)
    print(f"{name}: simulated in {took:.0f} s", file=sys.stderr)
    if "run" not in record:
        sys.exit(f"`{name}`: {'; '.join(record['notes'])}")
    return record


def run_live(folder, words, sizes, runs):
    """The median of elapsed seconds by itself, and of the slow-down in each size.

    A slow-down is the ratio of two runs that follow each other: machines change their speed from one
    minute to the next.
    """
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    alone, slower = [], {size: [] for size in sizes}
    for _ in range(runs):
        for size, found in slower.items():
            alone.append(call(folder, words, **quiet)[1])
            inside = [TIDEMARK, "run", "--memory", str(size), "--"]
            found.append(call(folder, [*inside, *words], **quiet)[1] / alone[-1])
    return statistics.median(alone or [0]), {
        size: 100 * (statistics.median(found) - 1) for size, found in slower.items()
    }


def mib(bytes_):
    return f"{bytes_ / (1 << 20):.1f}"


def main():
    parser = argparse.ArgumentParser(description="compares memory needed with live runs")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5, help="live runs of each case")
    parser.add_argument("--slowdown", default="10,50", help="in percent")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PROGRAMS))
    arguments = parser.parse_args()
    unknown = set(arguments.only) - set(PROGRAMS)
    if unknown:
        parser.error(f"no program is called `{unknown.pop()}`; there are {', '.join(PROGRAMS)}")
    if not shutil.which(TIDEMARK):
        parser.error(f"there is no `{TIDEMARK}`; build it with `make build`, or name one in TIDEMARK")
    folder, slowdowns = arguments.folder.resolve(), [float(part) for part in arguments.slowdown.split(",")]
    folder.mkdir(parents=True, exist_ok=True)
    write_inputs(folder)
    call(folder, [TIDEMARK, "doctor", "--calibrate"], stdout=subprocess.DEVNULL)
    print("| program | by itself | managed | bound | memory needed, MiB | range | live |")
    print("|---|---|---|---|---|---|---|")
    at_bound = []
    for name in arguments.only:
        words = PROGRAMS[name]
        record = tell_needs(folder, name, words, slowdowns)
        run, page_bytes = record["run"], record["trace"]["page_bytes"]
        needs = run["needs"]
        alone, slower = run_live(folder, words, [need["bytes"] for need in needs], arguments.runs)
        for need in needs:
            found = slower[need["bytes"]]
            high = need.get("pages_high")
            span = f"{mib(need['pages_low'] * page_bytes)}–{mib(high * page_bytes) if high else ''}"
            bound = need["slowdown_percent_max"]
            if bound == BOUND:
                at_bound.append(found)
            print(
                f"| {name} | {alone:.2f} s | {mib(run['footprint_pages'] * page_bytes)} MiB "
                f"| {bound:g} % | {mib(need['bytes'])} | {span} | {found:+.0f} % |",
                flush=True,
            )
        for bound in set(slowdowns) - {need["slowdown_percent_max"] for need in needs}:
            print(f"| {name} | {alone:.2f} s | | {bound:g} % | none | | |", flush=True)
    if not at_bound:
        return
    median = statistics.median(at_bound)
    is_well = MEDIAN[0] <= median <= MEDIAN[1] and max(at_bound) <= WORST
    print(f"\nFor {BOUND} %: {median:+.0f} % in the median, {max(at_bound):+.0f} % at most: ", end="")
    print("as asked" if is_well else "not as asked")
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
