"""Traces as columns."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow
import pytest

import tidemark
from tidemark._columns import U64


def test_what_was_written_is_read_back(trace_path: Path, pages: U64) -> None:
    trace = tidemark.read(trace_path)
    assert len(trace) == len(pages)
    np.testing.assert_array_equal(trace.page, pages)
    np.testing.assert_array_equal(np.diff(trace.time), np.arange(1, len(pages)) % 7 + 1)
    assert set(np.unique(trace.kinds)) == {tidemark.Kinds.LOAD, tidemark.Kinds.STORE}
    assert trace.page.dtype == np.uint64
    assert trace.kinds.dtype == np.uint8
    assert trace.process.dtype == np.uint32
    assert not trace.process.any()
    assert len(trace.events) == 0


def test_info_needs_no_blocks_and_agrees_with_the_records(trace_path: Path, pages: U64) -> None:
    info = tidemark.info(trace_path)
    assert info == tidemark.read(trace_path).info
    assert (info.records, info.processes, info.page_bytes) == (len(pages), 1, 4096)
    assert info.bytes == trace_path.stat().st_size
    assert (info.command, info.time_unit) == (("made", "up"), "instructions")
    assert info.cut_at is None


def test_columns_own_their_memory_and_cannot_be_written_to(trace_path: Path, pages: U64) -> None:
    page = tidemark.read(trace_path).page
    gc.collect()
    np.testing.assert_array_equal(page, pages)
    assert not page.flags.owndata and page.base is not None
    with pytest.raises(ValueError, match="read-only"):
        page[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        page.flags.writeable = True


def test_arrow_takes_columns_where_they_are(trace_path: Path) -> None:
    trace = tidemark.read(trace_path)
    table = trace.to_arrow()
    assert table.column_names == ["process", "time", "page", "kinds"]
    buffer = table["page"].chunk(0).buffers()[1]
    assert isinstance(buffer, pyarrow.Buffer)
    assert buffer.address == trace.page.ctypes.data


def test_a_trace_a_file_and_an_array_load_alike(trace_path: Path, pages: U64) -> None:
    from_file = tidemark.load(trace_path)
    from_trace = tidemark.load(tidemark.read(trace_path))
    from_array = tidemark.load(pages, time=from_file.time)
    for references in (from_file, from_trace, from_array):
        np.testing.assert_array_equal(references.names[1][references.page], pages)
        assert references.page_count == len(np.unique(pages))
        assert references.page.dtype == np.uint32
        assert references.duration == from_file.duration
        assert references.time is not None and from_file.time is not None
        np.testing.assert_array_equal(references.time, from_file.time)
    assert tidemark.load(from_file) is from_file


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint8, np.uint16, np.uint32, ">u4"])
def test_page_numbers_may_be_of_any_whole_type(kind: str) -> None:
    array = np.array([5, 3, 5, 9], dtype=kind)
    np.testing.assert_array_equal(tidemark.load(array).page, [0, 1, 0, 2])
    np.testing.assert_array_equal(tidemark.load(np.repeat(array, 2)[::2]).page, [0, 1, 0, 2])
    np.testing.assert_array_equal(tidemark.load([5, 3, 5, 9]).page, [0, 1, 0, 2])


def test_raw_words_are_mapped_and_not_read(tmp_path: Path, pages: U64) -> None:
    pages.astype("<u4").tofile(tmp_path / "pages.u32")
    mapped = np.memmap(tmp_path / "pages.u32", dtype="<u4", mode="r")
    np.testing.assert_array_equal(tidemark.load(mapped).page, tidemark.load(pages).page)


def test_a_missing_file_is_told_as_the_system_tells_it(tmp_path: Path) -> None:
    missing = tmp_path / "missing.tide"
    for use in (tidemark.read, tidemark.info, tidemark.load, tidemark.curve):
        with pytest.raises(FileNotFoundError) as caught:
            use(missing)
        assert Path(caught.value.filename) == missing
    with pytest.raises(IsADirectoryError):
        tidemark.read(tmp_path)
    with pytest.raises(OSError, match="No such file"):
        tidemark.write(tmp_path / "no" / "folder.tide", [1, 2])


def test_what_is_no_trace_is_told_in_one_line(trace_path: Path, tmp_path: Path) -> None:
    whole = trace_path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 4
    newer = bytearray(whole)
    cases = {
        "empty": b"",
        "text": b"1 2 3\n" * 100,
        "gzip": b"\x1f\x8b" + bytes(100),
        "truncated": whole[: len(whole) // 2],
        "flipped": bytes(flipped),
        "longer": bytes(newer) + b"x",
    }
    for name, content in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        for use in (tidemark.read, tidemark.load):
            with pytest.raises(ValueError, match=f"^`{path}`: ") as caught:
                use(path)
            assert "\n" not in str(caught.value), name


def test_every_truncation_is_an_error_or_a_shorter_trace(tmp_path: Path) -> None:
    path = tmp_path / "short.tide"
    tidemark.write(path, [1, 2, 3, 2, 1])
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        try:
            assert tidemark.read(path).page.tolist() in ([], [1, 2, 3, 2, 1])
        except ValueError as error:
            assert str(error).startswith(f"`{path}`: ")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"page": [1.5]}, "`page` holds float64; needs whole numbers"),
        ({"page": [-1]}, "`page` has -1; needs numbers from 0"),
        ({"page": [[1]]}, "`page` has 2 dimensions; needs 1"),
        ({"page": []}, "`page` is empty; needs at least 1 reference"),
        ({"page": [1, 2], "time": [3]}, "`time` has 1 entries; needs 2, as `page` has"),
        ({"page": [1, 2], "time": [3, 2]}, "`time` falls at entry 1; needs times that never fall"),
        ({"page": [1], "kinds": [16]}, "`kinds` is 16; needs a sum of 1, 2, 4 and 8"),
        ({"page": [1], "kinds": [256]}, "`kinds` is 256; needs a sum of 1, 2, 4 and 8"),
        ({"page": [1], "time_unit": "days"}, "`time_unit` is `days`; needs "),
        ({"page": [1], "page_bytes": 3000}, "needs a power of two"),
    ],
)
def test_columns_that_cannot_be_written_are_named(
    arguments: dict[str, object], line: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError) as caught:
        tidemark.write(tmp_path / "bad.tide", **arguments)  # type: ignore[arg-type]
    assert line in str(caught.value)


def test_other_threads_run_meanwhile() -> None:
    pages = tidemark.generate("random", 1_000_000, pages=50_000)
    turns = 0
    done = threading.Event()

    def work() -> None:
        tidemark.curve(pages, ["lru", "opt"])
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    while not done.wait(0.001):
        turns += 1
    worker.join()
    assert turns > 10


def test_the_child_of_a_fork_can_compute(pages: U64) -> None:
    expected = tidemark.curve(pages, "lru")["lru"].misses
    child = os.fork()
    if child == 0:
        same = np.array_equal(tidemark.curve(pages, "lru")["lru"].misses, expected)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
