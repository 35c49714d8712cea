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
TOOLS = ("qemu-aarch64 is not installed", "no C compiler", "needs s390x-linux-gnu-gcc", "g++ cannot link", "no cmake")
PEERS = ("torch is not installed", "rustc is not installed")


@pytest.mark.parametrize("ci", ["true", ""])
def test_a_missing_tool_fails_in_ci_alone_and_an_optional_peer_nowhere(tmp_path: Path, ci: str) -> None:
    for name in ("conftest.py", "support/described.py"):
        shutil.copy(Path(__file__).parents[1] / name, tmp_path)
    for number, reason in enumerate((*TOOLS, *PEERS)):
        (tmp_path / f"test_functions_{number}.py").write_text(TESTS.format(reason=reason))
        (tmp_path / f"test_module_{number}.py").write_text(MODULE.format(reason=reason))
    options = ["-q", "-rfEs", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    environment = os.environ | {"CI": ci}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, tmp_path],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    told = re.findall(r"^(FAILED|ERROR|SKIPPED \[1\]) test_(functions|module)_(\d)\.py", done.stdout, re.MULTILINE)
    failed = [("FAILED", "functions"), ("ERROR", "functions"), ("ERROR", "module")]
    skipped = [("SKIPPED [1]", "functions")] * 2 + [("SKIPPED [1]", "module")]
    for number in range(len(TOOLS + PEERS)):
        expected = failed if ci and number < len(TOOLS) else skipped
        assert sorted(told_of[:2] for told_of in told if told_of[2] == str(number)) == sorted(expected)
