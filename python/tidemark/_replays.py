"""Replays: recorded programs on whole memory systems."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark import _tidemark
from tidemark._columns import Table

Path = str | os.PathLike[str]


class System(NamedTuple):
    """A memory system that traces can be replayed on."""

    name: str
    """Its name."""
    summary: str
    """One line of meaning."""
    policy: str
    """The policy it runs with, unless another is asked for."""


@dataclass(frozen=True, repr=False)
class Replays(Table):
    """The results of programs: a row for each system and size of memory. `len` counts the rows."""

    record: dict[str, Any]
    """All there is: the record that `tidemark replay --json` prints."""

    def __len__(self) -> int:
        return len(self.record["runs"])

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The results of each run, by the names of docs/formats/replay-v1.md. These are new arrays.

        Parts that are no single number (programs, disks, time lines) are in `record` alone.
        """
        runs = [run | run["processor"] for run in self.record["runs"]]
        names = runs[0] if runs else {}
        plain = [name for name, value in names.items() if not isinstance(value, (dict, list))]
        return {name: _column([run[name] for run in runs]) for name in plain}


def _column(values: list[Any]) -> NDArray[Any]:
    if any(isinstance(value, str) for value in values):
        return np.array(values, dtype=object)
    if all(isinstance(value, int) for value in values):
        return np.array(values, dtype=np.uint64)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def replay(
    sources: Path | Sequence[Path],
    memory: float | int | Sequence[float | int],
    system: str | Sequence[str] = "tidemark",
    *,
    policy: str | None = None,
    compressed: float | None = None,
    managed: bool = False,
    division: str | None = None,
    per_task_min: int | None = None,
    disk: str = "ssd",
    file_disk: str | None = None,
    copies: int = 1,
    processors: int = 1,
    wired: int = 0,
    seed: int = 1,
    time_lines: bool = False,
) -> Replays:
    """Runs the programs recorded in the traces at `sources`, all at the same time, on each `system`
    in each amount of `memory`: in pages (`int`), or as a share of what they use (`float`).

    `tidemark.systems()` lists the systems; `policy` takes the place of theirs. With `compressed`
    pages that leave are compressed in memory first, so many to one page, as `tidemark run` does: on
    the system `tidemark`. If `managed`, only the private anonymous memory counts that a live run
    manages: all of a trace that does not say what is mapped, which systems that treat files' pages apart take in no other way. The memory of
    several managed programs is divided by the rule `division` (`demand`, `fault-frequency`,
    `pressure`, `proportional`, `equal` or `global`), which leaves each `per_task_min` bytes if it
    uses so many, as `tidemark run` does. Swap is on
    `disk`, files are on `file_disk` or the same: `hdd`, `ssd`, `nvme`, `instant` and others.
    `copies` of each program run on so many `processors`; `wired` pages of memory are not theirs.
    With `time_lines` each run in `record` has its `time_line`.

    Returns `Replays`: a row for each system and size, with times in seconds, memory in bytes and
    faults in pages, as docs/formats/replay-v1.md has them.

    Raises `OSError` if a file can't be read, and `ValueError` if it is no trace, or an argument or
    a run can't be.
    """
    paths = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    sizes = [memory] if isinstance(memory, (int, float, str, np.generic)) else list(memory)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, (int, float, np.integer, np.floating)):
            raise ValueError(
                f"`memory` has {size!r}; needs pages (an `int`), or a share of what the programs use"
                " (a `float`): 0.5 is 50 %"
            )
    wrong = [size for size in sizes if not 0 < size < 2**31]
    if wrong or not sizes:
        raise ValueError(f"`memory` is {wrong[0] if wrong else 'empty'}; needs pages, or a share")
    machine = {
        "systems": [system] if isinstance(system, str) else list(system),
        "policy": policy,
        "compressed": compressed,
        "is_managed": managed,
        "division": division,
        "per_task_min": per_task_min,
        "disk": disk,
        "file_disk": file_disk,
        "copies": copies,
        "processors": processors,
        "wired_pages": wired,
        "seed": seed,
        "has_time_lines": time_lines,
    }
    fractions = (float, np.floating)
    pages = [int(size) for size in sizes if not isinstance(size, fractions)]
    shares = [float(size) for size in sizes if isinstance(size, fractions)]
    text = _tidemark.replay([os.fspath(path) for path in paths], pages, shares, machine)
    return Replays(json.loads(text))


def systems() -> tuple[System, ...]:
    """Lists the memory systems that `replay` can run programs on, in the order of their history.

    Returns a `System` each: name, one line of meaning, and the policy it runs with.
    """
    return tuple(System(*system) for system in _tidemark.describe_systems())
