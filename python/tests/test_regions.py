"""Arrays that are larger than the memory they may use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidemark

MIB = 1 << 20


def test_an_array_larger_than_its_memory_has_what_was_written(engine: tidemark.Engine) -> None:
    array = engine.zeros((512, 1024), np.float64)
    assert array.nbytes == 4 * MIB and not array.any()
    array[:] = np.arange(array.size).reshape(array.shape)
    assert array.sum() == array.size * (array.size - 1) / 2
    assert (array[::7, ::-1].ravel()[:5] == [1023, 1022, 1021, 1020, 1019]).all()
    counted = engine.statistics()
    assert counted.page_ins > 500 and counted.page_outs > 500
    assert counted.resident_bytes <= engine.memory == MIB
    assert counted.region_bytes == 4 * MIB


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_without_rights_has_arrays(tmp_path: Path) -> None:
    code = """
import ctypes, os, tempfile
import numpy as np
import tidemark

os.setgid(65534)
os.setuid(65534)
# PR_SET_DUMPABLE: as after `exec`, the files of this process in /proc are its user's.
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
engine = tidemark.Engine("1M", swap=tempfile.gettempdir(), swap_size="64M")
array = engine.zeros((1024, 1024), "u4")
array[:] = np.arange(array.size, dtype="u4").reshape(array.shape)
assert array.sum() == array.size * (array.size - 1) // 2
if not engine.serves_system_calls:
    with tempfile.TemporaryFile() as file:
        try:
            array.tofile(file)
        except OSError:
            file.seek(0)
            for row in array:
                file.write(row.tobytes())
        else:
            raise AssertionError("pages that are out were written")
        file.seek(0)
        assert file.read(8192)[4096:4100] == array[1, 0].tobytes()
print(engine.serves_system_calls)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd="/", capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout in ("True\n", "False\n")


def test_the_process_has_no_more_memory_than_the_limit(tmp_path: Path) -> None:
    code = f"""
import tidemark

def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) << 10

engine = tidemark.Engine("16M", swap={str(tmp_path)!r}, swap_size="128M")
array = engine.zeros((64, 1 << 20), "u1")
before = most = anonymous()
for turn in range(3):
    for row in array:
        row[:] = turn
        most = max(most, anonymous())
print(most - before)
"""
    # Elsewhere than here, where the sources would be found in place of what is installed.
    run = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run([sys.executable, "-c", code], **run)  # type: ignore[call-overload]
    if "userfaultfd" in done.stderr and os.environ.get("REQUIRE_ALL") != "1":
        pytest.skip(done.stderr)
    # The engine's tables take some 3 % of the limit.
    assert 15 * MIB < int(done.stdout) < 18 * MIB, done.stderr


def test_operations_of_numpy_run_on_such_arrays(engine: tidemark.Engine) -> None:
    rng = np.random.default_rng(5)
    array = engine.zeros(500_000)
    array[:] = rng.random(array.size)
    plain = np.array(array)
    np.add(array, 1, out=array)
    array.sort()
    assert (array == np.sort(plain + 1)).all()
    left = engine.zeros((300, 300))
    left[:] = plain[: left.size].reshape(left.shape)
    product = engine.zeros(left.shape)
    np.matmul(left, left.T, out=product)
    assert np.allclose(product, np.array(left) @ np.array(left).T)


def test_threads_wait_for_pages_without_stopping_each_other(engine: tidemark.Engine) -> None:
    array = engine.zeros((4, MIB), np.uint8)

    def walk(row: int) -> None:
        for turn in range(1, 4):
            array[row] = turn
            assert (array[row] == turn).all()

    threads = [threading.Thread(target=walk, args=(row,)) for row in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert (array == 3).all()


def test_space_comes_back_with_the_last_part_of_an_array(engine: tidemark.Engine) -> None:
    array = engine.zeros(40 * MIB, np.uint8)
    part = array[:10]
    with pytest.raises(MemoryError, match="are left of memory and swap"):
        engine.zeros(40 * MIB, np.uint8)
    del array
    with pytest.raises(MemoryError):
        engine.zeros(40 * MIB, np.uint8)
    del part
    assert engine.zeros(40 * MIB, np.uint8).nbytes == 40 * MIB
    assert engine.statistics().region_bytes == 0


def test_space_of_arrays_that_only_name_each_other_is_found(engine: tidemark.Engine) -> None:
    for _ in range(5):
        circle: list[object] = [engine.zeros(40 * MIB, np.uint8)]
        circle.append(circle)
        del circle


def test_a_limit_holds_for_arrays_made_within_it(engine: tidemark.Engine, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="memory_limit"):
        tidemark.zeros(10)
    with tidemark.memory_limit("2M", swap=tmp_path, swap_size="64M") as outer:
        array = tidemark.zeros(MIB)
        with tidemark.memory_limit("1M", swap=tmp_path, swap_size="64M") as inner:
            tidemark.empty(MIB, np.uint8)[:] = 1
        array[:] = 3
        assert outer.statistics().page_outs > 0 == inner.statistics().region_bytes
    assert array.sum() == 3 * MIB
    assert engine.statistics().faults == 0


def test_a_part_is_read_ahead_and_advised(engine: tidemark.Engine) -> None:
    array = engine.zeros((2, MIB), np.uint8)
    array[:] = 1
    tidemark.advise(array[0], "sequential")
    tidemark.advise(array[::-1, ::-2], "random")
    tidemark.prefetch(array[0, : MIB // 16])
    assert (array == 1).all()
    for other in [np.zeros(3), np.array(array)]:
        with pytest.raises(ValueError, match="not one of"):
            tidemark.prefetch(other)
    with pytest.raises(ValueError, match="`backwards`; needs normal, sequential"):
        tidemark.advise(array, "backwards")


def test_a_forked_child_has_neither_arrays_nor_engine(engine: tidemark.Engine) -> None:
    array = engine.zeros(MIB, np.uint8)
    array[:] = 5
    child = os.fork()
    if child == 0:
        try:
            engine.statistics()
            os._exit(1)
        except RuntimeError:
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)
            os._exit(int(array[0]) + 100)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV
    assert (array == 5).all()


def test_an_array_that_a_forked_child_lets_go_of_takes_nothing_of_the_child_s(
    engine: tidemark.Engine,
) -> None:
    array = engine.zeros(48 * MIB, np.uint8)
    start, end = array.ctypes.data, array.ctypes.data + array.nbytes
    child = os.fork()
    if child == 0:
        # The child's own memory comes to lie where the array is not mapped.
        own = [np.ones(24 * MIB, np.uint8) for _ in range(40)]
        if not any(start <= other.ctypes.data < end for other in own):
            os._exit(2)
        del array
        os._exit(0 if all(other.all() for other in own) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"memory": 1000}, "`memory` is 1000 bytes"),
        ({"memory": "much"}, "`memory much`: not a size"),
        ({"memory": -1}, "`memory` is -1"),
        ({"memory": "1M", "policy": "opt"}, "no policy called `opt` can run live"),
        ({"memory": "1M", "swap_size": "1"}, "`swap_size` is 1 bytes"),
    ],
)
def test_a_bad_setting_names_itself(arguments: dict[str, int | str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tidemark.Engine(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"memory": 1.5}, "`memory` is 1.5; needs a whole number"),
        ({"memory": None}, "`memory` is None; needs a whole number"),
        ({"memory": "1M", "policy": 3}, "`policy` is 3; needs text"),
        ({"memory": "1M", "swap": 5}, "`swap` is 5; needs a path"),
        ({"memory": "1M", "swap_size": []}, r"`swap_size` is \[\]; needs a whole number"),
    ],
)
def test_a_setting_of_another_type_names_itself(
    arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        tidemark.Engine(**arguments)  # type: ignore[arg-type]


def test_arguments_of_another_type_name_themselves(engine: tidemark.Engine, path: Path) -> None:
    wrong: Any
    for wrong in ("x", None, 2.5, [2, "x"]):
        with pytest.raises(TypeError, match="`shape` is .*; needs whole numbers"):
            engine.zeros(wrong)
    wrong = 5
    with pytest.raises(TypeError, match="`advice` is 5; needs text"):
        tidemark.advise(engine.zeros(3), wrong)
    with pytest.raises(TypeError, match="`url` is 5; needs text"):
        engine.from_store(wrong)
    with pytest.raises(TypeError, match="`path` is 5; needs a path"):
        engine.open(wrong)
    wrong = 1.5
    with pytest.raises(TypeError, match="`offset` is 1.5; needs a whole number"):
        engine.open(path, offset=wrong)
    with pytest.raises(ValueError, match="`offset` is .*; needs a number of bytes"):
        engine.open(path, offset=1 << 70)


def test_a_shape_may_be_whole_numbers_of_numpy(engine: tidemark.Engine) -> None:
    count: Any = np.int64(5)
    assert engine.zeros(count).shape == (5,)
    assert engine.zeros((count, count)).shape == (5, 5)
    assert engine.zeros(np.array([2, 3])).shape == (2, 3)  # type: ignore[arg-type]


def test_a_bad_shape_names_itself(engine: tidemark.Engine) -> None:
    with pytest.raises(ValueError, match="needs one without Python objects"):
        engine.zeros(3, object)
    with pytest.raises(ValueError, match="needs sizes from 0 on"):
        engine.zeros((3, -1))
    with pytest.raises(MemoryError, match="`shape` is"):
        engine.zeros((1 << 40, 1 << 40))
    assert engine.zeros((3, 0)).shape == (3, 0)


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(OSError, match="`/nowhere/at/all`"):
        tidemark.Engine("1M", swap="/nowhere/at/all")
