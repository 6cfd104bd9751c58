#!/usr/bin/env python3
"""Compares our curves of fixed-space policies with libCacheSim's, in counts and in speed.

    python3 bench/compare-libcachesim.py SCRATCH [--libcachesim TREE] [--references N] [TRACE…]

TREE is libCacheSim's source, built in TREE/build; without it, version 0.3.5 is fetched by pip and
built in SCRATCH (needs cmake, ninja, a C++ compiler, GLib's headers). Each TRACE is one of ours, of
one process; without any, python3 is recorded, and N references (5 million) to a million pages are
drawn by Zipf's law. `tidemark export` makes libCacheSim's input of them.

Misses of LRU, OPT (there Belady), FIFO, CLOCK, SIEVE, 2Q and ARC are compared at 20 sizes: `tidemark
curve` beside its simulators, and its stack distances for LRU. LIRS and S3-FIFO are different there:
its LIRS bounds the names it keeps otherwise; its S3-FIFO fills the main queue before a page has had to
prove itself, and then takes from that queue whenever it is over its share, else from the small one.
The greatest difference is shown. (Its CLOCK-Pro is known to be wrong.)

Then speed, by processor time: the exact LRU curve for every size, ours with the trace in memory,
theirs less what reading the file takes; and each policy at one size, hits included, both with the
trace in memory. Ends with 1 if a count differs, if our curve is less than 4 times as fast as the
faster of its tools, or a policy less than 1.5 times as fast as its own on fewer than 100,000 pages,
and 1.1 times on more.
"""

import argparse
import csv
import io
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
from pathlib import Path

VERSION = "0.3.5"
SIZES = 20
BAR = 4
SAME = ("lru", "opt", "fifo", "clock", "sieve", "2q", "arc")
OTHERS = ("lirs", "s3-fifo")
TIMED = ("fifo", "clock", "lru", "s3-fifo", "sieve", "arc")
BAR_NEAR, BAR_FAR = 1.5, 1.1
OURS = Path(__file__).resolve().parent.parent


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def read(*command, **options):
    return run(*command, **options, capture_output=True, text=True).stdout


def timed(*command, **options):
    """Runs a command; tells its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*command, **options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Theirs:
    """libCacheSim, built, and the files it leaves."""

    def __init__(self, tree, scratch):
        self.scratch = scratch
        self.tree = tree or self.fetch()
        self.bin = self.tree / "build" / "bin"
        if not (self.bin / "mrcProfiler").exists():
            self.build()
        self.counter = scratch / "libcachesim-misses"
        glib = read("pkg-config", "--cflags", "--libs", "glib-2.0").split()
        run("cc", "-O2", "-o", self.counter, OURS / "bench" / "libcachesim-misses.c", "-I",
            self.source() / "libCacheSim" / "include", self.tree / "build" / "liblibCacheSim.a",
            "-lstdc++", *glib, "-lm", "-lpthread", "-ldl")

    def fetch(self):
        tree = self.scratch / f"libcachesim-{VERSION}"
        if not tree.exists():
            run("pip", "download", f"libcachesim=={VERSION}", "--no-binary", ":all:", "--no-deps",
                "-d", self.scratch)
            run("tar", "xzf", f"{tree}.tar.gz", "-C", self.scratch)
        return tree

    def source(self):
        """In the package for Python the C source is a folder of its own."""
        inner = self.tree / "src" / "libCacheSim"
        return inner if inner.exists() else self.tree

    def build(self):
        (self.tree / "build").mkdir(exist_ok=True)
        run("cmake", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DENABLE_TESTS=OFF",
            "-DOPT_SUPPORT_ZSTD_TRACE=OFF", self.source(), cwd=self.tree / "build")
        run("ninja", "distUtil", "mrcProfiler", cwd=self.tree / "build")

    def count(self, trace, sizes):
        return parse(line.split() for line in read(self.counter, trace, *sizes).splitlines())

    def count_by_distance(self, trace, sizes):
        """LRU's misses: a distance counts the other pages between two uses, and a page without one
        has the largest. The tool can't tell the place of the very first reference from none, and
        would take the second to the same page for a first one: so a page that is used once goes
        before all others, and is not counted."""
        behind = self.scratch / "behind"
        with open(behind, "wb") as out, open(trace, "rb") as source:
            out.write(struct.pack("<IQIq", 0, 1 << 60, 1, -1))
            shutil.copyfileobj(source, out)
        run(*self.distances(behind, "stack_dist"), cwd=self.scratch, capture_output=True)
        behind.unlink()
        text = (self.scratch / "stack_dist.STACK_DIST.cnt").read_text()
        pairs = [(int(d), int(n)) for d, n in re.findall(r"(-?\d+):(\d+)", text)]
        return {("lru", size): sum(n for d, n in pairs if d >= size or d < 0) - 1 for size in sizes}

    def distances(self, trace, what):
        return (self.bin / "distUtil", trace, "oracleGeneral", what, "cntTxt", self.scratch / what)

    def measure(self, trace):
        """Seconds of the tools that make an exact curve, less what reading the file takes."""
        reading = timed(*self.distances(trace, "dist_since_last_access"), cwd=self.scratch)
        profiler = (self.bin / "mrcProfiler", trace, "oracleGeneral", "--algo=LRU",
                    "--profiler=SHARDS", "--profiler-params=FIX_RATE,1,42", "--size=0.05,1,20",
                    "--ignore-obj-size")
        tools = {"distUtil stack_dist": self.distances(trace, "stack_dist"),
                 "mrcProfiler, every page": profiler}
        return reading, {name: timed(*tool, cwd=self.scratch) for name, tool in tools.items()}


def parse(rows):
    return {(policy, int(size)): int(misses) for policy, size, misses in rows}


def count_ours(tidemark, trace, sizes):
    at = ",".join(map(str, sizes))
    table = read(tidemark, "curve", trace, "--policies", ",".join(SAME + OTHERS), "--at", at, "--csv")
    rows = csv.DictReader(io.StringIO(table))
    return parse((row["policy"], row["pages"], row["misses"]) for row in rows)


def compare(what, ours, theirs):
    for policy in OTHERS:
        pairs = [(ours[key], theirs[key]) for key in theirs if key[0] == policy]
        if pairs:
            greatest = max(abs(a - b) / b for a, b in pairs)
            print(f"  {what} {policy}: up to {100 * greatest:.2f} % apart")
    theirs = {key: misses for key, misses in theirs.items() if key[0] in SAME}
    different = [key for key in theirs if ours.get(key) != theirs[key]]
    for key in different:
        print(f"  {what} {key}: ours {ours.get(key)}, theirs {theirs[key]}")
    print(f"  {what}: {len(theirs)} counts, {len(different)} differ")
    return not different


def compare_speed(references, seconds_ours, reading, seconds_theirs):
    print("  million references a second of processor time;"
          f" what reading takes them, {reading:.2f} s, is taken away")
    print(f"  {'ours':<24} {references / seconds_ours / 1e6:9.2f}")
    for name, seconds in seconds_theirs.items():
        alone = max(seconds - reading, 1e-3)
        times = alone / seconds_ours
        print(f"  {name:<24} {references / alone / 1e6:9.2f}, with reading"
              f" {references / seconds / 1e6:.2f}; ours is {times:.1f} times as fast")
    return min(max(s - reading, 1e-3) for s in seconds_theirs.values()) >= BAR * seconds_ours


def compare_replay(example, counter, words, oracle, pages):
    """Each policy at one size: a tenth of the pages, or 100,000."""
    size = min(max(1, pages // 10), 100_000)
    table = read(example, "--words", words, size, *TIMED).splitlines()
    rows = (line.split() for line in table)
    ours = {row[0]: float(row[2]) for row in rows if len(row) == 3}
    rows = (line.split() for line in read(counter, "--speed", oracle, size).splitlines())
    theirs = {row[0]: float(row[3]) for row in rows}
    bar = BAR_NEAR if pages < 100_000 else BAR_FAR
    print(f"  million references a second at {size} pages, hits included")
    for policy in TIMED:
        times = ours[policy] / theirs[policy]
        print(f"  {policy:<24} {ours[policy]:9.2f}, theirs {theirs[policy]:.2f}: {times:.1f} times")
    return all(ours[policy] >= bar * theirs[policy] for policy in TIMED)


def examine(name, trace, theirs, tidemark, example, scratch):
    words, oracle = scratch / "words", scratch / "oracle"
    run(tidemark, "export", trace, "--to", "u32", "--dense", "-o", words, capture_output=True)
    run(tidemark, "export", trace, "--to", "oracleGeneral", "-o", oracle, capture_output=True)
    speed = read(example, "--words", words)
    references, pages = map(int, re.search(r": (\d+) references, (\d+) pages", speed).groups())
    rate = float(re.search(r"lru, every size +([\d.]+)", speed).group(1)) * 1e6
    print(f"{name}: {references} references, {pages} pages", flush=True)
    # A memory of all pages has only first misses to count.
    sizes = sorted({max(1, (pages - 1) * part // SIZES) for part in range(1, SIZES + 1)})
    ours = count_ours(tidemark, trace, sizes)
    good = compare("simulators", ours, theirs.count(oracle, sizes))
    good &= compare("distances", ours, theirs.count_by_distance(oracle, sizes))
    good &= compare_speed(references, references / rate, *theirs.measure(oracle))
    replay = example.parent / "replay_speed"
    good &= compare_replay(replay, theirs.counter, words, oracle, pages)
    return good


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--libcachesim", type=Path)
    parser.add_argument("--references", default="5M")
    parser.add_argument("traces", nargs="*", type=Path)
    asked = parser.parse_args()
    scratch = asked.scratch.resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    # First, so that what is missing here is said before their tree is built.
    run("make", "-s", "build", cwd=OURS)
    theirs = Theirs(asked.libcachesim and asked.libcachesim.resolve(), scratch)
    run("cargo", "build", "--release", "-q", "-p", "tidemark-lab", "--example", "curve_speed",
        "--example", "replay_speed", cwd=OURS)
    target = Path(os.environ.get("CARGO_TARGET_DIR", OURS / "target")) / "release"
    tidemark, example = target / "tidemark", target / "examples" / "curve_speed"
    traces = {str(trace): trace for trace in asked.traces}
    if not traces:
        traces = {"python3": scratch / "python3.tide", "zipf": scratch / "zipf.tide"}
        run(tidemark, "record", "--exact", "-o", traces["python3"], "--", "/usr/bin/python3", "-S",
            "-c", "pass")
        run(tidemark, "generate", "-o", traces["zipf"], "--references", asked.references, "--seed",
            "7", "zipf", "--pages", "1M")
    good = [examine(name, trace, theirs, tidemark, example, scratch)
            for name, trace in traces.items()]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
