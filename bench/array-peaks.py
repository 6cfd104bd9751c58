#!/usr/bin/env python3
"""Prints the most memory that numpy and scikit-learn take under `tidemark.memory_limit`.

Usage: bench/array-peaks.py [NAME…], of `product`, `sort`, `sort-large` and `k-means`; all, if none
is named. Needs the installed package, numpy, and scikit-learn for the last.

Each runs in a process of its own, on data of four times the limit (three for the product). Its
private memory (`RssAnon`) is read each 2 ms from outside, and what it had before the limit began is
taken off.
"""

import subprocess
import sys
import time

WORK = {
    "product": (128, """
        a, b = rng.random((4096, 4096)), rng.random((4096, 4096))
        c = np.empty((4096, 4096))
        parts = [slice(at, at + 1024) for at in range(0, 4096, 1024)]
        for row in parts:
            for column in parts:
                c[row, column] = sum(a[row, k] @ b[k, column] for k in parts)
    """),
    "sort": (64, "np.sort(rng.random(32 << 20))"),
    "sort-large": (512, "np.sort(rng.random(256 << 20))"),
    "k-means": (256, """
        data = rng.random((8 << 20, 16))
        KMeans(8, n_init=1, max_iter=5, random_state=1).fit(data)
    """),
}


def run(name: str) -> None:
    import textwrap

    import numpy as np

    import tidemark

    cap, work = WORK[name]
    values = {"np": np, "rng": np.random.default_rng(1)}
    if name == "k-means":
        from sklearn.cluster import KMeans

        values["KMeans"] = KMeans
    print("begin", flush=True)
    sys.stdin.readline()
    with tidemark.memory_limit(cap << 20, swap_size="8G") as engine:
        exec(textwrap.dedent(work), values)
        counted = engine.statistics()
        print(counted.resident_bytes >> 20, counted.beside_bytes >> 20, flush=True)


def private(process: int) -> int:
    with open(f"/proc/{process}/status") as status:
        return next((int(line.split()[1]) for line in status if line.startswith("RssAnon")), 0)


def measure(name: str) -> None:
    command = [sys.executable, __file__, "--run", name]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin and child.stdout and child.stdout.readline() == "begin\n"
    first, most, begun = private(child.pid), 0, time.monotonic()
    child.stdin.write("\n")
    child.stdin.flush()
    while child.poll() is None:
        most = max(most, private(child.pid) - first)
        time.sleep(0.002)
    cap, elapsed = WORK[name][0], time.monotonic() - begun
    arrays, beside = child.stdout.read().split()
    print(f"{name}: limit {cap} MiB, peak {most / 1024:.0f}, {most / 1024 / cap:.2f} of it,"
          f" {elapsed:.1f} s; at the end arrays have {arrays} MiB, beside them {beside}",
          flush=True)


if sys.argv[1:2] == ["--run"]:
    run(sys.argv[2])
else:
    for name in sys.argv[1:] or WORK:
        measure(name)
