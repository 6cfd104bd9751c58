#!/usr/bin/env python3
"""Counts misses of visits by plain sets and lists, and compares with `tidemark curve --batch`.

    python3 bench/compare-visits.py FILE.csv [TIDEMARK]

FILE has columns `object` (a number) and `visit`, and perhaps `bytes`. Prints a table of miss ratios
to three decimals: a line for each room, a column for each policy. With the path of the command,
imports the file, asks for the same rooms, and ends with 1 if a number of misses differs.

Nothing here is shared with the command: visits are sets, what a policy knows stands in dictionaries,
and each victim is looked for among all objects. OPT keeps those that are wanted soonest, which is
the optimum of equal sizes; of unequal ones, its place is taken by two bounds.
"""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

NEVER = (float("inf"), 0)


def read(path):
    """The visits, each the sorted numbers of its objects, and the size of each object."""
    visits, sizes, before = [], {}, None
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            number = int(row["object"])
            if row["visit"] != before:
                visits.append(set())
                before = row["visit"]
            visits[-1].add(number)
            sizes[number] = int(row.get("bytes") or 1)
    return [sorted(visit) for visit in visits], sizes


def next_visits(visits):
    """For each visit, the next visit that wants each of its objects, and the object's place there."""
    later, nexts = {}, []
    for at in reversed(range(len(visits))):
        nexts.append({number: later.get(number, NEVER) for number in visits[at]})
        later.update((number, (at, place)) for place, number in enumerate(visits[at]))
    return nexts[::-1]


class Lru:
    """The object that was wanted longest ago leaves."""

    def __init__(self, visits):
        self.order, self.now = {}, 0

    def use(self, number, at):
        self.now += 1
        self.order[number] = self.now

    def rank(self, number):
        return self.order[number]


class Lfu(Lru):
    """The object that the fewest visits have wanted leaves, of several the one of longest ago."""

    def __init__(self, visits):
        super().__init__(visits)
        self.counts = {}

    def use(self, number, at):
        super().use(number, at)
        self.counts[number] = self.counts.get(number, 0) + 1

    def rank(self, number):
        return (self.counts[number], self.order[number])


class LeastStale:
    """Objects leave in the order of their first use in the last pass that used them; a pass goes
    through rising numbers."""

    def __init__(self, visits):
        self.passes, self.order, self.now, self.number_before, self.turn = {}, {}, 0, -1, 0

    def use(self, number, at):
        if number <= self.number_before:
            self.turn += 1
        self.number_before = number
        self.now += 1
        if self.passes.get(number) != self.turn:
            self.passes[number] = self.turn
            self.order[number] = self.now

    def rank(self, number):
        return self.order[number]

    def left(self, number):
        del self.passes[number]


class Opt:
    """The object that is wanted latest, or never again, leaves."""

    def __init__(self, visits):
        self.nexts, self.next = next_visits(visits), {}

    def use(self, number, at):
        self.next[number] = self.nexts[at][number]

    def rank(self, number):
        at, place = self.next[number]
        return (-at, -place)


def count(policy, visits, sizes, room):
    """The misses of a policy: the object with the lowest rank leaves, once a visit is over."""
    policy, there, misses = policy(visits), set(), 0
    for at, visit in enumerate(visits):
        misses += len(set(visit) - there)
        there |= set(visit)
        for number in visit:
            policy.use(number, at)
        leaving = [number for number in there if sizes[number] > room]
        while True:
            for number in leaving:
                there.remove(number)
                getattr(policy, "left", lambda number: None)(number)
            if sum(sizes[number] for number in there) <= room:
                break
            leaving = [min(there, key=policy.rank)]
    return misses


def bound(visits, sizes, room):
    """PFOO-L: the cheapest intervals are hits for as long as room times visits pays for them."""
    costs = []
    for at, nexts in enumerate(next_visits(visits)):
        for number, later in nexts.items():
            if later != NEVER and sizes[number] <= room:
                costs.append(sizes[number] * (later[0] - at))
    free, hits = room * (len(visits) - 1), 0
    for cost in sorted(costs):
        if cost > free:
            break
        free -= cost
        hits += 1
    return sum(map(len, visits)) - hits


def tabulate(visits, sizes, rooms):
    """The misses of each column in each room."""
    columns = {"lru": Lru, "lfu": Lfu, "least-stale": LeastStale, "opt": Opt}
    if len(set(sizes.values())) > 1:
        columns["farthest"] = columns.pop("opt")
    table = {
        name: [count(policy, visits, sizes, room) for room in rooms]
        for name, policy in columns.items()
    }
    if "farthest" in table:
        table["pfoo-l"] = [bound(visits, sizes, room) for room in rooms]
    return table


def ask(command, path, rooms, has_bytes):
    """The misses that the command counts, in the same form."""
    with tempfile.TemporaryDirectory() as folder:
        trace = str(Path(folder) / "visits.tide")
        columns = "page=object,visit=visit" + (",bytes=bytes" if has_bytes else "")
        importing = [command, "import", path, "-o", trace, "--from", "csv", "--columns", columns]
        subprocess.run(importing, check=True, stderr=subprocess.DEVNULL)
        unit = "B" if has_bytes else ""
        at = ",".join(f"{room}{unit}" for room in rooms)
        curves = subprocess.run(
            [command, "curve", trace, "--batch", "--csv", "--at", at],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
    table = {}
    for row in csv.DictReader(curves.stdout.splitlines()):
        table.setdefault(row["policy"], []).append(int(row["misses"]))
    return table


def main():
    """Prints the table, and compares."""
    path = sys.argv[1]
    visits, sizes = read(path)
    with open(path) as file:
        has_bytes = "bytes" in file.readline()
    whole = sum(sizes.values())
    rooms = [whole * share // 100 for share in (10, 20, 30, 40, 50, 60, 80, 100)]
    table = tabulate(visits, sizes, rooms)
    wants = sum(map(len, visits))
    print(f"{wants} wants of {len(sizes)} objects in {len(visits)} visits")
    print(" ".join(["bytes" if has_bytes else "objects", *table]))
    for at, room in enumerate(rooms):
        print(" ".join([str(room), *(f"{misses[at] / wants:.3f}" for misses in table.values())]))
    if len(sys.argv) > 2:
        found = ask(sys.argv[2], path, rooms, has_bytes)
        if found != table:
            print(f"tidemark differs: {found}, and not {table}")
            sys.exit(1)
        print("tidemark counts the same misses")


main()
