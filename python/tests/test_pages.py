"""The Python on README and on the guide: each page is run in order, in a folder of traces."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *(f"docs/guide/{page}.md" for page in ("python", "arrays", "sweep"))]
IS_FULL = os.environ.get("TIDEMARK_ACCEPTANCE") == "full"


def blocks(page: str) -> list[tuple[int, str]]:
    """The Python of a page, by line; what takes minutes at full size alone."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    pieces = ((text.count("\n", 0, match.start()) + 1, match[1]) for match in found)
    return [(line, code) for line, code in pieces if IS_FULL or "# minutes" not in code]


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("valgrind") is None or "TIDEMARK" not in os.environ:
        assert os.environ.get("REQUIRE_ALL") != "1", "needs the command `tidemark`, and `valgrind`"
        pytest.skip("needs the command `tidemark`, and `valgrind`")
    for trace in (ROOT / "crates/lab/tests/traces").glob("*.tide"):
        shutil.copy(trace, tmp_path)
    lines = "".join(f"{number * 7919 % 20011}\n" for number in range(20_000))
    (tmp_path / "big.txt").write_text(lines, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    pieces = blocks(page)
    assert pieces, f"{page} has no Python"
    names: dict[str, object] = {}
    for line, code in pieces:
        # As it would be typed; the line is that of the page.
        exec(compile("\n" * line + code, page, "exec"), names)
