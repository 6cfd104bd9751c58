#!/usr/bin/env python3
"""Compares our fixed-space curves with libCacheSim's, in counts and in speed.

    python3 bench/compare-libcachesim.py SCRATCH [FILE]

Fetches libCacheSim 0.3.5's source by pip into SCRATCH and builds it there (needs cmake, ninja,
a C++ compiler, GLib's headers), builds our example `curve_speed`, and runs both over one string:
FILE, of page numbers (little-endian, 4 bytes each), or one drawn from 100,000 pages by Zipf's law.
LRU is compared at every size through the tool's own distances. Its simulator prints four digits, so
the optimum, FIFO and CLOCK are compared on the first 10,000 references, where those are exact. Ends
with 1 if a count differs.
"""

import array
import itertools
import os
import random
import re
import resource
import struct
import subprocess
import sys
from pathlib import Path

VERSION = "0.3.5"
SIZES = 20
SHORT = 10_000
OURS = Path(__file__).resolve().parent.parent


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def build_theirs(scratch):
    tree = scratch / f"libcachesim-{VERSION}"
    bin = tree / "build" / "bin"
    if not (bin / "distUtil").exists():
        run("pip", "download", f"libcachesim=={VERSION}", "--no-binary", ":all:", "--no-deps",
            "-d", scratch)
        run("tar", "xzf", scratch / f"libcachesim-{VERSION}.tar.gz", "-C", scratch)
        (tree / "build").mkdir(exist_ok=True)
        run("cmake", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DENABLE_TESTS=OFF",
            "-DOPT_SUPPORT_ZSTD_TRACE=OFF", tree / "src" / "libCacheSim", cwd=tree / "build")
        run("ninja", "distUtil", "mrcProfiler", "cachesim", cwd=tree / "build")
    return bin


def draw_zipf(pages=100_000, references=2_000_000):
    weights = list(itertools.accumulate(1 / rank for rank in range(1, pages + 1)))
    return array.array("I", random.Random(7).choices(range(pages), cum_weights=weights,
                                                     k=references))


def write_both(words, stem):
    """Writes our form and theirs: time, page, size, place of the next reference or -1."""
    own, other = stem.with_suffix(".words"), stem.with_suffix(".oracleGeneral.bin")
    own.write_bytes(words.tobytes())
    later, next_uses = {}, [-1] * len(words)
    for at in range(len(words) - 1, -1, -1):
        next_uses[at] = later.get(words[at], -1)
        later[words[at]] = at
    row = struct.Struct("<IQIq")
    with open(other, "wb") as out:
        for at, page in enumerate(words):
            out.write(row.pack(at // 1000, page + 1, 1, next_uses[at]))
    return own, other


def timed(*command, **options):
    """Runs a command; tells its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*command, **options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def count_ours(example, words, sizes):
    at = ",".join(map(str, sizes))
    out = run(example, "--words", words, "--at", at, capture_output=True, text=True).stdout
    lines = (line.split() for line in out.splitlines())
    return {(policy, int(size)): int(misses) for policy, size, misses in lines}


def count_theirs_lru(bin, trace, scratch, sizes):
    """Their distance counts the other pages between two uses; -1 or the largest is none."""
    run(bin / "distUtil", trace, "oracleGeneral", "stack_dist", "cntTxt", scratch / "dist",
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=scratch)
    pairs = re.findall(r"(-?\d+):(\d+)", (scratch / "dist.STACK_DIST.cnt").read_text())
    pairs = [(int(distance), int(count)) for distance, count in pairs]
    missed = lambda size: sum(n for d, n in pairs if d >= size or d < 0)
    return {("lru", size): missed(size) for size in sizes}


def count_theirs_short(bin, trace, scratch, sizes):
    names = {"LRU": "lru", "Belady": "opt", "FIFO": "fifo", "Clock": "clock"}
    run(bin / "cachesim", trace, "oracleGeneral", ",".join(names), ",".join(map(str, sizes)),
        "--ignore-obj-size=true", "-o", scratch / "short.txt", cwd=scratch,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    text = (scratch / "short.txt").read_text()
    rows = re.findall(r"(\w+) cache size +(\d+), +(\d+) req, miss ratio ([\d.]+)", text)
    return {(names[name], int(size)): round(float(ratio) * int(count))
            for name, size, count, ratio in rows}


def compare(what, ours, theirs):
    different = [key for key in theirs if ours[key] != theirs[key]]
    for key in different:
        print(f"{what}: {key} ours {ours[key]} theirs {theirs[key]}")
    print(f"{what}: {len(theirs)} counts, {len(different)} differ")
    return not different


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    scratch = Path(sys.argv[1]).resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    bin = build_theirs(scratch)
    run("cargo", "build", "--release", "-q", "-p", "tidemark-lab", "--example", "curve_speed",
        cwd=OURS)
    target = Path(os.environ.get("CARGO_TARGET_DIR", OURS / "target"))
    example = target / "release" / "examples" / "curve_speed"
    if len(sys.argv) == 3:
        words = array.array("I")
        words.frombytes(Path(sys.argv[2]).read_bytes())
    else:
        words = draw_zipf()
    page_count = len(set(words))
    spread = lambda most: sorted({max(1, most * part // SIZES) for part in range(1, SIZES + 1)})
    own, other = write_both(words, scratch / "whole")
    sizes = spread(page_count)
    good = compare("lru, whole string", count_ours(example, own, sizes),
                   count_theirs_lru(bin, other, scratch, sizes))
    own_short, other_short = write_both(words[:SHORT], scratch / "short")
    # A memory of every page has nothing to compare, and theirs may be one page short there.
    sizes = spread(len(set(words[:SHORT])) - 1)
    good &= compare("short string", count_ours(example, own_short, sizes),
                    count_theirs_short(bin, other_short, scratch, sizes))
    count = len(words)
    print(f"{count} references, {page_count} pages; million a second of processor time")
    # Reading the file is in their time; take what it takes to read it away.
    reading = timed(bin / "distUtil", other, "oracleGeneral", "dist_since_last_access", "cntTxt",
                    scratch / "since", cwd=scratch)
    exact = timed(bin / "distUtil", other, "oracleGeneral", "stack_dist", "cntTxt",
                  scratch / "dist", cwd=scratch)
    profiler = timed(bin / "mrcProfiler", other, "oracleGeneral", "--algo=LRU",
                     "--profiler=SHARDS", "--profiler-params=FIX_RATE,1,42", "--size=0.05,1,20",
                     "--ignore-obj-size", cwd=scratch)
    for name, seconds in [("distUtil, stack_dist", exact), ("mrcProfiler, every page", profiler),
                          ("distUtil, last access (reading)", reading)]:
        print(f"{name:<34} {count / seconds / 1e6:8.1f}")
    run(example, "--words", own)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
