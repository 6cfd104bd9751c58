"""Arrays that are written to files, beside those of `numpy.memmap`."""

from __future__ import annotations

import errno
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
def test_random_writes_are_those_of_memmap(
    engine: tidemark.Engine, path: Path, tmp_path: Path, policy: str
) -> None:
    other = tmp_path / "other.bin"
    other.write_bytes(path.read_bytes())
    engine = tidemark.Engine("1M", policy=policy, swap=tmp_path, swap_size="1M")
    array: npt.NDArray[Any] = engine.open(path, "i2", (1000, 2000), "r+", 72)
    mapped = np.memmap(other, "i2", "r+", 72, (1000, 2000))
    rng = np.random.default_rng(8)
    for turn in range(30):
        row, column = rng.integers(1000), rng.integers(2000)
        assert (array[row] == mapped[row]).all()
        assert (array[:, column] == mapped[:, column]).all()
        value = rng.integers(1000)
        for each in (array, mapped):
            each[row, column:] = value
            each[row : row + 20, :10] += 1
        if turn % 10 == 9:
            tidemark.flush(array)
            mapped.flush()
            assert path.read_bytes() == other.read_bytes()
    counted = engine.statistics()
    assert counted.resident_bytes <= MIB and counted.file_page_outs == counted.page_outs > 100
    array[::7] = mapped[::7] = 5
    del array, each
    mapped.flush()
    assert engine.statistics().region_bytes == 0
    assert path.read_bytes() == other.read_bytes()


def test_a_file_is_made_made_longer_and_emptied(engine: tidemark.Engine, tmp_path: Path) -> None:
    path = tmp_path / "new.npy"
    made = engine.open(path, "<f8", (3, 5), "w+", 16)
    assert made.flags.writeable and (made == 0).all()
    made[:] = np.arange(15).reshape(3, 5)
    tidemark.flush(made[1])
    assert path.stat().st_size == 16 + 15 * 8
    del made
    assert (np.memmap(path, "<f8", "r", 16) == np.arange(15)).all()
    longer = engine.open(path, "<f8", 1000, "r+", 16)
    assert (longer[:15] == np.arange(15)).all() and (longer[15:] == 0).all()
    longer[999] = 1
    del longer
    assert path.stat().st_size == 16 + 8000 and np.fromfile(path, "<f8")[-1] == 1


def test_a_file_has_one_array_that_is_written_to_it(engine: tidemark.Engine, path: Path) -> None:
    array = engine.open(path, mode="r+")
    with pytest.raises(BlockingIOError, match="data.bin` is being written to by another"):
        engine.open(path, mode="r+")
    code = f"import tidemark; tidemark.Engine('1M').open({str(path)!r}, mode='w+', shape=1)"
    run = {"capture_output": True, "text": True, "timeout": 60, "cwd": path.parent}
    done = subprocess.run([sys.executable, "-c", code], **run)  # type: ignore[call-overload]
    assert done.returncode == 1 and "is being written to" in done.stderr
    assert (engine.open(path) == array).all()
    del array
    assert engine.open(path, mode="r+").flags.writeable


def test_what_is_modified_is_written_when_the_interpreter_ends(
    engine: tidemark.Engine, path: Path
) -> None:
    code = f"""
import sys, threading, tidemark
engine = tidemark.Engine("1M", swap={str(path.parent)!r}, swap_size="1M")
array = engine.open({str(path)!r}, mode="r+")
array[:] = 9
cycle = [array]
cycle.append(cycle)
threading.Thread(target=lambda: array.sum(), daemon=True).start()
if "raise" in sys.argv:
    raise SystemExit(3)
"""
    for arguments, status in ([], 0), (["raise"], 3):
        path.write_bytes(bytes(4 * MIB + 1000))
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, timeout=60, cwd=path.parent, stderr=subprocess.PIPE)
        assert done.returncode == status, done.stderr
        assert (np.fromfile(path, "u1") == 9).all()


def test_a_forked_child_writes_nothing(engine: tidemark.Engine, path: Path) -> None:
    array = engine.open(path, mode="r+")
    array[:MIB] = 4
    child = os.fork()
    if child == 0:
        try:
            tidemark.flush(array)
        except RuntimeError as error:
            status = 0 if "forked" in str(error) else 2
        else:
            status = 3
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    code = f"""
import os, sys, tidemark
engine = tidemark.Engine("1M", swap={str(path.parent)!r}, swap_size="1M")
path = {str(path.with_name("other"))!r}
array = engine.open(path, mode="w+", shape=3_000_000)
array[:] = 1
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
before = open(path, "rb").read().count(b"\\1")
array[:] = 2
child = os.fork()
if child == 0:
    array[0]
    os._exit(0)
assert os.waitpid(child, 0)[1] == {int(signal.SIGSEGV)}, "the child has no array"
tidemark.flush(array)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=path.parent
    )
    assert done.returncode == 0, done.stderr
    assert (np.fromfile(path.with_name("other"), "u1") == 2).all()
    array[:] = 6
    tidemark.flush(array)
    assert (np.fromfile(path, "u1") == 6).all()


def test_a_file_that_is_cut_is_named_by_flush(engine: tidemark.Engine, path: Path) -> None:
    array = engine.open(path, mode="r+", shape=MIB // 2)
    array[:] = 1
    os.truncate(path, 100_000)
    with pytest.raises(OSError, match=r"data.bin` was cut to 100000 bytes of"):
        tidemark.flush(array)
    del array
    assert path.stat().st_size == 100_000


def test_a_full_disk_is_named_by_flush_and_nothing_is_lost(engine: tidemark.Engine) -> None:
    # A file system of a few pages, where root may make one.
    code = f"""
import ctypes, os, tidemark
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_PRIVATE = 0x20000, 0x44000
if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_PRIVATE, None):
    raise SystemExit(77)
if libc.mount(b"none", b"/mnt", b"tmpfs", 0, b"size=64k"):
    raise SystemExit(77)
with open("/mnt/full", "wb") as file:
    file.truncate(1 << 19)
engine = tidemark.Engine("1M", swap="/var/tmp", swap_size="1M")
array = engine.open("/mnt/full", mode="r+")
array[:] = 7
try:
    tidemark.flush(array)
except OSError as error:
    assert error.errno == {errno.ENOSPC} and "`/mnt/full` can't be written at byte" in str(error)
else:
    raise AssertionError("there is no room")
assert (array == 7).all()
libc.mount(b"none", b"/mnt", b"tmpfs", 32, b"size=1m")
tidemark.flush(array)
assert open("/mnt/full", "rb").read() == bytes([7]) * (1 << 19)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd="/var/tmp"
    )
    if done.returncode == 77:
        pytest.skip("mounting is not permitted")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mode": "w+"}, ValueError, "`shape` is None; needs one with elements"),
        ({"mode": "w+", "shape": (3, 0)}, ValueError, "needs one with elements"),
        ({"mode": "r+", "offset": 5 * MIB}, ValueError, "has 4195304 bytes; needs 5242881"),
        ({"mode": "r+", "dtype": "<f8", "offset": 1}, ValueError, "needs a multiple of 8"),
        ({"mode": "r+", "shape": 1 << 45}, ValueError, "needs one before 16 TiB"),
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
    assert path.stat().st_size == 4 * MIB + 1000


def test_only_what_is_written_to_a_file_is_flushed(engine: tidemark.Engine, path: Path) -> None:
    for array in (engine.open(path), engine.open(path, mode="c"), engine.zeros(9)):
        with pytest.raises(ValueError, match="`array` is not written to a file; needs one of"):
            tidemark.flush(array)
    with pytest.raises(ValueError, match="is not one of"):
        tidemark.flush(np.zeros(3))
