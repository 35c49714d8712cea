"""Runs other programs, mostly compilers, to completion, and prepares those of ours that Python runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from codegen.system import forks

PYTHON = (sys.executable, "-P")
"""A Python that does not import what happens to be in the working folder."""


def with_own_path() -> dict[str, str]:
    """The environment in which PYTHON finds the modules that this process finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}


def run(
    command: Sequence[str], seconds: float | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program without input, and capture its output. On a timeout or an interrupt its whole group is killed.

    A fork waits until the program has started: a child that inherited its pipes would keep their reader waiting.

    Raises OSError if it can't be run, TimeoutExpired after `seconds`.
    """
    with forks.fork_lock:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=env,
            process_group=0,  # the compiler proper is a child of the command
        )
    with process:
        try:
            out, errors = process.communicate(timeout=seconds)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)
