"""Sweeps: all combinations as one table, on any executor."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidemark

COMMAND = os.environ.get("TIDEMARK")


class Counting(Executor):
    """Does what it is given at once, and counts it."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, ...]] = []

    def submit(self, job: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        self.given.append(args)
        done: Future[Any] = Future()
        try:
            done.set_result(job(*args, **named))
        except Exception as error:
            done.set_exception(error)
        return done


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """A loop, and a walk there and back."""
    made = []
    for pattern in ("loop", "sweep"):
        pages = tidemark.generate(pattern, 5000, pages=100)
        tidemark.write(tmp_path / f"{pattern}.tide", pages)
        made.append(tmp_path / f"{pattern}.tide")
    return made


@pytest.mark.parametrize("kind", [ProcessPoolExecutor, ThreadPoolExecutor])
def test_every_combination_is_a_row_with_the_misses_of_curve(
    paths: list[Path], kind: Callable[[int], Executor]
) -> None:
    with kind(2) as executor:
        found = tidemark.sweep(paths, ["lru", "opt", "ws", "fifo"], [0.5, 40], executor=executor)
    assert len(found) == 16 and found.failures == 0
    for row in found.record["rows"]:
        curve = tidemark.curve(row["trace"], row["policy"], [row["pages"]])[row["policy"]]
        assert row["misses"] == curve.misses[0]
    assert [row["memory"] for row in found.record["rows"][:2]] == ["50%", "40"]


def test_processes_count_where_no_executor_is_named(paths: list[Path]) -> None:
    found = tidemark.sweep(paths[0], "lru", 50)
    assert found.columns["misses"].tolist() == [5000]


def test_columns_are_of_one_length_and_go_to_arrow(paths: list[Path]) -> None:
    found = tidemark.sweep([*paths, "missing.tide"], ["lru", "ws"], 0.5, executor=Counting())
    columns = found.columns
    assert {len(column) for column in columns.values()} == {6}
    assert columns["mean_pages"][0] == columns["pages"][0] == 50
    assert np.isnan(columns["miss_ratio"][4]) and columns["error"][4]
    assert found.to_arrow().num_rows == 6


def test_failures_are_rows_and_the_others_go_on(paths: list[Path]) -> None:
    paths[1].write_bytes(b"no trace at all")
    found = tidemark.sweep([*paths, "missing.tide"], "lru", [10, "20"], executor=Counting())
    assert found.failures == 4
    errors = [row.get("error", "") for row in found.record["rows"]]
    assert errors[:2] == ["", ""] and errors[4] == "no such file or directory"


def test_an_executor_that_breaks_leaves_rows_with_its_error(paths: list[Path]) -> None:
    class Broken(Counting):
        def submit(self, job: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
            done: Future[Any] = Future()
            done.set_exception(MemoryError("a worker\nwas ended"))
            return done

    found = tidemark.sweep(paths[0], "lru", 10, executor=Broken())
    assert found.record["rows"][0]["error"] == "MemoryError: a worker was ended"


@pytest.mark.parametrize("name", ["table.csv", "table.json"])
def test_rows_that_are_there_are_not_counted_again(paths: list[Path], name: str) -> None:
    table = paths[0].parent / name
    first, second, third = Counting(), Counting(), Counting()
    tidemark.sweep(paths[0], "lru", 50, executor=first, output=table)
    found = tidemark.sweep(paths, "lru", [50, 60], executor=second, output=table)
    assert [args[2] for args in second.given] == [["60"], ["50", "60"]]
    assert len(found) == 4
    # One that has changed is counted again.
    tidemark.write(paths[0], tidemark.generate("loop", 9000, pages=70))
    changed = tidemark.sweep(paths, "lru", [50, 60], executor=third, output=table)
    assert [args[0] for args in third.given] == [str(paths[0])]
    assert changed.columns["references"].tolist() == [9000, 9000, 5000, 5000]


@pytest.mark.skipif(COMMAND is None, reason="needs the command")
@pytest.mark.parametrize("name", ["table.csv", "table.json"])
def test_the_command_goes_on_with_the_same_file(paths: list[Path], name: str) -> None:
    assert COMMAND is not None
    table = paths[0].parent / name
    tidemark.sweep(paths, "ws", [0.5, 60], executor=Counting(), output=table)
    asked = ["--policies", "ws", "--memory", "50%,60", "-o", str(table), "--json"]
    done = subprocess.run(
        [COMMAND, "sweep", *map(str, paths), *asked], capture_output=True, text=True, check=True
    )
    assert done.stderr == "tidemark: 4 rows, 4 of them there already\n"
    again = Counting()
    found = tidemark.sweep(paths, "ws", [0.5, 60], executor=again, output=table)
    assert not again.given and found.record["rows"] == json.loads(done.stdout)["rows"]


def test_what_can_not_be_is_refused_before_anything_is_counted(paths: list[Path]) -> None:
    executor = Counting()
    other = paths[0].parent / "other.csv"
    other.write_text("a,b\n1,2\n")
    orders: list[tuple[dict[str, Any], str]] = [
        ({"policies": "lur"}, "`lur`"),
        ({"memory": 0}, "less than a page"),
        ({"memory": 1.5}, "a share up to 1"),
        ({"memory": []}, "`memory` is empty"),
        ({"output": paths[0]}, "which is read"),
        ({"output": other}, "its first line is `a,b`"),
        ({"output": paths[1]}, "is no table of a sweep"),
    ]
    for order, told in orders:
        with pytest.raises(ValueError, match=told):
            tidemark.sweep(paths[0], executor=executor, **order)
    assert not executor.given


def test_progress_is_told_on_standard_error(
    paths: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tidemark.sweep(paths, "lru", [10, 20], executor=Counting(), progress=True)
    assert capsys.readouterr().err == "sweep: 2 of 4 rows\nsweep: 4 of 4 rows\n"
    tidemark.sweep(paths, "lru", 10, executor=Counting())
    assert capsys.readouterr().err == ""


def test_a_cluster_of_dask_counts_the_same(paths: list[Path]) -> None:
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        found = tidemark.sweep(paths, ["lru", "opt"], [10, 50], executor=client.get_executor())
    assert len(found) == 8 and found.failures == 0
    assert found.record == tidemark.sweep(
        paths, ["lru", "opt"], [10, 50], executor=Counting()
    ).record
