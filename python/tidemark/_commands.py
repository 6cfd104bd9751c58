"""Recordings and comparisons of real programs, and caches of visits, by the installed command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark._columns import Table
from tidemark._traces import Info, info

Path = str | os.PathLike[str]
Words = Sequence[str | os.PathLike[str]]


class Recording(NamedTuple):
    """A program that was recorded."""

    path: str
    """The path of its trace."""
    status: int
    """The program's exit status; of one that a signal ended, the signal's number, negative."""
    info: Info
    """The description of the trace in itself."""


@dataclass(frozen=True, repr=False)
class Comparison(Table):
    """A prediction beside what came of it: a row for each policy and amount of memory."""

    record: dict[str, Any]
    """All there is: the record that `tidemark compare --json` prints."""

    def __len__(self) -> int:
        return len(self.record["cases"])

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """`policy`, `memory_bytes`, `optimal_page_ins`, and of each count of
        docs/formats/compare-v1.md what was `predicted_…` and, the median of all runs, `live_…`.
        """
        cases = self.record["cases"]
        columns: dict[str, NDArray[Any]] = {
            "policy": np.array([case["policy"] for case in cases], dtype=object),
            "memory_bytes": np.array([case["memory_bytes"] for case in cases], dtype=np.uint64),
            "optimal_page_ins": np.array(
                [case["optimal_page_ins"] for case in cases], dtype=np.uint64
            ),
        }
        for name in cases[0]["predicted"] if cases else ():
            predicted = [case["predicted"][name] for case in cases]
            live = [_median([run[name] for run in case["live"]]) for case in cases]
            columns[f"predicted_{name}"] = np.array(predicted)
            columns[f"live_{name}"] = np.array(live)
        return columns

    @property
    def is_alike(self) -> bool:
        """True if all decisions were the same, where they were compared."""
        decisions = [case.get("decisions") for case in self.record["cases"]]
        return all(found is None or found["first_difference"] is None for found in decisions)


@dataclass(frozen=True, repr=False)
class Batch(Table):
    """Misses of a cache whose visitors want several objects at once: a row for each policy and
    room."""

    record: dict[str, Any]
    """All there is: the record that `tidemark curve --batch --json` prints."""

    def __len__(self) -> int:
        return sum(len(curve["points"]) for curve in self.record["curves"])

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """`policy`, `room` (in `record["unit"]`), `misses` and `miss_ratio`."""
        curves = self.record["curves"]
        rows = [(curve["policy"], point) for curve in curves for point in curve["points"]]
        return {
            "policy": np.array([policy for policy, _ in rows], dtype=object),
            "room": np.array([point["room"] for _, point in rows], dtype=np.uint64),
            "misses": np.array([point["misses"] for _, point in rows], dtype=np.uint64),
            "miss_ratio": np.array([point["miss_ratio"] for _, point in rows], dtype=np.float64),
        }


def record(
    command: Words,
    output: Path,
    *,
    exact: bool = False,
    quantum: int | None = None,
    live: bool = False,
    sample: str | None = None,
    window: str | None = None,
    time: bool = False,
    granularity: str | None = None,
) -> Recording:
    """Records which memory `command` and all it starts refer to, by the installed
    `tidemark record`; the trace goes to `output`. One that is there already is kept beside it, as
    `output.old`.

    Under Valgrind, a record for each page in `quantum` instructions, or for every change of page if
    `exact`; or without it, if `live`, by sampling in windows of `window` (`"100ms"`): all pages, or
    with `sample="regions"` a few of each region, an estimate. With `time` the program is run by
    itself first, to know its speed. `granularity` is the size of pages. The program has this
    process's standard streams.

    Returns a `Recording`: where the trace is, how the program ended, and what the trace says.

    Raises `FileNotFoundError` if there is no command `tidemark`, and `RuntimeError` with its line
    if the program can't be recorded.
    """
    path = os.fspath(output)
    words = ["record", "-o", path]
    words += ["--exact"] if exact else []
    words += ["--quantum", str(quantum)] if quantum is not None else []
    words += ["--live"] if live else []
    words += ["--sample", sample] if sample is not None else []
    words += ["--window", window] if window is not None else []
    words += ["--time"] if time else []
    words += ["--granularity", granularity] if granularity is not None else []
    before = _identity(path)
    status, told = _run(words, command, stdout=None)
    # The program's own status may be any; a recording is a file that was not there before.
    if _identity(path) == before:
        raise RuntimeError(told or f"`tidemark record` ended with {status}, and has left no trace")
    return Recording(path, status, info(path))


def compare(
    command: Words,
    memory: float | int | str | Sequence[float | int | str],
    policies: str | Sequence[str] | None = None,
    *,
    store: str | None = None,
    runs: int = 1,
    in_step: bool = False,
    exact: bool = False,
    trace: Path | None = None,
    disk: str | None = None,
    swap: Path | None = None,
    swap_size: str | None = None,
) -> Comparison:
    """Records `command`, replays it, runs it live in the same `memory`, and sets the counts side by
    side, by the installed `tidemark compare`.

    `memory` is in pages (`int`), a share of the managed memory that the program uses (`float`), or
    as for the command (`"16M"`); one or several. `store` is `"compressed+file"` or `"file"`; without
    it, and without `policies`, they are those of `tidemark run`. Each live run is made `runs` times.
    If `in_step`,
    decisions are compared one by one. `trace` keeps the recording, and is taken in place of a new
    one if it is there. `disk`, `swap` and `swap_size` are as for the command.

    Returns a `Comparison`: a row for each policy and amount of memory.

    Raises `FileNotFoundError` if there is no command `tidemark`, and `RuntimeError` with its line
    if the comparison can't be made.
    """
    sizes = [memory] if isinstance(memory, (int, float, str, np.generic)) else list(memory)
    names = [policies] if isinstance(policies, str) else list(policies or [])
    words = ["compare", "--json", "--memory", ",".join(_size("memory", size) for size in sizes)]
    words += ["--policy", ",".join(names)] if names else []
    words += ["--store", store] if store is not None else []
    words += ["--runs", str(runs)]
    words += ["--in-step"] if in_step else []
    words += ["--exact"] if exact else []
    options = {"--trace": trace, "--disk": disk, "--swap": swap, "--swap-size": swap_size}
    for option, value in options.items():
        words += [option, os.fspath(value)] if value is not None else []
    status, told, text = _run_for_record(words, command)
    # Where decisions differ, which is in the record, the command ends with 1.
    if status not in (0, 1) or not text:
        raise RuntimeError(told or f"`tidemark compare` ended with {status}")
    return Comparison(json.loads(text))


def batch(
    trace: Path,
    policies: str | Sequence[str] | None = None,
    sizes: float | int | str | Sequence[float | int | str] | None = None,
) -> Batch:
    """Counts the misses of a cache for a trace with visits, each of which wants several objects at
    once, by the installed `tidemark curve --batch`.

    `trace` is the path of one that was imported with a column of visits. `policies` are names, or
    those that are usual. `sizes` are rooms between visits: shares of all objects (`float`), numbers
    of objects (`int`), or, where the trace has the sizes of objects, bytes as for the command
    (`"16M"`); without them they are spread.

    Returns a `Batch`: a row for each policy and room.

    Raises `FileNotFoundError` if there is no command `tidemark`, and `RuntimeError` with its line
    if the trace has no visits, or can't be counted so.
    """
    names = [policies] if isinstance(policies, str) else list(policies or [])
    rooms = [sizes] if isinstance(sizes, (int, float, str, np.generic)) else list(sizes or [])
    words = ["curve", "--batch", "--json"]
    words += ["--policies", ",".join(names)] if names else []
    words += ["--at", ",".join(_size("sizes", room) for room in rooms)] if rooms else []
    status, told, text = _run_for_record(words, [trace])
    if status != 0:
        raise RuntimeError(told or f"`tidemark curve --batch` ended with {status}")
    return Batch(json.loads(text))


def _run_for_record(words: list[str], command: Words) -> tuple[int, str, bytes]:
    """The same as `_run`, with what the command printed."""
    # A file, since nobody reads while the command goes on.
    with tempfile.TemporaryFile() as printed:
        status, told = _run(words, command, stdout=printed)
        printed.seek(0)
        return status, told, printed.read()


def _size(name: str, size: float | int | str) -> str:
    """An amount of memory as the command takes it."""
    if isinstance(size, str):
        return size
    if isinstance(size, bool) or not size > 0:
        raise ValueError(f"`{name}` has {size!r}; needs an amount (an `int`), or a share (a `float`)")
    return f"{100 * float(size):g}%" if isinstance(size, (float, np.floating)) else str(int(size))


def _median(values: list[Any]) -> Any:
    """The one in the middle, or the lower of two."""
    return sorted(values)[(len(values) - 1) // 2]


def _identity(path: str) -> tuple[int, int, int] | None:
    """The identity that tells a file from another that has its name later."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _run(words: list[str], command: Words, stdout: IO[bytes] | None) -> tuple[int, str]:
    """Runs the installed command with `words` on a program, and passes on what it says on standard
    error. Standard output goes to `stdout`, if that is a file.

    Returns its status, and the last line that it said itself.
    """
    if isinstance(command, (str, bytes)) or not command:
        raise ValueError("`command` needs a program and its arguments, as a list of words")
    name = os.environ.get("TIDEMARK") or "tidemark"
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(
            f"no command `{name}` on $PATH; build it with `make build`, or name it in $TIDEMARK"
        )
    sys.stdout.flush()
    process = subprocess.Popen(
        [found, *words, "--", *(os.fspath(word) for word in command)],
        stdout=stdout,
        stderr=subprocess.PIPE,
    )
    told = ""
    with process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                text = line.decode(errors="replace")
                sys.stderr.write(text)
                if text.startswith("tidemark: "):
                    told = text.removeprefix("tidemark: ").strip()
        except BaseException:
            process.terminate()
            raise
    return process.returncode, told
