"""The types say what the compiled half does, and its users agree."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import tidemark

ROOT = Path(__file__).parent.parent
CONFIG = str(ROOT / "pyproject.toml")


def test_the_package_and_its_tests_are_typed(tmp_path: Path) -> None:
    run("mypy", "--cache-dir", str(tmp_path), "--config-file", CONFIG, folder=ROOT)


def test_the_stub_is_that_of_the_compiled_half(tmp_path: Path) -> None:
    # Not from the sources, which lack the compiled half.
    run("mypy.stubtest", "--mypy-config-file", CONFIG, "tidemark._tidemark", folder=tmp_path)


def test_the_examples_hold() -> None:
    tried = doctest.testmod(tidemark)
    assert tried.failed == 0
    assert tried.attempted > 2


def run(*command: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
