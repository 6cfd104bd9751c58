"""Replays: rows for runs, the same as the command's, and errors in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tidemark


def test_a_replay_has_a_row_for_each_run(trace_path: Path) -> None:
    replays = tidemark.replay(trace_path, [0.2, 500, 1.0], ["clock", "tidemark"])
    columns = replays.columns
    assert len(replays) == 6 and replays.record["schema"] == "tidemark.replay.v1"
    assert columns["system"].tolist() == ["clock"] * 3 + ["tidemark"] * 3
    memory = columns["memory_bytes"] // 4096
    assert memory.tolist()[:3] == sorted(memory.tolist()[:3]) and 500 in memory
    assert np.all(columns["page_ins"] >= columns["optimal_page_ins"])
    assert columns["elapsed_s"].dtype == np.float64 and np.all(columns["user_s"] > 0)
    again = tidemark.replay(trace_path, [0.2, 500, 1.0], ["clock", "tidemark"])
    assert again.record == replays.record


def test_time_lines_are_there_when_asked_for(trace_path: Path) -> None:
    (run,) = tidemark.replay(trace_path, 400, "fifo", time_lines=True).record["runs"]
    line = run["time_line"]
    assert len(line["time_s"]) == len(line["free"]) == len(line["resident"][0]) > 10


def test_two_programs_at_the_same_time(trace_path: Path) -> None:
    replays = tidemark.replay([trace_path, trace_path], 0.5, "clock", copies=2, processors=2)
    assert len(replays.record["runs"][0]["programs"]) == 4


def test_systems_are_listed() -> None:
    names = [system.name for system in tidemark.systems()]
    assert {"gnumach", "mach3", "tidemark"} <= set(names)


def test_what_can_not_be_replayed_is_one_line(trace_path: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="did you mean `clock`"):
        tidemark.replay(trace_path, 100, "clokc")
    with pytest.raises(ValueError, match="`disk` is `drum`"):
        tidemark.replay(trace_path, 100, disk="drum")
    with pytest.raises(ValueError, match="`memory` is 3 pages"):
        tidemark.replay(trace_path, 3)
    with pytest.raises(ValueError, match="`memory` is 0"):
        tidemark.replay(trace_path, 0)
    with pytest.raises(ValueError, match="no policy is called `zz`"):
        tidemark.replay(trace_path, 100, policy="zz")
    with pytest.raises(ValueError, match="did you mean `mach3`"):
        tidemark.replay(trace_path, 100, policy="mach33")
    with pytest.raises(ValueError, match="`copies` is 0"):
        tidemark.replay(trace_path, 100, copies=0)
    with pytest.raises(OSError):
        tidemark.replay(tmp_path / "none.tide", 100)


def test_memory_is_divided_by_the_rule_that_is_named(trace_path: Path) -> None:
    by_rule = [
        tidemark.replay(
            [trace_path, trace_path], 0.3, managed=True, compressed=3, division=rule, processors=2
        ).record["runs"]
        for rule in ("demand", "global", "demand")
    ]
    assert by_rule[0] == by_rule[2] != by_rule[1]
    with pytest.raises(ValueError, match="`division` is `fair`: no such division; there are: demand"):
        tidemark.replay(trace_path, 0.5, managed=True, division="fair")
    with pytest.raises(ValueError, match="`per_task_min` is 1; needs at least"):
        tidemark.replay(trace_path, 0.5, managed=True, per_task_min=1)
    with pytest.raises(ValueError, match="`division` divides .* needs `managed=True`"):
        tidemark.replay(trace_path, 0.5, division="global")


def test_systems_that_treat_files_apart_need_to_know_which_they_are(trace_path: Path) -> None:
    with pytest.raises(ValueError, match="`gnumach` treats files' pages apart, and `zipf` does not"):
        tidemark.replay(trace_path, 400, ["clock", "gnumach"])
    with pytest.raises(ValueError, match="`clock` treats files' pages apart"):
        tidemark.replay(trace_path, 400, "clock", policy="mglru")
    assert len(tidemark.replay(trace_path, 400, "gnumach", managed=True)) == 1


def test_found_m11_a_share_in_words_is_refused_in_words(trace_path: Path) -> None:
    for memory in ("50%", ["50%"], [None], True):
        with pytest.raises(ValueError, match="`memory` has .*0.5 is 50 %"):
            tidemark.replay(trace_path, memory)  # type: ignore[arg-type]
    assert len(tidemark.replay(trace_path, np.float64(0.5))) == 1
