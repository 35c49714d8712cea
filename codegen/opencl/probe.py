"""What OpenCL reports about its devices, and whether each really builds and runs a kernel.

A broken driver may crash the process or hang. So a device is tried in a child process, which runs this file alone and
imports no other module of ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from signal import Signals
from typing import Any

MARK = "poly-probe "
"""The prefix of the child's lines for its parent, as drivers print too."""
SECONDS = 120.0
"""The child's time limit. A build takes a second, but many on a busy machine or while a driver starts up."""
LATE = "did not end within"
TRIAL = """
__kernel void trial(__global int *out, int start) {
    int item = (int)get_global_id(0);
    out[item] = start + 3 * item;
}
"""
ITEMS = 1001


@dataclass(frozen=True)
class DeviceFacts:
    """What a device reports about itself. `place` is the platform's number, and the device's in the platform.

    `kind` is "cpu", "gpu" or "other"; sizes are in bytes; `vector_floats` is the width of its vectors (0: unknown);
    `sub_group` is the number of work-items in lockstep (0: unknown). `problem` is a reason not to use it, if it reports
    one.
    """

    place: tuple[int, int]
    platform: str
    platform_version: str
    name: str
    vendor: str
    driver: str
    version: str
    kind: str
    extensions: tuple[str, ...]
    units: int
    local_bytes: int
    max_items: int
    vector_floats: int
    sub_group: int
    memory_bytes: int
    buffer_bytes: int
    alignment: int
    problem: str = ""


@dataclass(frozen=True)
class Verdict:
    """The result of a device's trial: `problem` is empty if it succeeded.

    `shares_memory` says whether a kernel works in place on memory that the host passes.
    """

    place: tuple[int, int]
    problem: str = ""
    shares_memory: bool = False


@dataclass(frozen=True)
class Probed:
    """The result of a probe: the platforms' names, the devices, and the results of their trials. If nothing could be
    listed, `problem` says why.
    """

    platforms: tuple[str, ...] = ()
    facts: tuple[DeviceFacts, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    problem: str = ""

    @property
    def lasting(self) -> bool:
        """Whether the result can be kept: a device that hung or did not answer may just have been busy."""
        return not self.problem and not any(LATE in verdict.problem for verdict in self.verdicts)


def probe(command: tuple[str, ...] = (sys.executable, "-P", __file__), seconds: float = SECONDS) -> Probed:
    """List the devices and try each in a child process; if it crashes or hangs, another goes on after that device."""
    found: Probed | None = None
    verdicts: list[Verdict] = []
    while True:
        done = [verdict.place for verdict in verdicts]
        messages, end = _run((*command, json.dumps(done)), seconds)
        tried = None
        for message in messages:
            if "listed" in message:
                found = read_probed(message["listed"])
            elif "failed" in message:
                return Probed(problem=message["failed"])
            elif "trying" in message:
                tried = tuple(message["trying"])
            elif "verdict" in message:
                verdicts.append(_read_verdict(message["verdict"]))
        if found is None:
            return Probed(problem=f"asking OpenCL for its platforms {end}")
        if tried is None or tried in {verdict.place for verdict in verdicts}:
            return replace(found, verdicts=tuple(verdicts))
        verdicts.append(Verdict((tried[0], tried[1]), f"building and running a small kernel {end}"))


def read_probed(data: dict[str, Any]) -> Probed:
    """The `Probed` that `asdict` and JSON turned into plain values."""
    facts = tuple(
        DeviceFacts(**{**entry, "place": _place(entry), "extensions": tuple(entry["extensions"])})
        for entry in data["facts"]
    )
    return Probed(tuple(data["platforms"]), facts, tuple(_read_verdict(entry) for entry in data["verdicts"]))


def _read_verdict(entry: dict[str, Any]) -> Verdict:
    return Verdict(**{**entry, "place": _place(entry)})


def _place(entry: dict[str, Any]) -> tuple[int, int]:
    platform, device = entry["place"]
    return (platform, device)


def _run(command: tuple[str, ...], seconds: float) -> tuple[list[dict[str, Any]], str]:
    """The child's messages, and how it ended, in words."""
    from codegen.system import processes  # not at the top: the child runs this file alone

    try:
        done = processes.run(command, seconds, _environment())
        output, errors = done.stdout, done.stderr
        end = _ending(done.returncode)
    except subprocess.TimeoutExpired as error:
        output, errors = (said.decode(errors="replace") if said else "" for said in (error.output, error.stderr))
        end = f"{LATE} {seconds:g} seconds"
    except OSError as error:
        return [], f"failed: {command[0]} cannot be run ({error.strerror})"
    lines = output.splitlines()
    last = [line.strip() for line in errors.splitlines() if line.strip()][-1:]
    return [json.loads(line[len(MARK) :]) for line in lines if line.startswith(MARK)], ": ".join([end, *last])


def _environment() -> dict[str, str]:
    """An environment in which the child finds the same packages as this process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _ending(status: int) -> str:
    if status < 0:
        with suppress(ValueError):
            return f"crashed ({Signals(-status).name})"
    return f"ended the process (exit status {status})"


@dataclass(frozen=True)
class Listing:
    """The platforms' names, and every device: its facts, and pyopencl's object."""

    platforms: tuple[str, ...]
    devices: tuple[tuple[DeviceFacts, Any], ...]

    @property
    def probed(self) -> Probed:
        """The listing without pyopencl's objects and without trials."""
        return Probed(self.platforms, tuple(facts for facts, _ in self.devices))


def listed() -> Listing:
    """What OpenCL lists in this process.

    Raises ImportError if there is no pyopencl, and pyopencl's errors if a platform fails.
    """
    import pyopencl as cl

    platforms = _platforms(cl)
    devices = [
        (_facts((p, d), platform, device), device)
        for p, platform in enumerate(platforms)
        for d, device in enumerate(_devices(cl, platform))
    ]
    return Listing(tuple(platform.name.strip() for platform in platforms), tuple(devices))


def _platforms(cl: Any) -> list[Any]:
    """The platforms; none if the loader found none, which it reports as an error."""
    try:
        return list(cl.get_platforms())
    except cl.Error as error:
        if "PLATFORM_NOT_FOUND" in str(error):
            return []
        raise


def _devices(cl: Any, platform: Any) -> list[Any]:
    """A platform's devices; none if it has none or raises an error, as a driver without its hardware does."""
    try:
        return list(platform.get_devices())
    except cl.Error:
        return []


def _facts(place: tuple[int, int], platform: Any, device: Any) -> DeviceFacts:
    import pyopencl as cl

    def ask(name: str, default: Any) -> Any:
        """A property, or `default` on platforms that are too old or lack an extension for it."""
        try:
            return getattr(device, name)
        except (cl.Error, AttributeError):
            return default

    kinds = {cl.device_type.CPU: "cpu", cl.device_type.GPU: "gpu"}
    kind = next((word for bit, word in kinds.items() if device.type & bit), "other")
    widths = (ask("native_vector_width_float", 0), ask("preferred_vector_width_float", 0))
    problem = "" if ask("available", True) else "the device is not available"
    if not ask("compiler_available", True):
        problem = "the device comes without a compiler"
    return DeviceFacts(
        place=place,
        platform=platform.name.strip(),
        platform_version=platform.version.strip(),
        name=device.name.strip(),
        vendor=str(ask("vendor", "")).strip(),
        driver=str(ask("driver_version", "")).strip(),
        version=str(ask("version", "")).strip(),
        kind=kind,
        extensions=tuple(sorted(str(ask("extensions", "")).split())),
        units=int(ask("max_compute_units", 1)),
        local_bytes=int(ask("local_mem_size", 0)),
        max_items=int(min(ask("max_work_group_size", 1), *list(ask("max_work_item_sizes", [1]))[:1])),
        vector_floats=int(max(widths)),
        sub_group=int(ask("warp_size_nv", 0) or ask("wavefront_width_amd", 0)),
        memory_bytes=int(ask("global_mem_size", 0)),
        buffer_bytes=int(ask("max_mem_alloc_size", 0)),
        alignment=int(ask("mem_base_addr_align", 1024)) // 8,
        problem=problem,
    )


def attempt(device: Any) -> bool:
    """Build and run a small kernel on the host's memory; True if the host sees the results without a copy.

    Raises pyopencl's errors, and RuntimeError if the results are wrong.
    """
    import numpy as np
    import pyopencl as cl

    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    kernel = cl.Program(context, TRIAL).build().trial
    out = np.full(ITEMS + 1, -1, np.int32)[1:]  # unaligned: no alignment that a platform could require
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    buffer = cl.Buffer(context, flags, hostbuf=out)
    kernel(queue, (ITEMS,), None, buffer, np.int32(7))
    queue.finish()
    expected = 7 + 3 * np.arange(ITEMS, dtype=np.int32)
    shares = bool((out == expected).all())
    cl.enqueue_copy(queue, result := np.empty_like(expected), buffer)
    if not (result == expected).all():
        raise RuntimeError("a small kernel ran, and its results are wrong")
    return shares


def _main(done: Iterable[Iterable[int]]) -> Iterator[dict[str, Any]]:
    """The child's messages: all devices, then, for each that is not `done`, the start of its trial and the verdict."""
    try:
        listing = listed()
    except Exception as error:
        yield {"failed": f"asking OpenCL for its platforms failed: {_reason(error)}"}
        return
    yield {"listed": asdict(listing.probed)}
    finished = {tuple(place) for place in done}
    for facts, device in listing.devices:
        if facts.place in finished or facts.problem:
            continue
        yield {"trying": facts.place}
        yield {"verdict": asdict(_verdict(facts, device))}


def _verdict(facts: DeviceFacts, device: Any) -> Verdict:
    try:
        return Verdict(facts.place, shares_memory=attempt(device))
    except Exception as error:
        return Verdict(facts.place, f"building and running a small kernel failed: {_reason(error)}")


def _reason(error: Exception) -> str:
    """The most informative line of an error: the compiler's, if there is one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("error:")), lines[0] if lines else type(error).__name__)


if __name__ == "__main__":
    for message in _main(json.loads(sys.argv[1])):
        print(MARK + json.dumps(message), flush=True)
