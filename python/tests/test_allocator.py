"""Arrays that numpy makes within a limit: within it, and the same as without."""

from __future__ import annotations

import contextvars
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tidemark

MIB = 1 << 20
MEMORY = 8 * MIB


@pytest.fixture
def limit(engine: tidemark.Engine, tmp_path: Path) -> Iterator[tidemark.Engine]:
    """A limit of 8 MiB, in force."""
    with tidemark.memory_limit(MEMORY, swap=tmp_path, swap_size="256M") as limit:
        yield limit


def test_temporaries_of_an_expression_are_limited(limit: tidemark.Engine) -> None:
    size = 4 * MEMORY // 8
    array = np.arange(size, dtype=float)
    assert limit.statistics().region_bytes == array.nbytes
    result = np.sqrt(array * 2 + 1) - array[::-1] / 3
    counted = limit.statistics()
    assert counted.region_bytes == 2 * array.nbytes
    assert counted.page_outs > 5000 and counted.resident_bytes <= limit.memory
    for start in range(0, size, 50_000):
        some = np.arange(start, min(start + 50_000, size), dtype=float)
        assert (result[start : start + 50_000] == np.sqrt(some * 2 + 1) - (size - 1 - some) / 3).all()
    del array, result
    assert limit.statistics().region_bytes == 0


@pytest.mark.parametrize("policy", ["tidemark", "mach86", "fifo", "clock", "osf-mk", "gnumach"])
def test_random_programs_go_in_lockstep_with_plain_numpy(
    engine: tidemark.Engine, tmp_path: Path, policy: str
) -> None:
    def run(rng: np.random.Generator) -> Iterator[float]:
        arrays = [rng.random(int(rng.integers(1, 500_000))) for _ in range(6)]
        for _ in range(40):
            index, other = rng.integers(len(arrays), size=2)
            one, two = arrays[index], arrays[other]
            size = min(one.size, two.size)
            match rng.integers(8):
                case 0:
                    arrays[index] = one[:size] * 2 + two[:size]
                case 1:
                    arrays[index] = np.concatenate([one[: size // 2], two])[:500_000]
                case 2:
                    arrays[index] = np.sort(one)
                case 3:
                    one = arrays[index] = one.copy()
                    one.resize(int(rng.integers(1, 500_000)), refcheck=False)
                case 4:
                    arrays[index] = np.zeros(int(rng.integers(1, 500_000)))
                    arrays[index][::7] = 3
                case 5:
                    arrays[index] = np.fromiter((n * 0.5 for n in range(150_000)), float)
                case 6:
                    arrays[index] = pickle.loads(pickle.dumps(one))
                case _:
                    arrays[index] = one[one > one.mean()]
                    arrays[index] = np.append(arrays[index], 1.0)
            yield float(arrays[index].sum())

    plain = list(run(np.random.default_rng(11)))
    with tidemark.memory_limit("2M", policy=policy, swap=tmp_path, swap_size="128M") as limit:
        limited = list(run(np.random.default_rng(11)))
        counted = limit.statistics()
    assert limited == plain
    assert counted.region_bytes == 0 and counted.page_outs > 1000


def test_arrays_outlive_the_limit_and_go_back_to_it(engine: tidemark.Engine, tmp_path: Path) -> None:
    with tidemark.memory_limit("1M", swap=tmp_path, swap_size="64M") as limit:
        array = np.ones(MIB)
        with tidemark.memory_limit("2M", swap=tmp_path, swap_size="64M") as inner:
            other = np.ones(MIB) * 2
        third = array * 3
    after = np.ones(MIB)
    assert inner.statistics().region_bytes == 8 * MIB
    assert limit.statistics().region_bytes == 16 * MIB
    del inner
    assert (array + other + third == 6 * after).all()
    array.resize(2 * MIB, refcheck=False)
    assert array[: MIB].all() and not array[MIB:].any()
    assert limit.statistics().region_bytes == 24 * MIB
    array.resize(1000, refcheck=False)
    assert array.all()
    del other, third
    assert limit.statistics().region_bytes == 0


def test_small_arrays_are_ordinary_ones(limit: tidemark.Engine) -> None:
    kept = [np.ones(1000) for _ in range(100)]
    assert limit.statistics().region_bytes == 0
    for array in kept:
        array.resize(200_000, refcheck=False)
    assert limit.statistics().region_bytes == 100 * (200_000 * 8 // 4096 + 1) * 4096
    assert all(array[:1000].all() and not array[1000:].any() for array in kept)


def test_what_does_not_fit_is_refused_and_nothing_is_lost(limit: tidemark.Engine) -> None:
    array = np.ones(16 * MIB, np.uint8)
    with pytest.raises(MemoryError):
        np.ones(300 * MIB, np.uint8)
    with pytest.raises(MemoryError):
        np.ones(1 << 60, np.uint8)
    with pytest.raises(MemoryError):
        array.resize(1 << 50, refcheck=False)
    assert array.all() and limit.statistics().region_bytes == 16 * MIB
    circle: list[object] = [array]
    circle.append(circle)
    del array, circle
    gc.collect()
    assert limit.statistics().region_bytes == 0


def test_threads_begin_without_and_can_have_a_limit(limit: tidemark.Engine) -> None:
    made: list[npt.NDArray[Any]] = []

    def make() -> None:
        made.append(np.ones(MIB))

    def make_within() -> None:
        with tidemark.memory_limit(limit) as same:
            assert same is limit
            for turn in range(20):
                array = np.full(MIB // 4, turn)
                assert (array + array == 2 * turn).all()
            made.append(array)

    def join(*bodies: Callable[[], object]) -> None:
        threads = [threading.Thread(target=body) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
            assert not thread.is_alive()

    join(make)
    assert limit.statistics().region_bytes == 0
    context = contextvars.copy_context()
    join(lambda: context.run(make))
    assert limit.statistics().region_bytes == 8 * MIB
    join(*[make_within] * 4)
    assert limit.statistics().region_bytes == 16 * MIB
    made.clear()
    del context
    assert limit.statistics().region_bytes == 0


def test_a_forked_child_makes_ordinary_arrays(limit: tidemark.Engine) -> None:
    array = np.ones(4 * MIB)
    child = os.fork()
    if child == 0:
        # Some come to lie where those of the parent are not mapped.
        own = [np.full(4 * MIB, number) for number in range(20)]
        own = [other + 1 for other in own]
        before = resident()
        del array
        for other in own:
            other.resize(5 * MIB, refcheck=False)
        are_right = all((a[: 4 * MIB] == n + 1).all() for n, a in enumerate(own))
        del own, other
        is_given_back = resident() < before // 4
        os._exit(0 if are_right and is_given_back else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert array.all()


@pytest.mark.parametrize("way", ["spawn", "fork"])
def test_processes_get_arrays_as_copies(limit: tidemark.Engine, way: str) -> None:
    parts = [np.full(MIB // 4, number) for number in range(4)]
    with multiprocessing.get_context(way).Pool(2) as pool:
        # A function that the other process can import.
        results = pool.map_async(np.square, parts).get(timeout=60)
    assert all((a == n * n).all() for n, a in enumerate(results))
    # Results arrive in a thread of the pool, which has no limit.
    assert limit.statistics().region_bytes == 4 * 2 * MIB


@pytest.mark.parametrize("has_thread", [False, True])
def test_a_process_ends_with_arrays_in_use(
    engine: tidemark.Engine, tmp_path: Path, has_thread: bool
) -> None:
    code = f"""
import numpy as np, tidemark, threading
limit = tidemark.memory_limit("1M", swap={str(tmp_path)!r}, swap_size="64M")
limit.__enter__()
kept = np.ones(1 << 20)
class Last:
    def __init__(self):
        self.array = kept
    def __del__(self):
        self.array = self.array + 1
        print(self.array[0], flush=True)
last = Last()
def walk():
    while True:
        last.array + 1
if {has_thread}:
    threading.Thread(target=walk, daemon=True).start()
"""
    run = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run([sys.executable, "-c", code], **run)  # type: ignore[call-overload]
    # What a thread still uses, Python does not let go of.
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if has_thread else "2.0\n")


def test_the_machine_counts_no_more_memory_than_the_limit(
    engine: tidemark.Engine, tmp_path: Path
) -> None:
    code = f"""
import numpy as np, tidemark, threading
def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) << 10
before = most = anonymous()
is_over = threading.Event()
def watch():
    global most
    while not is_over.wait(0.001):
        most = max(most, anonymous())
watcher = threading.Thread(target=watch)
watcher.start()
with tidemark.memory_limit("16M", swap={str(tmp_path)!r}, swap_size="256M"):
    a = np.arange(6 << 20, dtype=float)
    b = np.sqrt(a * 2 + 1) - a[::-1] / 3
    c = a[::-1] % 1000
    del b
    c.sort()
is_over.set()
watcher.join()
print(most - before)
"""
    run = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run([sys.executable, "-c", code], **run)  # type: ignore[call-overload]
    # A thread that watches takes some memory that a limit of this size notices.
    assert 15 * MIB < int(done.stdout) < 16 * MIB * 1.05 + MIB, done.stdout + done.stderr


def test_memory_beside_arrays_counts_up_to_a_quarter(
    engine: tidemark.Engine, tmp_path: Path
) -> None:
    code = f"""
import time, numpy as np, tidemark
def look(engine):
    time.sleep(0.3)
    array[:] = 1
    counted = engine.statistics()
    print(counted.resident_bytes >> 10, counted.beside_bytes >> 10)
with tidemark.memory_limit("64M", swap={str(tmp_path)!r}, swap_size="256M") as engine:
    array = np.ones(96 << 20, "u1")
    look(engine)
    text = b"x" * (4 << 20)
    look(engine)
    more = b"y" * (80 << 20)
    look(engine)
    assert (array == 1).all()
    del more
    look(engine)
"""
    run = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run([sys.executable, "-c", code], **run)  # type: ignore[call-overload]
    lines = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
    assert len(lines) == 4, done.stdout + done.stderr
    (first, tables), (second, with_text), (third, most), (last, less) = lines
    assert tables < 8 << 10 and 4 << 10 < with_text - tables + 512 < 6 << 10, lines
    assert most == 16 << 10 and 46 << 10 < third <= 48 << 10, lines
    assert less < with_text + 2048 < 15 << 10 and second < first and third < last, lines


def test_a_capsule_of_something_else_is_refused() -> None:
    import datetime

    with pytest.raises(ValueError, match="`allocator` is another capsule"):
        tidemark._tidemark.set_allocator(datetime.datetime_CAPI)


def resident() -> int:
    """The bytes of memory that this process has of its own."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) << 10
    raise AssertionError("the kernel tells")
