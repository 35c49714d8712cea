"""Runs other programs, mostly compilers, to completion."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from codegen import forks


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
