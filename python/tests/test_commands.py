"""Commands on real programs: what they leave, and what can't be done in one line."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tidemark


def command() -> str:
    """The command that was built, or a reason to skip."""
    found = os.environ.get("TIDEMARK") or shutil.which("tidemark")
    if found is None or shutil.which("valgrind") is None:
        assert os.environ.get("REQUIRE_ALL") != "1", "needs the command `tidemark`, and `valgrind`"
        pytest.skip("needs the command `tidemark`, and `valgrind`")
    return found


def script(folder: Path, text: str) -> str:
    """A program in place of the command."""
    path = folder / "tidemark"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_program_is_recorded_and_its_trace_analysed(tmp_path: Path) -> None:
    command()
    path = tmp_path / "true.tide"
    done = tidemark.record(["sh", "-c", "exit 3"], path, quantum=5000)
    assert done.path == str(path) and done.status == 3
    assert done.info.records == len(tidemark.load(path)) > 20
    again = tidemark.record(["true"], path)
    assert again.status == 0 and (tmp_path / "true.tide.old").exists()


def test_curves_of_programs_that_end_are_those_of_the_command(tmp_path: Path) -> None:
    command()
    path, sizes = tmp_path / "two.tide", [30, 60, 90, 120]
    words = ["sh", "-c", "/bin/true; /bin/echo two; /bin/true"]
    tidemark.record(words, path, quantum=1000)
    names = ["lru", "opt", "fifo", "clock", "mach86", "ws"]
    at = ",".join(map(str, sizes))
    asked = ["curve", "--json", "--policies", ",".join(names), "--at", at, str(path)]
    done = subprocess.run([command(), *asked], check=True, capture_output=True, timeout=60)
    told = json.loads(done.stdout)
    assert told["trace"]["processes"] > 2
    references = tidemark.load(path)
    again = pickle.loads(pickle.dumps(references))
    for loaded in [references, again, tidemark.load(tidemark.read(path))]:
        found = tidemark.curve(loaded, names, sizes)
        for curve in told["curves"]:
            misses = [point["misses"] for point in curve["points"]]
            assert found[curve["policy"]].misses.tolist() == misses, curve["policy"]


def test_what_the_command_refuses_is_its_line(tmp_path: Path) -> None:
    command()
    with pytest.raises(RuntimeError, match="`no-such-program`: no such program"):
        tidemark.record(["no-such-program"], tmp_path / "none.tide")
    with pytest.raises(RuntimeError, match="--runs 0"):
        tidemark.compare(["true"], "16M", runs=0)


def test_a_comparison_has_a_row_for_each_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = [{"page_ins": number, "elapsed_s": number / 2} for number in (30, 10, 20)]
    cases = [
        {
            "policy": policy, "memory_bytes": 4 << 20, "optimal_page_ins": 5,
            "predicted": counts[0], "predictions": counts, "live": counts,
            "decisions": {"predicted": 3, "live": 3, "first_difference": difference},
        }
        for policy, difference in [("clock", None), ("tidemark", {"line": 2})]
    ]
    printed = json.dumps({"schema": "tidemark.compare.v1", "cases": cases})
    (tmp_path / "printed").write_text(printed)
    text = f'cd {tmp_path}; echo "$@" > words; echo tidemark: recording >&2; cat printed; exit 1'
    monkeypatch.setenv("TIDEMARK", script(tmp_path, text))
    memory: list[float | int | str] = [0.5, 4096, "16M"]
    found = tidemark.compare(["sort", "a b"], memory, ["clock", "tidemark"], runs=3, in_step=True)
    words = (tmp_path / "words").read_text().strip()
    assert words == (
        "compare --json --memory 50%,4096,16M --policy clock,tidemark --runs 3 --in-step"
        " -- sort a b"
    )
    assert len(found) == 2 and not found.is_alike
    columns = found.columns
    assert columns["policy"].tolist() == ["clock", "tidemark"]
    assert columns["predicted_page_ins"].tolist() == [30, 30]
    assert columns["live_page_ins"].tolist() == [20, 20]
    assert columns["live_elapsed_s"].dtype == np.float64


def test_a_program_that_leaves_no_trace_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK", script(tmp_path, "echo 'tidemark: it is late' >&2; exit 2"))
    old = tmp_path / "old.tide"
    old.write_bytes(b"as it was")
    with pytest.raises(RuntimeError, match="^it is late$"):
        tidemark.record(["true"], old)
    with pytest.raises(RuntimeError, match="^it is late$"):
        tidemark.compare(["true"], 0.5)
    monkeypatch.setenv("TIDEMARK", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="no command"):
        tidemark.record(["true"], old)
    commands: list[str | list[str]] = ["sort big.txt", []]
    for wrong in commands:
        with pytest.raises(ValueError, match="list of words"):
            tidemark.record(wrong, old)
    with pytest.raises(ValueError, match="`memory` has -1"):
        tidemark.compare(["true"], -1)


VISITS = """object,visit,bytes
1,a,100
2,a,50
1,b,100
3,b,70
2,c,50
1,c,100
"""


def test_a_cache_of_visits_is_counted_by_the_command(tmp_path: Path) -> None:
    found = os.environ.get("TIDEMARK") or shutil.which("tidemark")
    if found is None:
        assert os.environ.get("REQUIRE_ALL") != "1", "needs the command `tidemark`"
        pytest.skip("needs the command `tidemark`")
    visits, trace = tmp_path / "visits.csv", tmp_path / "visits.tide"
    visits.write_text(VISITS)
    columns = ["--from", "csv", "--columns", "page=object,visit=visit,bytes=bytes"]
    subprocess.run([found, "import", visits, "-o", trace, *columns], check=True, timeout=60)
    rows = tidemark.batch(trace, "lru", [0.8, 1.0])
    assert rows.record["unit"] == "bytes" and rows.record["visits"] == 3 and len(rows) == 2
    assert list(rows.columns["policy"]) == ["lru", "lru"]
    assert list(rows.columns["room"]) == [176, 220]
    # Three objects do not fit in 176 bytes: the one that was not used lately leaves, and misses.
    assert list(rows.columns["misses"]) == [4, 3]
    assert rows.columns["miss_ratio"][1] == 0.5
    assert len(tidemark.batch(trace)) > 2
    with pytest.raises(ValueError, match="`sizes` has 0"):
        tidemark.batch(trace, "lru", 0)
    plain = tmp_path / "plain.tide"
    tidemark.write(plain, np.arange(9, dtype=np.uint64))
    with pytest.raises(RuntimeError, match="the trace has no visits"):
        tidemark.batch(plain)
