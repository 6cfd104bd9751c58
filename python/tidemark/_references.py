"""References with densely numbered pages: what the analyses take."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidemark import _tidemark
from tidemark._columns import U32, U64, Table, counts
from tidemark._traces import Trace, check_times


@dataclass(frozen=True, repr=False)
class References(Table):
    """References in the form the analyses take. `len` is their number.

    Pages are numbered from 0 in the order of first appearance, over all processes. After an exec
    the same addresses are other pages.
    """

    page: U32
    """The number of each reference's page."""
    time: U64 | None
    """Virtual time after each reference; `None` if that is the number of references so far."""
    page_count: int
    """The number of different pages."""
    page_bytes: int
    """The size of a page, in bytes."""
    granularity: str
    """The repeats that the recorder kept: `exact` (each change of page), `quantum`, `window`, or
    `regions`: windows too, as an estimate."""
    granularity_length: int | None
    """The length of a quantum in units of time, or of a window in ns."""
    time_unit: str
    """The unit of times: `instructions`, `references` or `nanoseconds`."""
    duration: int
    """Virtual time from the first reference to the end."""
    _loaded: _tidemark.References = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.page)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name: `page`, and `time` if there is one."""
        if self.time is None:
            return {"page": self.page}
        return {"page": self.page, "time": self.time}

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__, names=self.names, lives=self._loaded.lives())
        del state["_loaded"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        loaded = _tidemark.restore(
            state["page"],
            state["time"],
            state["names"],
            state.pop("lives"),
            state["page_bytes"],
            (state["granularity"], state["granularity_length"]),
            state["time_unit"],
        )
        # The columns are the restored ones: nothing is kept twice.
        self.__dict__.update(state, page=loaded.page, time=loaded.time, _loaded=loaded)

    @cached_property
    def names(self) -> tuple[U32, U64]:
        """Process and virtual page number of each page: `names[1][page]` undoes the numbering."""
        return self._loaded.names()


Source: TypeAlias = (
    "str | os.PathLike[str] | Trace | References | NDArray[np.integer[Any]] | Sequence[int]"
)
"""The input of an analysis: the path of a trace, what `read` or `load` gave, or page numbers."""


def load(
    source: Source,
    *,
    processes: Sequence[int] | None = None,
    time: ArrayLike | None = None,
    page_bytes: int = 4096,
    time_unit: str | None = None,
) -> References:
    """Prepares `source` for analysis: numbers its pages. 4 bytes a reference, 12 with times.

    `source` is the path of a trace, what `read` gave, or page numbers, one a reference. Of a trace,
    `processes` chooses some by their numbers in the trace. Of page numbers, `time` has the virtual
    time of each reference, never falling, in `time_unit` (`instructions` unless another is named).

    Returns `References`: a `page` for each reference (`uint32`), and its `time` (`uint64`), in the
    trace's unit.

    Raises `OSError` if a file can't be read, and `ValueError` if it is no trace or an argument is
    wrong.
    """
    if isinstance(source, References):
        if processes is not None or time is not None:
            raise ValueError("`source` is loaded already; choose when it is loaded first")
        return source
    if isinstance(source, (str, os.PathLike, Trace)):
        if time is not None:
            raise ValueError("`time` is for page numbers; a trace has times of its own")
        path, unpacked = (
            (source.path, source._unpacked) if isinstance(source, Trace) else (source, None)
        )
        chosen = None if processes is None else [int(process) for process in processes]
        return _references(_tidemark.load(os.fspath(path), unpacked, chosen))
    if processes is not None:
        raise ValueError("`processes` is for traces; page numbers are of one process")
    pages: U32 | U64
    if isinstance(source, np.ndarray) and source.dtype == np.uint32 and source.ndim == 1:
        pages = np.ascontiguousarray(source, dtype=np.uint32)
    else:
        pages = counts("source", source)
    times = None if time is None else check_times(time, len(pages))
    unit = time_unit or ("references" if times is None else "instructions")
    return _references(_tidemark.number(pages, times, page_bytes, unit))


def _references(loaded: _tidemark.References) -> References:
    return References(
        page=loaded.page,
        time=loaded.time,
        page_count=loaded.page_count,
        page_bytes=loaded.page_bytes,
        granularity=loaded.granularity,
        granularity_length=loaded.granularity_length,
        time_unit=loaded.time_unit,
        duration=loaded.duration,
        _loaded=loaded,
    )
