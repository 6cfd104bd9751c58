"""Curves: misses by memory, for one policy or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidemark import _tidemark
from tidemark._columns import F64, U64, Table, counts
from tidemark._references import Source, load

VARIABLE = frozenset({"ws", "vmin", "pff"})
"""The policies whose memory follows the program."""


class Knee(NamedTuple):
    """The bend of a lifetime curve: where the ray from the origin to it is steepest."""

    pages: float
    """Memory there, in pages; the mean for a policy whose memory follows the program."""
    lifetime: float
    """Virtual time between misses there."""
    window: int | None
    """The policy's window there, in virtual time; `None` for a constant amount of memory."""


@dataclass(frozen=True, repr=False)
class Curve(Table):
    """One policy's misses for each amount of memory, by rising memory. `len` counts the points."""

    policy: str
    """The policy's name."""
    pages: U64
    """Memory, in pages. If memory follows the program, the mean rounded up."""
    misses: U64
    """References to pages that were not resident, the first to each page included."""
    window: U64 | None
    """The policy's window at each point, in virtual time; `None` for constant memory."""
    mean_pages: F64 | None
    """Resident pages averaged over virtual time; `None` for a constant amount of memory."""
    misses_error: F64 | None
    """The standard error of `misses` if they were estimated from a sample; `None` if exact."""
    references: int
    """The number of references counted."""
    page_count: int
    """The number of different pages they went to."""
    duration: int
    """Virtual time from the first reference to the end."""

    def __len__(self) -> int:
        return len(self.misses)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """`pages` and `misses`; `window` and `mean_pages` if memory follows the program;
        `misses_error` if they were estimated.
        """
        columns: dict[str, NDArray[Any]] = {"pages": self.pages, "misses": self.misses}
        if self.window is not None and self.mean_pages is not None:
            columns["window"] = self.window
            columns["mean_pages"] = self.mean_pages
        if self.misses_error is not None:
            columns["misses_error"] = self.misses_error
        return columns

    @property
    def memory(self) -> F64:
        """Memory as exactly as it is known: `mean_pages` if there are any, else `pages`."""
        return self.pages.astype(np.float64) if self.mean_pages is None else self.mean_pages

    @property
    def miss_ratio(self) -> F64:
        """Misses as a share of references."""
        return self.misses / max(self.references, 1)

    @property
    def lifetime(self) -> F64:
        """Virtual time between misses."""
        return self.duration / np.maximum(self.misses, 1)

    @overload
    def at(self, pages: int) -> np.uint64: ...
    @overload
    def at(self, pages: ArrayLike) -> U64: ...
    def at(self, pages: ArrayLike) -> np.uint64 | U64:
        """Misses with so many `pages` of memory, one size or several.

        If memory follows the program, those of the largest mean that fits.

        Raises `ValueError` if the curve has no such point.
        """
        wanted = np.asarray(pages, dtype=np.float64)
        place = np.searchsorted(self.memory, wanted, side="right")
        is_known = place > 0
        if self.mean_pages is None:
            known = self.memory[np.maximum(place, 1) - 1] if len(self) else wanted + 1
            is_known &= (known == wanted) | (known >= self.page_count)
        if not np.all(is_known):
            missing = np.atleast_1d(wanted)[np.atleast_1d(~is_known)][0]
            raise ValueError(
                f"`pages` is {missing:g}; the curve has no such point: name it in `sizes`"
            )
        return self.misses[place - 1]

    def knee(self) -> Knee | None:
        """The knee of the lifetime curve; `None` for a curve without points."""
        memory = np.ascontiguousarray(self.memory)
        found = _tidemark.find_knee(self.duration, memory, self.misses)
        if found is None:
            return None
        window = None
        if self.window is not None:
            window = int(self.window[int(np.argmax(memory == found[0]))])
        return Knee(found[0], found[1], window)


@dataclass(frozen=True, repr=False)
class Curves(Mapping[str, Curve], Table):
    """Curves by the names of their policies, in the order they were asked for."""

    curves: Mapping[str, Curve]
    """The curves by name."""

    def __getitem__(self, policy: str) -> Curve:
        return self.curves[policy]

    def __iter__(self) -> Iterator[str]:
        return iter(self.curves)

    def __len__(self) -> int:
        return len(self.curves)

    def __reduce__(self) -> tuple[Any, ...]:
        return _curves, (dict(self.curves),)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """All curves below each other: `policy`, `pages`, `misses`, `window`, `mean_pages`.

        A constant amount of memory has window 0 and its size as mean. These columns are new.
        """
        every = list(self.curves.values())
        none = np.zeros(0, dtype=np.uint64)
        return {
            "policy": np.repeat(np.array(list(self.curves), dtype=object), [len(c) for c in every]),
            "pages": np.concatenate([none, *(c.pages for c in every)]),
            "misses": np.concatenate([none, *(c.misses for c in every)]),
            "window": np.concatenate(
                [none, *(np.zeros_like(c.misses) if c.window is None else c.window for c in every)]
            ),
            "mean_pages": np.concatenate([none.astype(np.float64), *(c.memory for c in every)]),
        }


def _curves(found: dict[str, Curve]) -> Curves:
    """`found` as curves that don't change."""
    return Curves(MappingProxyType(found))


class Knob(NamedTuple):
    """A number that a policy can be given."""

    name: str
    """Its name."""
    meaning: str
    """The effect of the value, and its unit."""
    min: int
    """The least value."""
    max: int
    """The greatest value."""
    default: int
    """The value if nobody sets it."""


class Policy(NamedTuple):
    """A page replacement policy."""

    name: str
    """Its name."""
    summary: str
    """One line of meaning."""
    sees: str
    """The least it must be shown: `faults`, `bits`, `references` or the `future`."""
    knobs: tuple[Knob, ...]
    """The parameters that can be set."""


def curve(
    source: Source,
    policies: str | Sequence[str] = ("lru", "opt", "ws", "vmin"),
    sizes: ArrayLike | None = None,
    *,
    windows: ArrayLike | None = None,
    seed: int = 1,
    knobs: Mapping[str, int] = MappingProxyType({}),
    eyes: str = "bits",
    sample: float | int | None = None,
) -> Curves:
    """Counts the misses of each of `policies` for each amount of memory: exactly, but for `sample`.

    - `lru`, and `opt`, which knows the future: for every size, unless `sizes` (in pages) chooses.
    - `ws` (working set), `vmin` (its optimum) and `pff` (page fault frequency): memory follows the
      program. The points are those of a range of windows, of `windows` (in virtual time), or, with
      `sizes`, of the longest window for each whose mean fits; sizes too small for any have none.
    - Those that `tidemark.policies()` lists, `fifo` and `clock` among them: at `sizes`, or 24 from
      1 page to all, by simulation. They start from `seed` and take `knobs`. With
      `eyes="soft-faults"` they see what they would on the live machine, without reference bits.

    With `sample` only `lru` can be asked for. Its misses are estimated from eight samples of the
    pages: of a share of them (a `float`), or of at most so many at a time (an `int`). How far they
    can be believed is in `misses_error`.

    Returns the curves by name: a `Curve` each, whose columns have a point for each size, by rising
    memory in pages. LRU's and OPT's misses come from stack distances (Mattson et al. 1970), those of
    `ws` and `vmin` from the intervals between references (Denning and Slutz 1978; Prieve and Fabry
    1976), samples are taken by SHARDS (Waldspurger et al. 2015).

    Raises `ValueError` if a policy is unknown or a number out of its range; and as `load`.
    """
    names = [policies] if isinstance(policies, str) else list(policies)
    at = None if sizes is None else np.unique(counts("sizes", np.atleast_1d(sizes)))
    spans = None if windows is None else np.unique(counts("windows", np.atleast_1d(windows)))
    settings = {name: int(value) for name, value in knobs.items()}
    references = load(source)
    loaded = references._loaded
    found = {}
    for name in names:
        window: U64 | None
        mean: F64 | None
        error: F64 | None = None
        if sample is not None:
            if name != "lru":
                raise ValueError(f"`policies` has `{name}`; only `lru` is estimated from a `sample`")
            rate, kept = (sample, None) if isinstance(sample, float) else (None, min(max(sample, 0), 2**32 - 1))
            window, mean = None, None
            pages, misses, error = _tidemark.estimate_misses(loaded, rate, kept, at, seed)
        elif name in VARIABLE:
            window, misses, mean = _tidemark.count_faults(loaded, name, at, spans)
            order = np.argsort(mean, kind="stable")
            window, misses, mean = window[order], misses[order], mean[order]
            pages = np.ceil(mean).astype(np.uint64)
        else:
            window, mean = None, None
            pages, misses = _tidemark.count_misses(loaded, name, at, seed, settings, eyes)
        found[name] = Curve(
            policy=name,
            pages=pages,
            misses=misses,
            window=window,
            mean_pages=mean,
            misses_error=error,
            references=len(references),
            page_count=references.page_count,
            duration=references.duration,
        )
    return _curves(found)


def policies() -> tuple[Policy, ...]:
    """Lists the page replacement policies `curve` can simulate, in the order of their history.

    Returns a `Policy` each: name, one line of meaning, what it must see, and its knobs.
    """
    return tuple(
        Policy(name, summary, sees, tuple(Knob(*knob) for knob in knobs))
        for name, summary, sees, knobs in _tidemark.describe_policies()
    )
