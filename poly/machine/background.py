"""Calibration in the background: started by the first compilation that would profit, in a process of its own.

The compilation doesn't wait: it uses a described CPU. Compilations after the calibration use what was measured. With
`POLY_CALIBRATE=never` (or `unkept`) in the environment, nothing is started; `poly machine --calibrate` calibrates at
once.
"""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
from contextlib import suppress
from dataclasses import replace
from functools import cache

from codegen.errors import ToolchainError
from codegen.system import forks
from codegen.system.cache import private_directory
from codegen.system.processes import PYTHON, with_own_path
from microkernels.isa import ISA, find
from poly.machine.calibration import NEVER, UNKEPT, VARIABLE, kept, measured
from poly.machine.description import machine

logger = logging.getLogger("poly.calibrate")


@cache
def calibrate_soon(isa: ISA) -> None:
    """Start a process that calibrates this machine for an instruction set, if that was not done; once a process."""
    if os.environ.get(VARIABLE) in (NEVER, UNKEPT) or kept(replace(machine(), isa=isa)) is not None:
        return
    logger.info("a process in the background calibrates this machine for %s", isa.name)
    script = f"from poly.machine.background import calibrate; calibrate({isa.name!r})"
    with suppress(OSError), forks.fork_lock:
        subprocess.Popen(
            [*PYTHON, "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**with_own_path(), VARIABLE: NEVER},
            start_new_session=True,
        )


def calibrate(name: str) -> None:
    """Calibrate this machine for the instruction set of this name, unless another process is about to."""
    isa = find(name)
    if isa is None:  # it was registered in the process that asks
        return
    with suppress(ToolchainError, OSError):
        lock = os.open(private_directory("locks") / f"calibration-{name}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            measured(replace(machine(), isa=isa))
        finally:
            os.close(lock)
