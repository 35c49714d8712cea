"""Python scripts in separate processes, for code that may hang or end its process."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORKS = "ignore:This process:DeprecationWarning"
"""Python's warning of a fork beside other threads, which some scripts are about."""
PATIENCE = 120
"""Seconds after which a script is assumed to hang."""


def start(folder: Path, text: str) -> subprocess.Popen[str]:
    """A script that runs; what it prints can be read."""
    path = folder / "script.py"
    path.write_text(text)
    paths = f"{ROOT}{os.pathsep}{Path(__file__).parent}"
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONWARNINGS": FORKS}
    pipe = subprocess.PIPE
    command = [sys.executable, "-u", str(path)]
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def output(folder: Path, text: str) -> str:
    """The output of a script. Raises AssertionError if it fails, TimeoutExpired if it hangs."""
    process = start(folder, text)
    try:
        said, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, said
    return said


def script(path: Path, command: str) -> None:
    """An executable that runs a command."""
    path.write_text(f"#!/bin/sh\nexec {command}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)


def quick_poly(path: Path) -> None:
    """`poly header`, with the portable kernels alone, optimised as the flags say (`headers.at_any_level`)."""
    unpragma = 'find . -name "*.h" -exec sed -i "s/.O3., //" {} +'
    script(path, f"""sh -c '"{sys.executable}" -m poly.cli "$@" --isa portable && {unpragma}' poly "$@\"""")


def with_poly(project: Path, folder: Path) -> dict[str, str]:
    """The environment of a user who has installed poly."""
    folder.mkdir()
    script(folder / "poly", f'"{sys.executable}" -m poly.cli "$@"')
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    return os.environ | {"PATH": path, "PYTHONPATH": str(project), "MAKEFLAGS": ""}
