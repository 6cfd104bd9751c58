"""Sweeps: many traces by many policies in many sizes of memory, as one table, on any executor."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark import _tidemark
from tidemark._columns import Table

Path = str | os.PathLike[str]
Memory = float | int | str
Key = tuple[str, str, str]

SCHEMA = "tidemark.sweep.v1"
"""The layout of the table: docs/formats/sweep-v1.md."""
TEXTS = ("trace", "policy", "memory")
COUNTS = ("trace_bytes", "page_bytes", "references", "trace_pages", "pages", "misses")


@dataclass(frozen=True, repr=False)
class Sweep(Table):
    """Misses of each trace by each policy in each size of memory: a row each. `len` counts them."""

    record: dict[str, Any]
    """All there is: the record that `tidemark sweep --json` prints."""

    def __len__(self) -> int:
        return len(self.record["rows"])

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns of docs/formats/sweep-v1.md. These are new arrays.

        A row that failed has counts of 0, no ratio (`nan`), and its `error`, which is empty
        otherwise. A constant amount of memory has window 0 and its size as mean.
        """
        rows = self.record["rows"]
        columns: dict[str, NDArray[Any]] = {}
        for name in TEXTS:
            columns[name] = np.array([row[name] for row in rows], dtype=object)
        for name in (*COUNTS, "window"):
            columns[name] = np.array([row.get(name, 0) for row in rows], dtype=np.uint64)
        means = [row.get("mean_pages", row.get("pages", 0)) for row in rows]
        ratios = [row.get("miss_ratio", np.nan) for row in rows]
        columns["mean_pages"] = np.array(means, dtype=np.float64)
        columns["miss_ratio"] = np.array(ratios, dtype=np.float64)
        columns["error"] = np.array([row.get("error", "") for row in rows], dtype=object)
        return columns

    @property
    def failures(self) -> int:
        """The number of rows that failed."""
        return sum("error" in row for row in self.record["rows"])


def sweep(
    traces: Path | Sequence[Path],
    policies: str | Sequence[str] = ("lru", "opt"),
    memory: Memory | Sequence[Memory] = (0.25, 0.5, 0.75),
    *,
    executor: Executor | None = None,
    output: Path | None = None,
    progress: bool | None = None,
) -> Sweep:
    """Counts the misses of each of `traces` by each of `policies` in each size of `memory`, exactly.

    `policies` are those of `curve`. `memory` is in pages (`int`), a share of all the pages that a
    trace uses (`float`: 0.5 is 50 %), or text as the command takes it (`"16M"`, `"50%"`).

    The work is given to `executor`, one trace and one policy at a time: any of `concurrent.futures`,
    and what has its protocol, as `dask.distributed.Client(...).get_executor()`. Without one it is
    processes of this machine. Those who count read the traces by their paths.

    With `output` the table is kept in that file, as JSON if its name ends with `.json`, else as CSV,
    anew with each part that is done. Rows that it has already are not counted again, unless they
    failed or the trace's file has changed its size. `tidemark sweep -o` goes on with the same file.
    `progress` says on standard error how many rows there are; without it, if that is a terminal.

    Returns a `Sweep`: what goes wrong with a trace, or with who counts it, is a row with an `error`.

    Raises `ValueError` if there is no such policy, a size can't be, or `output` is another file;
    `OSError` if that can't be written.
    """
    names = [traces] if isinstance(traces, (str, os.PathLike)) else list(traces)
    paths = list(dict.fromkeys(os.fspath(name) for name in names))
    wanted = list(dict.fromkeys([policies] if isinstance(policies, str) else policies))
    sizes = [memory] if isinstance(memory, (int, float, str, np.generic)) else list(memory)
    texts = list(dict.fromkeys(_text(size) for size in sizes))
    for name, given in (("traces", paths), ("policies", wanted), ("memory", texts)):
        if not given:
            raise ValueError(f"`{name}` is empty; needs at least one")
    _tidemark.check_sweep(wanted, texts)
    file = None if output is None else os.fspath(output)
    if file is not None and os.path.exists(file):
        for path in paths:
            if os.path.exists(path) and os.path.samefile(file, path):
                raise ValueError(f"`output` is `{file}`, which is read; name another file")
    asked = [(path, policy, text) for path in paths for policy in wanted for text in texts]
    found = _there(file)
    sizes_now = {path: _tidemark.trace_bytes(path) for path in paths}
    for key in asked:
        row = found.get(key)
        if row is not None and ("error" in row or row["trace_bytes"] != sizes_now[key[0]]):
            del found[key]
    parts: dict[tuple[str, str], list[str]] = {}
    for path, policy, text in asked:
        if (path, policy, text) not in found:
            parts.setdefault((path, policy), []).append(text)
    teller = _Teller(len(asked), sum(key in found for key in asked), progress)
    if executor is not None:
        _count(executor, parts, found, asked, file, teller)
    elif parts:
        with ProcessPoolExecutor() as processes:
            _count(processes, parts, found, asked, file, teller)
    return Sweep(_record(asked, found))


def _count(
    executor: Executor,
    parts: dict[tuple[str, str], list[str]],
    found: dict[Key, dict[str, Any]],
    asked: list[Key],
    file: str | None,
    teller: _Teller,
) -> None:
    """Gives out the parts, and takes in the rows of each as it is done."""
    given: dict[Future[str], tuple[str, str]] = {}
    try:
        for (path, policy), texts in parts.items():
            given[executor.submit(_tidemark.sweep_rows, path, policy, texts)] = (path, policy)
        for done in as_completed(given):
            path, policy = given[done]
            for row in _rows(done, path, policy, parts[path, policy]):
                found[path, policy, row["memory"]] = row
            if file is not None:
                _write(file, _record(asked, found))
            teller.advance(len(parts[path, policy]))
    finally:
        for one in given:
            one.cancel()
        teller.end()


def _rows(done: Future[str], path: str, policy: str, texts: list[str]) -> list[dict[str, Any]]:
    """The rows of a part; those of one that was not counted say why."""
    error = done.exception()
    if error is None:
        rows: list[dict[str, Any]] = json.loads(done.result())["rows"]
        return rows
    told = " ".join(f"{type(error).__name__}: {error}".split())
    blank = {"trace": path, "policy": policy, "trace_bytes": _tidemark.trace_bytes(path)}
    return [blank | {"memory": text, "error": told} for text in texts]


def _there(file: str | None) -> dict[Key, dict[str, Any]]:
    """The rows of the table in `file`, if there is one."""
    if file is None or not os.path.isfile(file) or os.path.getsize(file) == 0:
        return {}
    try:
        with open(file, encoding="utf-8", newline="") as table:
            text = table.read()
    except UnicodeDecodeError:
        raise ValueError(f"`{file}`: is no table of a sweep; name another file") from None
    rows = json.loads(_tidemark.read_sweep(file, text))["rows"]
    return {(row["trace"], row["policy"], row["memory"]): row for row in rows}


def _record(asked: list[Key], found: dict[Key, dict[str, Any]]) -> dict[str, Any]:
    """The record of what is there: the rows asked for, and then what else the table had."""
    keys = dict.fromkeys([key for key in asked if key in found] + list(found))
    rows = [found[key] for key in keys]
    return {"schema": SCHEMA, "tidemark": _tidemark.__version__, "rows": rows}


def _write(file: str, record: dict[str, Any]) -> None:
    """Puts the table in the place of the one before, when it is whole."""
    text = _tidemark.write_sweep(json.dumps(record), file.endswith(".json"))
    draft = f"{file}.{os.getpid()}.part"
    try:
        with open(draft, "w", encoding="utf-8", newline="") as table:
            table.write(text)
        os.replace(draft, file)
    except BaseException:
        if os.path.exists(draft):
            os.unlink(draft)
        raise


def _text(size: Memory) -> str:
    """A size of memory as the command takes it."""
    if isinstance(size, str):
        return size.strip()
    if isinstance(size, (bool, np.bool_)) or not isinstance(
        size, (int, float, np.integer, np.floating)
    ):
        raise ValueError(f"`memory` has {size!r}; needs pages, a share (0.5 is 50 %), or text")
    if isinstance(size, (int, np.integer)):
        return str(int(size))
    if not 0 < size <= 1:
        raise ValueError(f"`memory` is {size:g}; needs pages (an `int`), or a share up to 1")
    return f"{float(f'{size * 100:.10g}'):g}%"


class _Teller:
    """Tells on standard error how many rows there are: on a terminal in one line that changes."""

    def __init__(self, whole: int, there: int, is_wanted: bool | None) -> None:
        self.whole, self.rows = whole, there
        self.is_terminal = sys.stderr.isatty()
        self.is_wanted = self.is_terminal if is_wanted is None else is_wanted

    def advance(self, rows: int) -> None:
        self.rows += rows
        if self.is_wanted:
            end = "\r" if self.is_terminal else "\n"
            print(f"sweep: {self.rows} of {self.whole} rows", end=end, file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.is_wanted and self.is_terminal:
            print(file=sys.stderr, flush=True)
