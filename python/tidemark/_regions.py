"""Arrays that are larger than the memory they may use."""

from __future__ import annotations

import contextlib
import gc
import math
import operator
import os
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidemark import _tidemark


class Statistics(NamedTuple):
    """The counts of an engine's work so far, in pages unless the name says bytes."""

    faults: int
    """Faults that were served."""
    page_ins: int
    """Read from the swap file, those read ahead included."""
    page_outs: int
    """Written to the swap file."""
    zero_fills: int
    """Filled with zeros at the first touch, those filled ahead included."""
    soft_faults: int
    """Faults on pages that were resident and unmapped, to see whether they are used."""
    resident_bytes: int
    """The memory that arrays have now."""
    region_bytes: int
    """The bytes of all arrays."""


class Engine:
    """A limit of memory for arrays, with a replacement policy and a swap file.

    `memory` is the most that all arrays of this engine have together: a number of bytes, or text
    like `"64M"`. `policy` is one that can run live (the command `tidemark policies` lists them).
    The swap file has no name; it is made in the folder `swap`, takes `swap_size`, and is gone when
    the last array is.

    Raises `ValueError` for a setting that can't be, and `OSError` where the system refuses what is
    needed: `tidemark doctor` says how to permit it.
    """

    def __init__(
        self,
        memory: int | str,
        *,
        policy: str = "tidemark",
        swap: str | os.PathLike[str] = "/var/tmp",
        swap_size: int | str = "4G",
    ) -> None:
        self._engine = _tidemark.Engine(
            _size("memory", memory), policy, os.fspath(swap), _size("swap_size", swap_size)
        )

    @property
    def memory(self) -> int:
        """The most memory of all arrays together, in bytes."""
        return self._engine.memory

    def zeros(
        self, shape: int | Sequence[int], dtype: npt.DTypeLike = float
    ) -> npt.NDArray[Any]:
        """Makes an array of zeros. It takes no memory before it is touched.

        The array is a plain one: numpy, and what builds on it, works on it as it is. What numpy
        makes of it (`a + 1`) is not limited, unless it goes to such an array (`out=`).

        Raises `ValueError` for elements that are Python objects, and `MemoryError` for more than
        fits in memory and swap file.
        """
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise ValueError(f"`dtype` is {kind}; needs one without Python objects")
        sides = (shape,) if isinstance(shape, int) else tuple(operator.index(n) for n in shape)
        if any(side < 0 for side in sides):
            raise ValueError(f"`shape` is {shape}; needs sizes from 0 on")
        size = math.prod(sides) * kind.itemsize
        if size == 0:
            return np.zeros(sides, kind)
        if size >= 1 << 63:
            raise MemoryError(f"`shape` is {shape}; needs less than 8 EiB")
        try:
            memory = _Memory(self._engine.zeros(size), size)
        except MemoryError:
            # Arrays that only name each other have their space until they are looked for.
            gc.collect()
            memory = _Memory(self._engine.zeros(size), size)
        return np.asarray(memory).view(kind).reshape(sides)

    empty = zeros

    def statistics(self) -> Statistics:
        """Counts faults, page-ins and so on."""
        return Statistics(**dict(self._engine.statistics()))


class _Memory:
    """The owner of an array's bytes: numpy keeps it for as long as the array, or a part, lives."""

    def __init__(self, region: _tidemark.Region, size: int) -> None:
        self.region = region
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (size,),
            "data": (region.address, False),
        }


def advise(array: npt.NDArray[Any], advice: str) -> None:
    """Says how an array of `zeros`, or a part of one, will be used.

    `advice` is `"sequential"`, `"reverse"` (what is expected to come next is read ahead),
    `"random"` (pages are read one by one) or `"normal"` (what is used in order is found out).
    Returns nothing.

    Raises `ValueError` for other arrays and other words.
    """
    region, start, end = _find(array)
    region.advise(start, end, advice)


def prefetch(array: npt.NDArray[Any]) -> None:
    """Begins to read what is out of an array of `zeros`, or of a part of one, and returns at once.

    It reads as much as fits without other pages having to leave. Returns nothing.

    Raises `ValueError` for other arrays.
    """
    region, start, end = _find(array)
    region.prefetch(start, end)


_current: ContextVar[Engine] = ContextVar("engine")


@contextlib.contextmanager
def memory_limit(
    memory: int | str,
    *,
    policy: str = "tidemark",
    swap: str | os.PathLike[str] = "/var/tmp",
    swap_size: int | str = "4G",
) -> Iterator[Engine]:
    """Has `tidemark.zeros` and `tidemark.empty` make arrays of one `Engine` with these settings.

    Returns a context for `with`, which gives the engine. The arrays may be used for as long as they
    live, after the `with` statement as well.
    """
    engine = Engine(memory, policy=policy, swap=swap, swap_size=swap_size)
    token = _current.set(engine)
    try:
        yield engine
    finally:
        _current.reset(token)


def zeros(shape: int | Sequence[int], dtype: npt.DTypeLike = float) -> npt.NDArray[Any]:
    """Makes an array of zeros in the memory of the `memory_limit` around it: see `Engine.zeros`.

    Returns the array. Raises `RuntimeError` outside of any.
    """
    engine = _current.get(None)
    if engine is None:
        raise RuntimeError("no `tidemark.memory_limit` is in force; use `with`, or an `Engine`")
    return engine.zeros(shape, dtype)


empty = zeros


def _find(array: npt.NDArray[Any]) -> tuple[_tidemark.Region, int, int]:
    """The region of an array, and the range of bytes that it reaches over."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if not isinstance(owner, _Memory):
        raise ValueError("the array is not one of `tidemark.zeros`, or a part of one")
    low = array.ctypes.data - owner.region.address
    if array.size == 0:
        return owner.region, low, low
    steps = [step * (side - 1) for step, side in zip(array.strides, array.shape, strict=True)]
    start = low + sum(step for step in steps if step < 0)
    end = low + sum(step for step in steps if step > 0) + array.itemsize
    return owner.region, start, end


def _size(name: str, size: int | str) -> int:
    if isinstance(size, str):
        return _tidemark.parse_size(name, size)
    if not 0 <= operator.index(size) < 1 << 64:
        raise ValueError(f"`{name}` is {size}; needs a number of bytes, or text like `64M`")
    return size
