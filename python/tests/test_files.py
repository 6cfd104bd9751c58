"""Arrays of what files have, beside those of `numpy.memmap`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tidemark

MIB = 1 << 20
POLICIES = ["tidemark", "mach86", "fifo", "clock", "osf-mk", "gnumach"]


@pytest.mark.parametrize("policy", POLICIES)
def test_random_reads_are_those_of_memmap(
    engine: tidemark.Engine, path: Path, tmp_path: Path, policy: str
) -> None:
    engine = tidemark.Engine("1M", policy=policy, swap=tmp_path, swap_size="1M")
    array = engine.open(path, "<u4")
    mapped = np.memmap(path, "<u4", mode="r")
    assert array.shape == mapped.shape and array.dtype == mapped.dtype
    assert not array.flags.writeable
    rng = np.random.default_rng(7)
    for _ in range(100):
        start, step = rng.integers(array.size), rng.integers(1, 5000)
        assert (array[start::step] == mapped[start::step]).all()
        some = rng.integers(array.size, size=50)
        assert (array[some] == mapped[some]).all()
    assert array.sum(dtype="u8") == mapped.sum(dtype="u8")
    counted = engine.statistics()
    assert counted.resident_bytes <= engine.memory == MIB
    assert counted.page_outs == 0 and counted.file_page_ins > 1000


@pytest.mark.parametrize("policy", POLICIES)
def test_random_writes_to_a_copy_are_those_of_memmap(
    engine: tidemark.Engine, path: Path, tmp_path: Path, policy: str
) -> None:
    before = path.read_bytes()
    engine = tidemark.Engine("1M", policy=policy, swap=tmp_path, swap_size="16M")
    array: npt.NDArray[Any] = engine.open(path, "i2", (1000, 2000), "c", 72)
    mapped = np.memmap(path, "i2", "c", 72, (1000, 2000))
    rng = np.random.default_rng(8)
    for _ in range(30):
        row, column = rng.integers(1000), rng.integers(2000)
        assert (array[row] == mapped[row]).all()
        assert (array[:, column] == mapped[:, column]).all()
        value = rng.integers(1000)
        for each in (array, mapped):
            each[row, column:] = value
            each[row : row + 20, :10] += 1
    assert (array == mapped).all()
    counted = engine.statistics()
    assert counted.resident_bytes <= MIB
    assert counted.page_outs > 100 < counted.file_page_ins
    del array
    assert engine.statistics().region_bytes == 0
    assert path.read_bytes() == before


def test_a_file_larger_than_memory_and_swap_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    with path.open("wb") as file:
        file.truncate(64 * MIB)
        file.seek(48 * MIB)
        file.write(b"x")
    try:
        engine = tidemark.Engine("1M", swap=tmp_path, swap_size="1M")
    except OSError as error:
        pytest.skip(str(error))
    array = engine.open(path)
    assert array.sum() == ord("x") and array[48 * MIB] == ord("x")
    with pytest.raises(MemoryError, match="are left of memory and swap"):
        engine.open(path, mode="c")


def test_a_file_is_opened_in_the_limit_around_it(engine: tidemark.Engine, path: Path) -> None:
    with pytest.raises(RuntimeError, match="memory_limit"):
        tidemark.open(path)
    with tidemark.memory_limit("1M", swap=path.parent, swap_size="1M") as limit:
        array = tidemark.open(path)
        other = tidemark.open(path, engine=engine)
    assert (array == other).all()
    assert limit.statistics().file_page_ins > 1000 < engine.statistics().file_page_ins


def test_a_part_is_advised_and_read_ahead(engine: tidemark.Engine, path: Path) -> None:
    array = engine.open(os.fsencode(path), offset=100)
    tidemark.advise(array[MIB:], "sequential")
    tidemark.prefetch(array[: MIB // 16])
    assert (array == np.memmap(path, mode="r", offset=100)).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mode": "a"}, ValueError, "`mode` is `a`; needs `r`, to read, `c`"),
        ({"mode": "w"}, ValueError, "`mode` is `w`"),
        ({"dtype": object}, ValueError, "needs one without Python objects"),
        ({"dtype": "V0"}, ValueError, "`dtype` is |V0; needs one of a size"),
        ({"dtype": "<f8", "offset": 1}, ValueError, "needs a multiple of 8, the size of float64"),
        ({"offset": -1}, ValueError, "`offset` is -1"),
        ({"offset": 5 * MIB}, ValueError, "data.bin` has 4195304 bytes; needs 5242881"),
        ({"shape": (3, -1)}, ValueError, "needs sizes from 0 on"),
        ({"shape": 5 * MIB}, ValueError, "data.bin` has 4195304 bytes; needs 5242880"),
        ({"shape": (1 << 40, 1 << 40)}, MemoryError, "`shape` is"),
    ],
)
def test_a_bad_argument_names_itself(
    engine: tidemark.Engine,
    path: Path,
    arguments: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        engine.open(path, **arguments)
    assert engine.statistics().region_bytes == 0


def test_a_file_that_is_not_there_names_itself(engine: tidemark.Engine, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="`/nowhere/at/all` can't be opened"):
        engine.open("/nowhere/at/all")
    with pytest.raises(FileNotFoundError, match="/nowhere/at/all"):
        engine.open("/nowhere/at/all", shape=0)
    with pytest.raises(ValueError, match="is not a regular file"):
        engine.open(tmp_path)
    empty = tmp_path / "empty"
    empty.touch()
    assert engine.open(empty, shape=(3, 0)).shape == (3, 0)
    assert not engine.open(empty, shape=0).flags.writeable
    with pytest.raises(ValueError, match="has 0 bytes; needs 1"):
        engine.open(empty)


def test_a_file_that_is_cut_is_named_and_ends_the_program(
    engine: tidemark.Engine, path: Path
) -> None:
    code = f"""
import os, tidemark
engine = tidemark.Engine("1M", swap={str(path.parent)!r}, swap_size="1M")
array = engine.open({str(path)!r})
array.sum()
os.truncate({str(path)!r}, 100_000)
print(array[:90_000].sum(), flush=True)
array.sum()
"""
    run = {"cwd": path.parent, "capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run([sys.executable, "-c", code], **run)  # type: ignore[call-overload]
    assert done.returncode == -signal.SIGBUS, done.stderr
    assert int(done.stdout) == int(np.fromfile(path, "u1")[:90_000].sum())
    assert f"`{path}` was cut to 100000 bytes; {4 * MIB + 1000} are mapped" in done.stderr
    assert os.stat(path).st_size == 100_000
