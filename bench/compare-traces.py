#!/usr/bin/env python3
"""Compares misses on public page traces with what their authors' programs and papers say.

    python3 bench/compare-traces.py FOLDER

FOLDER has the traces of the LIRS and CLOCK-Pro papers (`sprite.trace`, `cpp.trace`, …: page numbers
as text, maybe gzipped) and of the ARC paper (`OLTP.lis`, …: a line is the first page and how many
follow, maybe compressed by zstd); those that are not there are left out. None of them is ours to
pass on. Hit ratios are compared with the tables below: LRU and ARC with the ARC paper, LIRS and
CLOCK-Pro with what the authors' own programs count. These are run with 1 % of the frames, one at
least, for LIRS's cold pages, names without bound, and with 5 % for CLOCK-Pro's: their own settings
but for the least, which is 2. Both take a page that is used twice in a row for used once, so such
repetitions are left out, and counted as hits.

Ends with 1 if a ratio differs by more than a hundredth of a point (LRU), 0.05 (ARC), 0.2 (LIRS and
CLOCK-Pro).
"""

import argparse
import array
import gzip
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

OURS = Path(__file__).resolve().parent.parent

# Trace, frames, hits in percent under LRU and ARC.
ARC_PAPER = [
    ("OLTP", 1000, 32.83, 38.93), ("OLTP", 2000, 42.47, 46.08), ("OLTP", 5000, 53.65, 55.25),
    ("OLTP", 10000, 60.70, 61.87), ("OLTP", 15000, 64.63, 65.40), ("P2", 32768, 18.47, 27.38),
    ("P3", 32768, 3.57, 17.12), ("P6", 32768, 4.24, 23.84), ("P12", 32768, 8.93, 15.94),
]

# Trace, frames, hits in percent under LIRS and CLOCK-Pro. The author's CLOCK-Pro does not end where
# there is none.
AUTHORS = [
    ("2_pools", 100, 45.15, 46.21), ("2_pools", 450, 51.71, 51.65), ("cpp", 20, 25.07, None),
    ("cpp", 80, 73.13, 72.33), ("cpp", 300, 85.04, 85.16), ("cs", 100, 6.99, 6.56),
    ("cs", 500, 30.44, 28.14), ("cs", 1000, 59.53, 57.19), ("gli", 100, 7.27, 5.80),
    ("gli", 1000, 50.72, 50.06), ("gli", 2000, 57.96, 57.96), ("ps", 100, 30.48, 17.58),
    ("ps", 500, 57.39, 56.38), ("ps", 1000, 66.86, 65.48), ("multi1", 200, 47.97, 48.07),
    ("multi1", 1000, 68.40, 67.52), ("multi1", 1900, 83.26, 83.25), ("multi2", 200, 39.53, 33.13),
    ("multi2", 1000, 58.15, 56.71), ("multi2", 2600, 76.15, 75.45), ("multi3", 200, 34.25, 29.11),
    ("multi3", 1000, 49.56, 51.86), ("multi3", 3400, 71.04, 70.28), ("sprite", 100, 25.06, 27.99),
    ("sprite", 600, 80.89, 81.41), ("sprite", 1000, 87.62, 88.41), ("loop", 256, 25.07, 24.09),
    ("loop", 1000, 97.73, 93.78), ("scan", 100, 4.75, 4.56), ("scan", 500, 23.75, 22.79),
    ("zigzag", 100, 0.00, 0.19), ("zigzag", 1000, 0.43, 2.36),
]
LIRS = "lirs:hir=10,ghosts=100000"
CLOCK_PRO = "clock-pro:ghosts=1000,cold-least=50,cold-most=50"


def read_text(folder, name):
    """The text of a trace, or none if it is not there."""
    if (folder / name).exists():
        return (folder / name).read_text()
    if (folder / f"{name}.gz").exists():
        return gzip.open(folder / f"{name}.gz", "rt").read()
    if (folder / f"{name}.zst").exists():
        packed = folder / f"{name}.zst"
        return subprocess.run(["zstd", "-dc", packed], check=True, capture_output=True,
                              text=True).stdout
    return None


def read_author(folder, name):
    """Pages without repetitions in a row, and how many references there were."""
    text = read_text(folder, f"{name}.trace")
    if text is None:
        return None
    pages = [int(word) for word in text.split() if word != "*"]
    return [a for a, b in zip(pages, [-1, *pages]) if a != b], len(pages)


def read_arc(folder, name):
    text = read_text(folder, f"{name}.lis")
    if text is None:
        return None
    pages = array.array("I")
    for line in text.splitlines():
        first, many = map(int, line.split()[:2])
        pages.extend(range(first, first + many))
    return pages, len(pages)


def count_hits(example, trace, frames, policies):
    """Hits in percent."""
    pages, references = trace
    with tempfile.NamedTemporaryFile() as words:
        words.write(struct.pack(f"<{len(pages)}I", *pages))
        words.flush()
        rows = subprocess.run([example, "--misses", words.name, str(frames), *policies],
                              check=True, capture_output=True, text=True).stdout.splitlines()
    return [100 - 100 * int(row.split()[-1]) / references for row in rows]


def compare(example, folder, table, read, policies, bars):
    is_good, traces = True, {}
    for name, frames, *expected in table:
        if name not in traces:
            traces = {name: read(folder, name)}
        if traces[name] is None:
            print(f"{name:8} {frames:6} is not there")
            continue
        hits = count_hits(example, traces[name], frames, policies)
        text = ""
        for policy, ours, theirs, bar in zip(policies, hits, expected, bars):
            said = "     -" if theirs is None else f"{theirs:6.2f}"
            good = theirs is None or abs(ours - theirs) <= bar + 0.005
            is_good &= good
            text += f"  {policy.split(':')[0]} {ours:6.2f} for {said}{'' if good else ' (!)'}"
        print(f"{name:8} {frames:6}{text}", flush=True)
    return is_good


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    subprocess.run(["cargo", "build", "--release", "-q", "-p", "tidemark-lab", "--example",
                    "replay_speed"], cwd=OURS, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", OURS / "target")) / "release"
    example = target / "examples" / "replay_speed"
    good = compare(example, folder, ARC_PAPER, read_arc, ["lru", "arc"], [0.0, 0.05])
    good &= compare(example, folder, AUTHORS, read_author, [LIRS, CLOCK_PRO], [0.2, 0.2])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
