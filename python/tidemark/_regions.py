"""Arrays that are larger than the memory they may use."""

from __future__ import annotations

import contextlib
import gc
import math
import operator
import os
from collections.abc import Callable, Iterator, Sequence
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
    """Read from the swap file and from other files, those read ahead included."""
    file_page_ins: int
    """Those of them that are of other files than the swap file."""
    page_outs: int
    """Written to the swap file and to other files."""
    file_page_outs: int
    """Those of them that are of other files than the swap file."""
    zero_fills: int
    """Filled with zeros at the first touch, those filled ahead included."""
    soft_faults: int
    """Faults on pages that were resident and unmapped, to see whether they are used."""
    resident_bytes: int
    """The memory that arrays have now."""
    region_bytes: int
    """The bytes of all arrays."""
    beside_bytes: int
    """The memory beside arrays that counts against the limit, with `whole_process`."""


class Engine:
    """A limit of memory for arrays, with a replacement policy and a swap file.

    `memory` is the most that all arrays of this engine have together: a number of bytes, or text
    like `"64M"`. `policy` is one that can run live (the command `tidemark policies` lists them).
    The swap file has no name; it is made in the folder `swap`, takes `swap_size`, and is gone when
    the last array is. If `swap` is `redis://HOST[:PORT]/DATABASE/NAME`, pages go to that server.

    With `whole_process`, all private memory that the process gets from then on counts: small
    arrays, Python objects, work space of libraries, the engine's tables. Arrays have that much
    less, but three quarters of `memory` at least.

    Raises `ValueError` for a setting that can't be, and `OSError` where the system refuses what is
    needed: `tidemark doctor` says how to permit it.
    """

    def __init__(
        self,
        memory: int | str,
        *,
        policy: str = "2q-faults",
        swap: str | os.PathLike[str] = "/var/tmp",
        swap_size: int | str = "4G",
        whole_process: bool = False,
    ) -> None:
        self._engine = _tidemark.Engine(
            _size("memory", memory),
            _text("policy", policy),
            _path("swap", swap),
            _size("swap_size", swap_size),
            _truth("whole_process", whole_process),
        )

    @property
    def memory(self) -> int:
        """The most memory of all arrays together, in bytes."""
        return self._engine.memory

    @property
    def serves_system_calls(self) -> bool:
        """True if system calls may be handed any part of an array.

        It is false where this user may serve faults in user mode alone: a system call that is
        handed pages that are out fails with "Bad address". Hand it a copy, or parts of `bytes`.
        """
        return self._engine.serves_system_calls

    def zeros(
        self, shape: int | Sequence[int], dtype: npt.DTypeLike = float
    ) -> npt.NDArray[Any]:
        """Makes an array of zeros. It takes no memory before it is touched.

        The array is a plain one: numpy, and what builds on it, works on it as it is. What numpy
        makes of it (`a + 1`) is limited within a `memory_limit`.

        Raises `ValueError` for elements that are Python objects, and `MemoryError` for more than
        fits in memory and swap file.
        """
        kind = _kind(dtype)
        sides, size = _sides(shape, kind)
        if size == 0:
            return np.zeros(sides, kind)
        memory = _Memory(_with_room(lambda: self._engine.zeros(size)))
        return np.asarray(memory).view(kind).reshape(sides)

    empty = zeros

    def open(
        self,
        path: str | bytes | os.PathLike[str],
        dtype: npt.DTypeLike = np.uint8,
        shape: int | Sequence[int] | None = None,
        mode: str = "r",
        offset: int = 0,
    ) -> npt.NDArray[Any]:
        """Makes an array of what a file has from byte `offset` on, as `numpy.memmap` does.

        Its pages are read when they are touched, ahead of those who walk over them, and dropped
        when others need their memory. Without a `shape` it has one dimension, and all that the file
        has. With the `mode` `"r"` it can't be written to. With `"c"` it can, and the file stays as
        it is: pages that are modified go to the swap file, where there must be room for all. With
        `"r+"` they go to the file, when they leave memory, at `flush`, when the array is let go of,
        and when the program ends. A file that is too short for the `shape` is made longer. `"w+"`
        is the same with a file that is made, or emptied, first.

        A file has one array that is written to it at a time, here and in other processes. What was
        not flushed when a program is killed is lost, and a forked child has no such array.

        What others write to the file meanwhile is seen on pages that are read after that. If the
        file is cut, touching what it does not have any more ends the program with `SIGBUS`, after a
        line that names it.

        Raises `OSError` for a file that can't be opened, `BlockingIOError` for one that is written
        to already, `ValueError` for one that is too short, and for what `zeros` does.
        """
        kind = _kind(dtype)
        _check_part(kind, mode, offset)
        sides, size = (None, None) if shape is None else _sides(shape, kind)
        if mode == "w+" and not size:
            raise ValueError(f"`shape` is {shape}; needs one with elements for the `mode` `w+`")
        if size == 0:
            # A file that is not there is an error all the same.
            os.stat(_path("path", path))
            return _of_mode(np.zeros(sides or 0, kind), mode)
        name = _path("path", path)
        region = _with_room(lambda: self._engine.open(name, offset, size, mode))
        if region.bytes % kind.itemsize:
            raise ValueError(
                f"`{name}` has {region.bytes} bytes from `offset` {offset} on; needs a multiple of "
                f"{kind.itemsize}, the size of {kind}, or a `shape`"
            )
        array = np.asarray(_Memory(region, is_constant=mode == "r")).view(kind)
        return array if sides is None else array.reshape(sides)

    def from_store(
        self,
        url: str,
        dtype: npt.DTypeLike = np.uint8,
        shape: int | Sequence[int] | None = None,
        mode: str = "r",
        offset: int = 0,
    ) -> npt.NDArray[Any]:
        """Makes an array of what a server has from byte `offset` on, as `open` does of a file.

        The `url` is one of `redis://HOST[:PORT]/DATABASE/NAME`, `http://…`, `https://…` and
        `s3://BUCKET/KEY`. Objects by HTTP and S3 are only read or copied (`mode` `"r"` or `"c"`).
        An array on a Redis server can be written to: with `"w+"` it is made of zeros, in place of
        what is there, and needs a `shape`; with `"r+"` it is there.

        What fails for now (a server that starts, a connection that ends, no answer for 10 seconds)
        is tried again for 30 seconds. If a page can't be had then, or at all, a line names the
        server, and the touch ends the program with `SIGBUS`.

        Raises `OSError` for a server that can't be reached or has no such thing, and `ValueError`
        for what is too short, for another kind of `url`, and for what `open` does.
        """
        kind = _kind(dtype)
        _check_part(kind, mode, offset)
        sides, size = (None, None) if shape is None else _sides(shape, kind)
        if size == 0 or (mode == "w+" and size is None):
            raise ValueError(f"`shape` is {shape}; needs one with elements")
        made = None if size is None else offset + size
        region = _with_room(lambda: self._engine.open_store(_text("url", url), made, mode))
        end = region.bytes if made is None else made
        if not offset < end <= region.bytes:
            raise ValueError(
                f"`{url}` has {region.bytes} bytes; needs {max(end, offset + 1)}: ask for less"
            )
        if (end - offset) % kind.itemsize:
            raise ValueError(
                f"`{url}` has {end - offset} bytes from `offset` {offset} on; needs a multiple of "
                f"{kind.itemsize}, the size of {kind}, or a `shape`"
            )
        memory = np.asarray(_Memory(region, is_constant=mode == "r"))
        array = memory[offset:end].view(kind)
        return array if sides is None else array.reshape(sides)

    def statistics(self) -> Statistics:
        """Counts faults, page-ins and so on."""
        return Statistics(**dict(self._engine.statistics()))


class _Memory:
    """The owner of an array's bytes: numpy keeps it for as long as the array, or a part, lives."""

    def __init__(self, region: _tidemark.Region, *, is_constant: bool = False) -> None:
        self.region = region
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (region.bytes,),
            "data": (region.address, is_constant),
        }


def advise(array: npt.NDArray[Any], advice: str) -> None:
    """Says how an array of `zeros` or `open`, or a part of one, will be used.

    `advice` is `"sequential"`, `"reverse"` (what is expected to come next is read ahead),
    `"random"` (pages are read one by one) or `"normal"` (what is used in order is found out).
    Returns nothing.

    Raises `ValueError` for other arrays and other words.
    """
    region, start, end = _find(array)
    region.advise(start, end, _text("advice", advice))


def flush(array: npt.NDArray[Any]) -> None:
    """Writes what is modified of an array of `open` with `"r+"` or `"w+"`, or of a part of one.

    The same for an array of `from_store`.
    It returns when that is on the disk, or at the server. As `numpy.memmap.flush` does. Returns nothing.

    Raises `OSError`, which names the file, where it can't be written: then what is modified stays
    in memory. Raises `ValueError` for other arrays.
    """
    region, start, end = _find(array)
    region.flush(start, end)


def prefetch(array: npt.NDArray[Any]) -> None:
    """Begins to read what is out of an array of `zeros` or `open`, or of a part of one.

    It returns at once.
    It reads as much as fits without other pages having to leave. Returns nothing.

    Raises `ValueError` for other arrays.
    """
    region, start, end = _find(array)
    region.prefetch(start, end)


_current: ContextVar[Engine] = ContextVar("engine")


@contextlib.contextmanager
def memory_limit(
    memory: int | str | Engine,
    *,
    policy: str = "2q-faults",
    swap: str | os.PathLike[str] = "/var/tmp",
    swap_size: int | str = "4G",
) -> Iterator[Engine]:
    """Has the arrays that numpy makes in a `with` statement be of one `Engine` with these settings.

    That is so for all that takes its memory from numpy: `a + 1`, what libraries compute in between,
    what is read or unpickled. Arrays below 1 MiB are ordinary ones. `tidemark.zeros`, `empty` and
    `open` make arrays of the engine, too. By `memory` the process's private memory grows at most,
    as long as no more than a quarter of it is beside arrays. In place of `memory` an `Engine` can be
    given, whose settings hold then: threads begin without a limit, and can so have that of another.

    Returns a context for `with`, which gives the engine. The arrays may be used for as long as they
    live, after the `with` statement as well. What does not fit in memory and swap file raises
    `MemoryError`.
    """
    if isinstance(memory, Engine):
        engine = memory
    else:
        engine = Engine(
            memory, policy=policy, swap=swap, swap_size=swap_size, whole_process=True
        )
    allocator = _tidemark.set_allocator(engine._engine.allocator())
    token = _current.set(engine)
    try:
        yield engine
    finally:
        _current.reset(token)
        _tidemark.set_allocator(allocator)


def zeros(shape: int | Sequence[int], dtype: npt.DTypeLike = float) -> npt.NDArray[Any]:
    """Makes an array of zeros in the memory of the `memory_limit` around it: see `Engine.zeros`.

    Returns the array. Raises `RuntimeError` outside of any.
    """
    return _engine_in_force().zeros(shape, dtype)


empty = zeros


def open(
    path: str | bytes | os.PathLike[str],
    dtype: npt.DTypeLike = np.uint8,
    shape: int | Sequence[int] | None = None,
    mode: str = "r",
    offset: int = 0,
    engine: Engine | None = None,
) -> npt.NDArray[Any]:
    """Makes an array of what a file has, in the memory of an `Engine`: see `Engine.open`.

    Without an `engine` it is that of the `memory_limit` around it. Returns the array. Raises
    `RuntimeError` outside of any.
    """
    if engine is None:
        engine = _engine_in_force()
    return engine.open(path, dtype, shape, mode, offset)


def _engine_in_force() -> Engine:
    engine = _current.get(None)
    if engine is None:
        raise RuntimeError("no `tidemark.memory_limit` is in force; use `with`, or an `Engine`")
    return engine


def from_store(
    url: str,
    dtype: npt.DTypeLike = np.uint8,
    shape: int | Sequence[int] | None = None,
    mode: str = "r",
    offset: int = 0,
    engine: Engine | None = None,
) -> npt.NDArray[Any]:
    """Makes an array of what a server has, in the memory of an `Engine`: see `Engine.from_store`.

    Without an `engine` it is that of the `memory_limit` around it. Returns the array. Raises
    `RuntimeError` outside of any.
    """
    if engine is None:
        engine = _engine_in_force()
    return engine.from_store(url, dtype, shape, mode, offset)


def _check_part(kind: np.dtype[Any], mode: str, offset: int) -> None:
    if mode not in ("r", "c", "r+", "w+"):
        raise ValueError(
            f"`mode` is `{mode}`; needs `r`, to read, `c`, to modify a copy, or `r+` or `w+`, "
            "to write"
        )
    if not 0 <= _whole("offset", offset) < 1 << 63:
        raise ValueError(f"`offset` is {offset}; needs a number of bytes from 0 on, below 8 EiB")
    if kind.itemsize == 0:
        raise ValueError(f"`dtype` is {kind}; needs one of a size")


def _kind(dtype: npt.DTypeLike) -> np.dtype[Any]:
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise ValueError(f"`dtype` is {kind}; needs one without Python objects")
    return kind


def _sides(shape: int | Sequence[int], kind: np.dtype[Any]) -> tuple[tuple[int, ...], int]:
    """The sides of an array, and its bytes."""
    try:
        # A whole number of numpy's is none of Python's.
        sides = _whole_numbers(shape)
    except TypeError:
        raise TypeError(f"`shape` is {shape!r}; needs whole numbers") from None
    if any(side < 0 for side in sides):
        raise ValueError(f"`shape` is {shape}; needs sizes from 0 on")
    size = math.prod(sides) * kind.itemsize
    if size >= 1 << 63:
        raise MemoryError(f"`shape` is {shape}; needs less than 8 EiB")
    return sides, size


def _whole_numbers(shape: Any) -> tuple[int, ...]:
    try:
        return (operator.index(shape),)
    except TypeError:
        return tuple(operator.index(side) for side in shape)


def _with_room(make: Callable[[], _tidemark.Region]) -> _tidemark.Region:
    try:
        return make()
    except MemoryError:
        # Arrays that only name each other have their space until they are looked for.
        gc.collect()
        return make()


def _of_mode(array: npt.NDArray[Any], mode: str) -> npt.NDArray[Any]:
    array.flags.writeable = mode != "r"
    return array


def _find(array: npt.NDArray[Any]) -> tuple[_tidemark.Region, int, int]:
    """The region of an array, and the range of bytes that it reaches over."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if not isinstance(owner, _Memory):
        raise ValueError(
            "the array is not one of `tidemark.zeros`, `open` or `from_store`, or a part of one"
        )
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
    if not 0 <= _whole(name, size) < 1 << 64:
        raise ValueError(f"`{name}` is {size}; needs a number of bytes, or text like `64M`")
    return operator.index(size)


def _whole(name: str, number: int) -> int:
    try:
        return operator.index(number)
    except TypeError:
        raise TypeError(f"`{name}` is {number!r}; needs a whole number") from None


def _text(name: str, text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"`{name}` is {text!r}; needs text")
    return text


def _truth(name: str, value: bool) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"`{name}` is {value!r}; needs `True` or `False`")
    return bool(value)


def _path(name: str, path: str | bytes | os.PathLike[str]) -> str:
    try:
        return os.fsdecode(path)
    except TypeError:
        raise TypeError(f"`{name}` is {path!r}; needs a path") from None
