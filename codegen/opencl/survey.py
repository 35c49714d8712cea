"""All OpenCL platforms and devices here, and why some are not usable. The results of trials are kept on disk."""

from __future__ import annotations

import functools
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version

from codegen.errors import ToolchainError
from codegen.opencl.advice import NO_PYOPENCL, icd_texts, no_platform
from codegen.opencl.probe import DeviceFacts, Probed, Verdict, listed, probe, read_probed
from codegen.system.cache import digest, get, put
from codegen.system.forks import uses_drivers
from microkernels.isa import host_cpu_flags

VERSION = 3
"""Increased when the probe changes, which discards older findings."""
MEANT = ("OCL_", "OPENCL_", "POCL_", "PYOPENCL_", "CUDA_VISIBLE_", "ROCR_VISIBLE_", "HIP_VISIBLE_", "ONEAPI_")
"""The prefixes of environment variables that select platforms and devices."""


@dataclass(frozen=True)
class Finding:
    """A device, or a whole platform (then `facts` is None): usable, or with a `problem`."""

    platform: str
    name: str
    problem: str = ""
    facts: DeviceFacts | None = None
    shares_memory: bool = False

    @property
    def usable(self) -> bool:
        return not self.problem


def survey(anew: bool = False) -> tuple[Finding, ...]:
    """All findings, in the order in which OpenCL lists them; the result is kept for the life of this process.

    Devices that are new here, or have a new driver, are first tried in another process, which takes a second or two.
    With `anew` all devices are.
    """
    if anew:
        _survey.cache_clear()
        with suppress(PackageNotFoundError):
            _keep(_key(), "")
    return _survey()


@functools.cache
def _survey() -> tuple[Finding, ...]:
    try:
        return findings(_tried(_key()))
    except PackageNotFoundError:
        return (Finding("", "", NO_PYOPENCL),)


def _tried(key: str) -> Probed:
    """The result of a probe, now or before: it is valid while OpenCL lists the same devices with the same drivers."""
    kept = _kept(key)
    if kept is None or replace(kept, verdicts=()) != _here():
        kept = probe()
        if kept.lasting:
            _keep(key, json.dumps(asdict(kept), indent=1))
    return kept


def findings(probed: Probed) -> tuple[Finding, ...]:
    """A probe's findings on each device, and then on the platforms without devices."""
    if not probed.platforms:
        return (Finding("", "", probed.problem or no_platform()),)
    verdicts = {verdict.place: verdict for verdict in probed.verdicts}
    devices = tuple(_finding(facts, verdicts.get(facts.place)) for facts in probed.facts)
    occupied = {facts.place[0] for facts in probed.facts}
    idle = [name for n, name in enumerate(probed.platforms) if n not in occupied]
    return devices + tuple(Finding(name, "", "the platform has no device here") for name in idle)


def _finding(facts: DeviceFacts, verdict: Verdict | None) -> Finding:
    if facts.problem or verdict is None:
        return Finding(facts.platform, facts.name, facts.problem or "it was not tried", facts)
    return Finding(facts.platform, facts.name, verdict.problem, facts, verdict.shares_memory)


def _here() -> Probed:
    """What OpenCL lists in this process; called only once a probe in another process has survived it."""
    try:
        uses_drivers()
        return listed().probed
    except Exception as error:  # a driver may raise anything: the probe then reports it in words
        return Probed(problem=str(error))


def _key() -> str:
    """What the findings depend on: pyopencl, the platforms' files, the variables that select them, and this CPU."""
    chosen = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(MEANT))
    files = sorted(f"{path} {text}" for path, text in icd_texts().items())
    return (
        f"opencl devices {VERSION} {version('pyopencl')} {digest(*chosen, '', *files, '', *sorted(host_cpu_flags()))}"
    )


def _keep(key: str, text: str) -> None:
    """Keep a probe's result; if the cache directory cannot be written, the next process tries the devices again."""
    with suppress(ToolchainError):
        put(key, text)


def _kept(key: str) -> Probed | None:
    """The result that was kept; None if there is none, or something else."""
    try:
        return read_probed(json.loads(get(key) or ""))
    except (ToolchainError, ValueError, KeyError, TypeError, IndexError):
        return None
