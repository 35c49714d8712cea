"""Other programs, compilers above all, run to their end."""

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
    """Run a program without input, and keep what it says. Whoever stops waiting stops the program's helpers too.

    A fork waits until it has started: a child that inherited its pipes would keep whoever reads them waiting.

    Raises OSError where it can't be run, TimeoutExpired after `seconds`.
    """
    with forks.undivided:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=env,
            process_group=0,  # what compiles is a child of the command
        )
    with process:
        try:
            out, errors = process.communicate(timeout=seconds)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)
