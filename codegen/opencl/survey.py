"""Every OpenCL platform and device here, usable or why not. What was tried once is kept on disk."""

from __future__ import annotations

import functools
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

from codegen.cache import digest, get, put
from codegen.errors import ToolchainError
from codegen.opencl.advice import NO_PLATFORM, NO_PYOPENCL, icd_texts
from codegen.opencl.probe import Facts, Probed, Verdict, listed, probe, read_facts, read_verdict
from microkernels.isa import host_cpu_flags

VERSION = 1
"""Counts up when the probe changes: older findings are then taken anew."""
MEANT = ("OCL_", "OPENCL_", "POCL_", "PYOPENCL_", "CUDA_VISIBLE_", "ROCR_VISIBLE_", "HIP_VISIBLE_", "ONEAPI_")
"""How the environment variables begin that choose platforms and devices."""


@dataclass(frozen=True)
class Finding:
    """A device, or a platform as a whole (then `facts` is None): usable, or the `problem` with it."""

    platform: str
    name: str
    problem: str = ""
    facts: Facts | None = None
    shares_memory: bool = False

    @property
    def usable(self) -> bool:
        return not self.problem


@functools.cache
def survey() -> tuple[Finding, ...]:
    """All findings, in the order in which OpenCL lists them; the answer stays for the life of this process.

    Devices that are new here, or have a new driver, are tried first, in another process: that takes a second or two.
    """
    try:
        package = version("pyopencl")
    except PackageNotFoundError:
        return (Finding("OpenCL", "", NO_PYOPENCL),)
    key = _key(package)
    kept = _parse(get(key))
    if kept is None or kept.facts != _here():
        kept = probe()
        if not kept.problem:
            with suppress(ToolchainError):
                put(key, json.dumps(asdict(kept), indent=1))
    return findings(kept)


def findings(probed: Probed) -> tuple[Finding, ...]:
    """What a probe found, device by device."""
    if not probed.facts:
        return (Finding("OpenCL", "", probed.problem or NO_PLATFORM),)
    verdicts = {verdict.place: verdict for verdict in probed.verdicts}
    return tuple(_finding(facts, verdicts.get(facts.place)) for facts in probed.facts)


def _finding(facts: Facts, verdict: Verdict | None) -> Finding:
    if facts.problem or verdict is None:
        return Finding(facts.platform, facts.name, facts.problem or "it was not tried", facts)
    return Finding(facts.platform, facts.name, verdict.problem, facts, verdict.shares_memory)


def _here() -> tuple[Facts, ...]:
    """The devices as this process sees them. It is asked only where another one has lived through it."""
    try:
        return tuple(facts for facts, _ in listed())
    except Exception:  # whatever a driver raises: the probe says it in words
        return ()


def _key(package: str) -> str:
    """What the findings hold for: the platforms' files, what chooses among them, and this CPU."""
    chosen = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(MEANT))
    files = sorted(f"{path} {text}" for path, text in icd_texts().items())
    return f"opencl devices {VERSION} {package} {digest(*chosen, '', *files, '', *sorted(host_cpu_flags()))}"


def _parse(text: str | None) -> Probed | None:
    """What `survey` kept; None where nothing or something else is there."""
    try:
        data = json.loads(text or "")
        return Probed(tuple(map(read_facts, data["facts"])), tuple(map(read_verdict, data["verdicts"])))
    except (ValueError, KeyError, TypeError, IndexError):
        return None
