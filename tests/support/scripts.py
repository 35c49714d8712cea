"""Python scripts as processes of their own: for what may hang, or what ends a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 120
"""Seconds after which a script is taken to hang."""


def start(folder: Path, text: str) -> subprocess.Popen[str]:
    """A script that runs; what it prints can be read."""
    path = folder / "script.py"
    path.write_text(text)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{Path(__file__).parent}"}
    pipe = subprocess.PIPE
    command = [sys.executable, "-u", str(path)]
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def output(folder: Path, text: str) -> str:
    """What a script prints. AssertionError where it fails, TimeoutExpired where it hangs."""
    process = start(folder, text)
    try:
        said, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, said
    return said
