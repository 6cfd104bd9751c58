"""Curves, working sets, phases: against slow, obviously right counts and published ones."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import tidemark
from tidemark._columns import U64

# Published misses of the golden traces, first uses included: OPT, FIFO, LRU, CLOCK.
PUBLISHED = {
    "loop": (5100, 15000, 15000, 15000),
    "scanhot": (10050, 18434, 10052, 10051),
    "skew": (96479, 163359, 162008, 160958),
    "phase": (1600, 1600, 1600, 1889),
    "sheep": (6100, 16000, 16000, 16000),
    "mixed": (96727, 171209, 167317, 164456),
}
# Faults and mean pages in thousandths: WS and VMIN with windows 100 and 200. The published means
# of WS count a page for one tick longer than Denning's definition.
PUBLISHED_WINDOWS = {
    "loop": ((15000, 100663, 1000), (150, 149255, 148510)),
    "skew": ((165307, 91789, 9160), (138851, 167403, 28643)),
    "mixed": ((182715, 96429, 5096), (169431, 184239, 14904)),
}


def count_lru(pages: U64, frames: int) -> int:
    stack: OrderedDict[int, None] = OrderedDict()
    misses = 0
    for page in pages.tolist():
        if page in stack:
            stack.move_to_end(page)
            continue
        misses += 1
        stack[page] = None
        if len(stack) > frames:
            stack.popitem(last=False)
    return misses


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_misses_are_met(name: str) -> None:
    pages, frames = tidemark.golden(name)
    curves = tidemark.curve(pages, ["opt", "fifo", "lru", "clock"], sizes=frames)
    assert tuple(int(curve.at(frames)) for curve in curves.values()) == PUBLISHED[name]


@pytest.mark.parametrize("name", PUBLISHED_WINDOWS)
def test_published_working_sets_are_met(name: str) -> None:
    pages, _ = tidemark.golden(name)
    for at, window in enumerate((100, 200)):
        curves = tidemark.curve(pages, ["ws", "vmin"], windows=[window, window + 1])
        faults, ws_mean, vmin_mean = PUBLISHED_WINDOWS[name][at]
        ws, vmin = curves["ws"], curves["vmin"]
        assert ws.mean_pages is not None and vmin.mean_pages is not None
        assert (ws.misses[0], int(ws.mean_pages[1] * 1000)) == (faults, ws_mean)
        assert (vmin.misses[0], int(vmin.mean_pages[0] * 1000)) == (faults, vmin_mean)


def test_lru_is_exact_at_every_size(pages: U64) -> None:
    some = pages[:20_000]
    curve = tidemark.curve(some, "lru")["lru"]
    assert curve.pages.tolist() == list(range(1, len(np.unique(some)) + 1))
    for frames in (1, 2, 17, 300, len(curve)):
        assert int(curve.at(frames)) == count_lru(some, frames)
    assert curve.misses[-1] == len(np.unique(some))
    assert int(curve.at(10**9)) == curve.misses[-1]
    np.testing.assert_array_equal(curve.at([1, 17]), [curve.at(1), curve.at(17)])


@pytest.mark.parametrize("sample", [0.2, 100])
def test_estimates_are_as_near_as_they_say(pages: U64, sample: float | int) -> None:
    exact = tidemark.curve(pages, "lru")["lru"]
    sizes = [size for size in (10, 100, 300) if size <= exact.page_count]
    estimate = tidemark.curve(pages, "lru", sizes, sample=sample)["lru"]
    assert estimate.misses_error is not None and "misses_error" in estimate.columns
    assert exact.misses_error is None and "misses_error" not in exact.columns
    away = np.abs(estimate.misses.astype(float) - exact.at(sizes).astype(float))
    assert np.all(away <= 6 * estimate.misses_error + 1) and np.any(estimate.misses_error > 0)
    with pytest.raises(ValueError, match="only `lru`"):
        tidemark.curve(pages, ["lru", "opt"], sample=sample)
    with pytest.raises(ValueError, match="sample"):
        tidemark.curve(pages, "lru", sample=type(sample)(0))


def test_nothing_beats_the_optimum(pages: U64) -> None:
    # `pff` is analysed as what it is: its sizes are means, and follow from its threshold.
    every = [p.name for p in tidemark.policies() if p.sees != "future" and p.name != "pff"]
    curves = tidemark.curve(pages[:50_000], ["opt", "lru", *every], sizes=[10, 100, 700])
    for name, curve in curves.items():
        assert curve.pages.tolist() == [10, 100, 700], name
        assert np.all(curve.misses >= curves["opt"].misses), name


def test_working_set_and_vmin_have_the_same_faults(trace_path: Path) -> None:
    curves = tidemark.curve(trace_path, ["ws", "vmin"], windows=[1, 10, 1000, 100_000])
    ws, vmin = curves["ws"], curves["vmin"]
    assert ws.misses.tolist() == vmin.misses.tolist()
    assert ws.mean_pages is not None and vmin.mean_pages is not None
    assert np.all(vmin.mean_pages <= ws.mean_pages)
    at = tidemark.curve(trace_path, "ws", sizes=[50, 500])["ws"]
    assert at.mean_pages is not None and np.all(at.mean_pages <= [50, 500])


def test_columns_go_below_each_other(pages: U64) -> None:
    curves = tidemark.curve(pages, ["lru", "ws"], sizes=[10, 20])
    columns = curves.columns
    assert columns["policy"].tolist() == ["lru", "lru", "ws", "ws"]
    assert columns["misses"].tolist()[:2] == curves["lru"].misses.tolist()
    assert {len(column) for column in columns.values()} == {4}
    table = curves.to_arrow()
    assert table["misses"].to_pylist() == columns["misses"].tolist()


def test_a_working_set_over_time_adds_up(trace_path: Path) -> None:
    references = tidemark.load(trace_path)
    short, long = tidemark.working_set(references, [100, 10_000], pieces=50)
    assert len(short) == 50
    assert int(short.duration.sum()) == references.duration
    assert np.all(short.pages_min <= short.pages_mean)
    assert np.all(short.pages_mean <= short.pages_max)
    assert short.peak == short.pages_max.max()
    assert short.mean < long.mean
    curve = tidemark.curve(references, "ws", windows=100)["ws"]
    assert int(short.faults.sum()) == int(curve.misses[0])
    assert curve.mean_pages is not None
    assert short.mean == pytest.approx(curve.mean_pages[0])
    weighted = np.average(short.pages_mean, weights=short.duration)
    assert short.mean == pytest.approx(weighted)
    one = tidemark.working_set(references, 100, pieces=50)
    np.testing.assert_array_equal(one.pages_max, short.pages_max)


def test_phases_of_a_phased_program_are_found() -> None:
    pages = tidemark.generate("phased", 50_000, phases=5, pages=40, seed=3)
    found = tidemark.phases(pages)
    level = (found.level_min <= 40) & (40 <= found.level_max)
    assert level.sum() == 5
    assert found.pages[level].tolist() == [40] * 5
    starts = found.start[level].astype(np.int64)
    assert np.all(np.abs(starts - np.arange(5) * 10_000) < 500)


def test_memory_needed_falls_with_patience(trace_path: Path) -> None:
    hasty = {need.policy: need for need in tidemark.needed(trace_path, slow_down=0.01)}
    patient = {need.policy: need for need in tidemark.needed(trace_path, slow_down=1.0, page_in_ns=100.0)}
    assert list(hasty) == ["lru", "opt", "ws", "vmin"]
    for name, need in patient.items():
        assert need.slow_down <= 1.0
        assert need.pages_mean <= hasty[name].pages_mean
        assert (need.window is None) == (name in ("lru", "opt"))
    assert patient["opt"].pages_max <= patient["lru"].pages_max
    assert patient["vmin"].pages_mean <= patient["ws"].pages_mean


def test_the_knee_of_a_loop_is_its_length() -> None:
    curves = tidemark.curve(tidemark.generate("loop", 10_000, pages=60), ["lru", "ws"])
    knee = curves["lru"].knee()
    assert knee is not None and knee.pages == 60
    assert knee.lifetime == pytest.approx(10_000 / 60)
    around = curves["ws"].knee()
    assert around is not None and around.window in range(59, 61)


def test_patterns_are_the_same_everywhere() -> None:
    assert tidemark.generate("sweep", 7, pages=3).tolist() == [0, 1, 2, 2, 1, 0, 0]
    assert tidemark.golden("skew")[0][:6].tolist() == [104, 484, 319, 59, 492, 805]
    zipf = tidemark.generate("zipf", 1000, seed=5)
    np.testing.assert_array_equal(zipf, tidemark.generate("zipf", 1000, seed=5))
    assert not np.array_equal(zipf, tidemark.generate("zipf", 1000, seed=6))


def test_nothing_has_no_curve() -> None:
    nothing = tidemark.load(np.zeros(0, dtype=np.uint64))
    curves = tidemark.curve(nothing, ["lru", "opt", "ws", "vmin", "pff", "fifo", "clock", "mach3"])
    assert all(not curve.misses.any() for curve in curves.values())
    assert curves["lru"].knee() is None
    assert len(tidemark.phases(nothing)) == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"policies": "clokc"}, "no policy is called `clokc`; did you mean `clock`?"),
        ({"policies": "quux"}, "no policy is called `quux`; `tidemark.policies()` lists them"),
        ({"policies": "fifo", "knobs": {"x": 1}}, "the policy has no knob `x`"),
        ({"policies": "mach3", "eyes": "shut"}, "`eyes` is `shut`; needs `bits` or `soft-faults`"),
        ({"policies": "lru", "sizes": [0]}, "`sizes` is 0; needs at least 1 page"),
        ({"policies": "lru", "sizes": [-3]}, "`sizes` has -3; needs numbers from 0"),
        ({"policies": "ws", "windows": [0.5]}, "`windows` holds float64; needs whole numbers"),
    ],
)
def test_wrong_questions_are_named(arguments: dict[str, object], line: str) -> None:
    with pytest.raises(ValueError) as caught:
        tidemark.curve([1, 2, 3, 1], **arguments)  # type: ignore[arg-type]
    assert line in str(caught.value)


def test_wrong_amounts_are_named() -> None:
    pages = [1, 2, 3, 1]
    with pytest.raises(ValueError, match="`pieces` is 0; needs at least 1"):
        tidemark.working_set(pages, 5, pieces=0)
    with pytest.raises(ValueError, match="`window` is -1; needs a length of time from 1"):
        tidemark.working_set(pages, -1)
    with pytest.raises(ValueError, match="`slow_down` is -1; needs a number above 0"):
        tidemark.needed(pages, slow_down=-1.0)
    with pytest.raises(ValueError, match="`pages_max` is 0; needs at least 1 page"):
        tidemark.phases(pages, pages_max=0)
    with pytest.raises(ValueError, match="`seed` is -1; needs a whole number from 0"):
        tidemark.generate("zipf", seed=-1)
    with pytest.raises(ValueError, match="`exponent` is NaN; needs 0 to 10"):
        tidemark.generate("zipf", 10, exponent=float("nan"))
    with pytest.raises(MemoryError, match="no room for"):
        tidemark.generate("loop", 2**62)
    with pytest.raises(ValueError, match="`pages` is 1.5; the curve has no such point"):
        tidemark.curve([1, 2, 3, 1], "fifo", sizes=[1, 2])["fifo"].at(1.5)


def test_found_m11_arguments_that_mean_something_else_are_refused(pages: U64) -> None:
    with pytest.raises(ValueError, match="`window` is 0; needs a length of time from 1"):
        tidemark.working_set(pages, 0)
    with pytest.raises(ValueError, match="`slow_down` is 10; .* at most 1: 0.1 is 10 %"):
        tidemark.needed(pages, slow_down=10)
    with pytest.raises(ValueError, match="did you mean `vmin`"):
        tidemark.curve(pages, "vimn", sizes=[10])


def test_found_m11_results_can_be_pickled(pages: U64, trace_path: Path) -> None:
    curves = tidemark.curve(pages, ["lru", "ws"])
    again = pickle.loads(pickle.dumps(curves))
    assert list(again) == list(curves)
    assert np.array_equal(again["lru"].misses, curves["lru"].misses)
    for source in (pages, trace_path):
        references = tidemark.load(source)
        restored = pickle.loads(pickle.dumps(references))
        assert restored.duration == references.duration
        assert restored.granularity == references.granularity
        assert np.array_equal(restored.names[1], references.names[1])
        for one, other in zip(
            tidemark.curve(references, ["opt", "ws"]).values(),
            tidemark.curve(restored, ["opt", "ws"]).values(),
            strict=True,
        ):
            assert np.array_equal(one.misses, other.misses)
    trace = tidemark.read(trace_path)
    restored = pickle.loads(pickle.dumps(trace))
    assert np.array_equal(restored.page, trace.page) and restored.info == trace.info
    assert restored.events.kind == trace.events.kind
    assert tidemark.load(restored).page_count == tidemark.load(trace).page_count


def test_found_m11_results_are_shown_in_a_line(pages: U64, trace_path: Path) -> None:
    shown = [
        tidemark.curve(pages, "lru"),
        tidemark.curve(pages, "lru")["lru"],
        tidemark.load(pages),
        tidemark.read(trace_path),
        tidemark.working_set(pages, 100),
        tidemark.phases(pages),
    ]
    for one in shown:
        assert len(repr(one)) < 700 and "\n" not in repr(one), repr(one)
    assert repr(tidemark.load(pages)).startswith("References(page=<200000 uint32>, ")
    assert repr(shown[0]) == "Curves(curves=<lru>)"


def test_found_m11_documentation_tells_what_is_returned() -> None:
    for name in tidemark.__all__:
        one = getattr(tidemark, name)
        if isinstance(one, type(tidemark.curve)):
            documentation = one.__doc__ or ""
            assert "eturns" in documentation, name


def test_found_b13_a_policy_may_be_a_file_in_text_form(tmp_path: Path) -> None:
    pages, _ = tidemark.golden("mixed")
    module = Path(__file__).parents[2] / "docs/guide/policies/clock.wat"
    own = tidemark.curve(pages, str(module), sizes=[100])
    clock = tidemark.curve(pages, "clock", sizes=[100])["clock"]
    assert own[str(module)].misses.tolist() == clock.misses.tolist()
    wrong = tmp_path / "wrong.wat"
    wrong.write_text("(module)")
    with pytest.raises(ValueError, match="wrong.wat") as caught:
        tidemark.curve(pages, str(wrong), sizes=[100])
    assert "PosixPath" not in str(caught.value)


def test_found_c_messages_show_paths_as_text(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        tidemark.load(tmp_path / "none.tide")
    assert "PosixPath" not in str(caught.value)
    assert str(tmp_path / "none.tide") in str(caught.value)
