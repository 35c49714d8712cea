"""A described CPU's calibration in place of this machine's: no test probes it, and what runs before changes nothing."""

from __future__ import annotations

from dataclasses import replace

from microkernels.isa import ISAS
from poly.machine import calibration
from poly.machine.description import machine

DESCRIBED = (32 << 10, 1 << 20, 32 << 20)
"""The caches of the CPU, in bytes."""


def calibrate() -> None:
    """Keep it in the cache directory, where a session of tuning would measure for ten seconds."""
    here = machine()
    for isa in ISAS.values():
        if isa.runs_here():
            calibration.keep(replace(here, isa=isa), calibration.described(isa.name, DESCRIBED))
