"""The course of a program over time, and the memory that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from tidemark import _tidemark
from tidemark._columns import F64, U32, U64, Table
from tidemark._curves import VARIABLE, curve
from tidemark._references import Source, load

TIME_UNIT_NS = {"instructions": 0.2, "references": 50.0, "nanoseconds": 1.0}
"""The assumed length of a unit of virtual time, in ns, if none is given."""


@dataclass(frozen=True, repr=False)
class Residence(Table):
    """The pages that are resident over time, in pieces of equal length. `len` counts the pieces."""

    policy: str
    """The policy that keeps them."""
    window: int
    """Its window, in virtual time."""
    start: U64
    """The time at which each piece begins, in virtual time."""
    duration: U64
    """The length of each piece, in virtual time."""
    pages_min: U64
    """The fewest pages resident in each piece."""
    pages_mean: F64
    """Resident pages, averaged over each piece."""
    pages_max: U64
    """The most pages resident in each piece."""
    faults: U64
    """Pages that came in each piece, first uses included."""
    mean: float
    """Resident pages, averaged over all time."""
    variance: float
    """The variance of the number of resident pages over all time, in pages squared."""
    peak: int
    """The most pages resident at any time."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name, in order. They are the arrays themselves, not copies."""
        return {
            "start": self.start,
            "duration": self.duration,
            "pages_min": self.pages_min,
            "pages_mean": self.pages_mean,
            "pages_max": self.pages_max,
            "faults": self.faults,
        }


@dataclass(frozen=True, repr=False)
class Phases(Table):
    """Phases: times in which a program keeps to one set of pages. `len` is their number.

    Levels go by the size of that set, in classes from just above a power of two to the next; the
    phases of a level are apart in time. Smallest sets first, then by time.
    """

    level_min: U32
    """The smallest set of the level, in pages."""
    level_max: U32
    """The largest set of the level, in pages."""
    start: U64
    """The time at which the phase begins, in virtual time."""
    end: U64
    """The time at which it is over."""
    pages: U32
    """The size of its set, in pages."""
    core_pages: U32
    """The number of pages in use throughout."""
    entered_pages: U32
    """The number of pages it began with that the phase before did not end with."""
    pieces: U32
    """From how many localities it was joined."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name, in order. They are the arrays themselves, not copies."""
        return dict(vars(self))


class Need(NamedTuple):
    """The least memory with which a program is slowed down no more than is bearable."""

    policy: str
    """The policy that has the memory."""
    pages_mean: float
    """That memory, averaged over virtual time, in pages."""
    pages_max: int
    """The most memory at any time, in pages; the same for a constant amount."""
    window: int | None
    """The policy's window, in virtual time; `None` for a constant amount of memory."""
    page_ins: int
    """The number of times a page is brought back. First uses don't count."""
    slow_down: float
    """The time by which the program takes longer, as a share of its own."""
    is_at_most: bool
    """True if less memory may do: a trace that was sampled can't tell of less than its windows."""


@overload
def working_set(
    source: Source, window: int, *, pieces: int = 1000, policy: str = "ws"
) -> Residence: ...
@overload
def working_set(
    source: Source, window: Sequence[int], *, pieces: int = 1000, policy: str = "ws"
) -> list[Residence]: ...
def working_set(
    source: Source, window: int | Sequence[int], *, pieces: int = 1000, policy: str = "ws"
) -> Residence | list[Residence]:
    """Follows the pages used within the last `window` of virtual time, in at most `pieces` pieces.

    Windows are in virtual time, in units of the trace. Several give a list, and run side by side.
    `policy` may be `vmin` or `pff` instead. A trace that was sampled tells of windows of at least
    two of its own.

    Returns a `Residence`: a row for each piece, with times in virtual time and memory in pages. The
    working set is Denning's (1968), VMIN Prieve and Fabry's (1976), PFF Chu and Opderbeck's (1976).

    Raises `ValueError` if an argument is wrong; and as `load`.
    """
    given = np.asarray(window)
    windows = [int(one) for one in np.atleast_1d(given)]
    for one in windows:
        if one < 1:
            raise ValueError(f"`window` is {one}; needs a length of time from 1")
    if pieces < 1:
        raise ValueError(f"`pieces` is {pieces}; needs at least 1")
    followed = _tidemark.follow(load(source)._loaded, policy, windows, pieces)
    found = [
        Residence(policy, one, start, duration, least, means, most, faults, *totals)
        for one, (start, duration, least, means, most, faults, totals) in zip(
            windows, followed, strict=True
        )
    ]
    return found[0] if given.ndim == 0 else found


def phases(source: Source, *, pages_max: int = 4096, duration_min: int | None = None) -> Phases:
    """Finds phases over sets of at most `pages_max` pages that hold for at least `duration_min`.

    That is in virtual time; without it, a thousandth of the whole.

    Returns `Phases`: a row for each, with times in virtual time and sets in pages. They are those of
    Madison and Batson (1976): bounded locality intervals.

    Raises `ValueError` if an argument is wrong; and as `load`.
    """
    return Phases(*_tidemark.find_phases(load(source)._loaded, pages_max, duration_min))


def needed(
    source: Source,
    policies: str | Sequence[str] = ("lru", "opt", "ws", "vmin"),
    *,
    slow_down: float = 0.1,
    page_in_ns: float = 100_000.0,
    time_unit_ns: float | None = None,
) -> list[Need]:
    """Tells the least memory with which the program is slowed down by at most `slow_down`, under
    ideal policies, which cost nothing themselves.

    What `tidemark run` needs is more: `tidemark curve` of the command tells it, in its first table.

    That is a share of the program's own time, at most 1: 0.1 is 10 %, the command's `--slowdown 10`.
    It takes for granted that bringing
    back a page takes `page_in_ns`, that nothing else happens meanwhile, and that a unit of virtual
    time lasts `time_unit_ns`: by default 0.2 ns for an instruction and 50 ns for a reference.

    Of a trace that was sampled in windows (`tidemark record --live`) the answer is no less than
    what is touched within the longest: `is_at_most` says whether less may do.

    `policies` are `lru`, `opt`, `ws`, `vmin`, or any that `curve` simulates; one that never stays
    within the bound at the sizes it was simulated with has no answer.

    Returns a `Need` for each policy with an answer, in their order: memory in pages, the window in
    virtual time.

    Raises `ValueError` if an argument is wrong; and as `load`.
    """
    if slow_down > 1:
        raise ValueError(
            f"`slow_down` is {slow_down:g}; needs a share of the program's own time, at most 1:"
            f" {slow_down / 100:g} is {slow_down:g} %"
        )
    references = load(source)
    unit_ns = TIME_UNIT_NS[references.time_unit] if time_unit_ns is None else time_unit_ns
    terms = (slow_down, page_in_ns, unit_ns)
    answers = []
    for name in [policies] if isinstance(policies, str) else policies:
        answer: tuple[float, int, int | None, int, float, bool] | None
        if name in VARIABLE:
            answer = _tidemark.need_variable(references._loaded, name, *terms)
        else:
            points = curve(references, name)[name]
            answer = _tidemark.need_fixed(references._loaded, points.pages, points.misses, *terms)
        if answer is not None:
            answers.append(Need(name, *answer))
    return answers
