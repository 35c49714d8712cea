"""In CI a test that skips for want of a tool fails; elsewhere, and for other reasons, it skips."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

def test_needs_a_tool():
    pytest.skip("{reason}")

@pytest.mark.skipif(True, reason="{reason}")
def test_marked():
    pass
"""
MODULE = 'import pytest\npytest.skip("{reason}", allow_module_level=True)\n'


def outcome(tmp_path: Path, reason: str, ci: str) -> dict[str, int]:
    """What pytest's last line counts: `{"failed": 1, "error": 2}`."""
    shutil.copy(Path(__file__).parents[1] / "conftest.py", tmp_path)
    (tmp_path / "test_functions.py").write_text(TESTS.format(reason=reason))
    (tmp_path / "test_module.py").write_text(MODULE.format(reason=reason))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--continue-on-collection-errors",
        tmp_path,
    ]
    done = subprocess.run(command, env=os.environ | {"CI": ci}, cwd=tmp_path, capture_output=True, text=True)
    return {word: int(number) for number, word in re.findall(r"(\d+) (failed|skipped|errors?|passed)", done.stdout)}


@pytest.mark.parametrize(
    "reason",
    ["qemu-aarch64 is not installed", "no C compiler", "needs s390x-linux-gnu-gcc", "g++ cannot link", "no cmake"],
)
def test_a_missing_tool_fails_in_ci_alone(tmp_path: Path, reason: str) -> None:
    assert outcome(tmp_path, reason, ci="true") == {"failed": 1, "errors": 2}
    assert outcome(tmp_path, reason, ci="") == {"skipped": 3}


@pytest.mark.parametrize("peer", ["torch", "rustc"])
def test_an_optional_peer_may_be_missing(tmp_path: Path, peer: str) -> None:
    assert outcome(tmp_path, f"{peer} is not installed", ci="true") == {"skipped": 3}
