"""The parts that several tests start from."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tidemark
from tidemark._columns import U64


@pytest.fixture(scope="session")
def pages() -> U64:
    """Some 200,000 references by Zipf's law."""
    return tidemark.generate("zipf", 200_000, pages=2000, seed=7)


@pytest.fixture(scope="session")
def trace_path(pages: U64, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of those references with times and kinds."""
    path = tmp_path_factory.mktemp("traces") / "zipf.tide"
    time = np.cumsum(np.arange(len(pages), dtype=np.uint64) % 7 + 1)
    kinds = np.where(pages % 3 == 0, tidemark.Kinds.STORE, tidemark.Kinds.LOAD)
    records = tidemark.write(path, pages, time=time, kinds=kinds, command=["made", "up"])
    assert records == len(pages)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 4 MiB and a bit at random."""
    made = tmp_path / "data.bin"
    made.write_bytes(np.random.default_rng(3).bytes((4 << 20) + 1000))
    return made


@pytest.fixture
def engine(tmp_path: Path) -> tidemark.Engine:
    """An engine of 1 MiB, where the kernel permits one."""
    try:
        return tidemark.Engine("1M", swap=tmp_path, swap_size="64M")
    except OSError as error:
        if "userfaultfd" in str(error) and os.environ.get("REQUIRE_ALL") != "1":
            pytest.skip(str(error))
        raise
