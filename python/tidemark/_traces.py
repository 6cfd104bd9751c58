"""Trace files: reading them as columns, and writing columns to them."""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidemark import _tidemark
from tidemark._columns import U8, U32, U64, Table, counts


class Kinds(enum.IntFlag):
    """The kinds of access that a record stands for; several may hold. None: it is not known."""

    FETCH = 1
    """An instruction was fetched."""
    LOAD = 2
    """Data was loaded."""
    STORE = 4
    """Data was stored."""
    KERNEL = 8
    """The kernel made the access, for a system call."""


@dataclass(frozen=True)
class Info:
    """The summary of a trace."""

    page_bytes: int
    """The size of a page, in bytes."""
    granularity: str
    """The repeats that the recorder kept: `exact` (each change of page), `quantum`, `window`, or
    `regions`: windows too, as an estimate."""
    granularity_length: int | None
    """The length of a quantum in units of time, or of a window in ns."""
    time_unit: str
    """The unit of times: `instructions`, `references` or `nanoseconds`."""
    source: str
    """The program that made the trace."""
    command: tuple[str, ...]
    """The program and its arguments; empty where there was none."""
    records: int
    """The number of records."""
    events: int
    """The number of events."""
    processes: int
    """The number of processes."""
    blocks: int
    """The number of blocks of the file; each is checked and unpacked by itself."""
    bytes: int
    """The length of the file, in bytes."""
    cut_at: int | None
    """The offset of the cut in the file, in bytes; `None` for a whole one. All before that is there."""


@dataclass(frozen=True, repr=False)
class Events(Table):
    """The events between the records of a trace, in the order of the file."""

    record: U64
    """The number of records of the trace that came before."""
    process: U32
    """The process it happened in."""
    time: U64
    """The process's virtual time when it happened."""
    kind: tuple[str, ...]
    """The kind of event: `map`, `unmap`, `fork`, `exec`, `mark` …"""
    fields: tuple[dict[str, Any], ...]
    """The other fields: ranges in pages, files, names, numbers."""

    def __len__(self) -> int:
        return len(self.record)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name. `kind` holds text and `fields` dictionaries."""
        fields = np.empty(len(self), dtype=object)
        fields[:] = self.fields
        return {
            "record": self.record,
            "process": self.process,
            "time": self.time,
            "kind": np.array(self.kind, dtype=object),
            "fields": fields,
        }


@dataclass(frozen=True, repr=False)
class Trace(Table):
    """The records of a trace, in the order of the file. `len` is their number."""

    path: str
    """The file they were read from."""
    info: Info
    """The file's summary."""
    page: U64
    """Virtual page numbers: the address divided by the page size."""
    time: U64
    """The process's virtual time at each record."""
    kinds: U8
    """Kinds of access, as bits of `Kinds`."""
    process: U32
    """The process, by its number in the trace. Takes no memory if there is only one."""
    _unpacked: _tidemark.Columns | None = field(repr=False, compare=False)
    """The input of analyses; `None` after pickling, when they read the file at `path` again."""

    def __len__(self) -> int:
        return len(self.page)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name, in order. They are the arrays themselves, not copies."""
        return {
            "process": self.process,
            "time": self.time,
            "page": self.page,
            "kinds": self.kinds,
        }

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__, events=self.events, _unpacked=None)

    @cached_property
    def events(self) -> Events:
        """The events between the records."""
        assert self._unpacked is not None, "pickling keeps the events"
        record, process, time, kind, fields = self._unpacked.events()
        return Events(record, process, time, tuple(kind), tuple(fields))


def info(path: str | os.PathLike[str]) -> Info:
    """Tells what the trace at `path` says of itself. Reads its header and its index alone.

    A file that was cut off is a trace up to there: see `Info.cut_at`.

    Returns an `Info`: sizes in bytes, times in the trace's unit.

    Raises `OSError` if the file can't be read, and `ValueError` if it is no trace.
    """
    return _info(_tidemark.summarize(os.fspath(path)))


def read(path: str | os.PathLike[str]) -> Trace:
    """Reads the records of the trace at `path` as columns: 17 bytes a record, 21 with processes.

    Blocks are unpacked on every processor, straight into the columns. To ask about memory only,
    hand the path to `curve` and the like: that takes less memory.

    Returns a `Trace`: a row for each record, of `page` (`uint64`, address divided by the page size),
    `time` (`uint64`, in the trace's unit), `kinds` (`uint8`) and `process` (`uint32`). Pickled, it
    keeps its columns and events, and analyses read the file again.

    Raises `OSError` if the file can't be read, and `ValueError` if it is no trace or is corrupt.
    """
    name = os.fspath(path)
    unpacked = _tidemark.read(name)
    return Trace(
        path=name,
        info=_info(unpacked.summary),
        page=unpacked.page,
        time=unpacked.time,
        kinds=unpacked.kinds,
        process=_processes(unpacked),
        _unpacked=unpacked,
    )


def write(
    path: str | os.PathLike[str],
    page: ArrayLike,
    *,
    time: ArrayLike | None = None,
    kinds: ArrayLike | None = None,
    page_bytes: int = 4096,
    time_unit: str | None = None,
    source: str = f"tidemark for Python {_tidemark.__version__}",
    command: Sequence[str] = (),
) -> int:
    """Writes a trace of one process to the file `path`, and returns the number of its records.

    `page` has virtual page numbers of `page_bytes` bytes. `time` has the virtual time of each
    record, never falling, in `time_unit`: `instructions` unless another is named; without it, each
    record takes one unit and the unit is `references`. `kinds` has bits of `Kinds`.

    Raises `OSError` if the file can't be written, and `ValueError` if a column can't be.
    """
    pages = counts("page", page)
    times = None if time is None else check_times(time, len(pages))
    bits = None
    if kinds is not None:
        wide = counts("kinds", kinds)
        if len(wide) != len(pages):
            raise ValueError(f"`kinds` has {len(wide)} entries; needs {len(pages)}, as `page` has")
        if np.any(wide > sum(Kinds)):
            raise ValueError(f"`kinds` is {wide.max()}; needs a sum of 1, 2, 4 and 8")
        bits = wide.astype(np.uint8)
    if not len(pages):
        raise ValueError("`page` is empty; needs at least 1 reference")
    unit = time_unit or ("references" if times is None else "instructions")
    return _tidemark.write(
        os.fspath(path), pages, bits, times, page_bytes, unit, source, list(command)
    )


def check_times(time: ArrayLike, length: int) -> U64:
    """`time` as a column for `length` references."""
    times = counts("time", time)
    if len(times) != length:
        raise ValueError(f"`time` has {len(times)} entries; needs {length}, as `page` has")
    if np.any(times[1:] < times[:-1]):
        place = int(np.argmax(times[1:] < times[:-1])) + 1
        raise ValueError(f"`time` falls at entry {place}; needs times that never fall")
    return times


def _info(summary: _tidemark.Summary) -> Info:
    return Info(
        page_bytes=summary.page_bytes,
        granularity=summary.granularity,
        granularity_length=summary.granularity_length,
        time_unit=summary.time_unit,
        source=summary.source,
        command=tuple(summary.command),
        records=summary.records,
        events=summary.events,
        processes=summary.processes,
        blocks=summary.blocks,
        bytes=summary.bytes,
        cut_at=summary.cut_at,
    )


def _processes(unpacked: _tidemark.Columns) -> U32:
    """The process of each record. One process's column is a single number seen many times."""
    processes, lengths = unpacked.block_process, unpacked.block_records
    if np.all(processes == 0):
        return np.broadcast_to(np.uint32(0), len(unpacked.page))
    repeated = np.repeat(processes, lengths.astype(np.intp))
    repeated.flags.writeable = False
    return repeated
