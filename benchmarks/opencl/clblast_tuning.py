"""CLBlast tuned for a device: a search of its parameters from choices that are good elsewhere, kept in the cache."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter

import click

from benchmarks.opencl.clblast_library import version
from benchmarks.opencl.clblast_seeds import SEEDS
from benchmarks.opencl.clblast_space import Parameters, neighbours
from codegen.opencl.devices import Device
from codegen.system.cache import get, put
from codegen.system.processes import PYTHON, with_own_path
from microkernels.dtypes import DType

VERSION = 1
"""Increased when the search changes, so that CLBlast is tuned again."""

FASTER = 0.99
"""A choice is better if it takes less than this fraction of the best one's time."""

TRIAL = 120.0
"""The time limit for one choice in seconds, including compilation."""

DIRECT = "XGEMM_MIN_INDIRECT_SIZE"
ALWAYS, NEVER = 10_000, 0
"""Products below the cube of this size use the direct kernel."""
SIZES = (64, 128, 256, 512)
"""The sizes of products at which the direct and the indirect kernel are compared."""


@dataclass(frozen=True)
class Search:
    """A kernel of CLBlast to tune on a square problem for `seconds`; `way` (ALWAYS, NEVER): products by XgemmDirect."""

    kernel: str
    problem: str
    size: int
    seconds: float
    way: int = NEVER


SEARCHES = (
    Search("Xgemm", "product", 1024, 120),
    Search("Transpose", "product", 1024, 25),
    Search("Padtranspose", "product", 1000, 15),
    Search("XgemmDirect", "product", 256, 30, ALWAYS),
    Search("XgemvFastRot", "rows", 4096, 20),
    Search("XgemvFast", "columns", 4096, 20),
)

Trial = Callable[[str, int, Mapping[str, Parameters]], float]
"""The seconds of a problem of this name and size with some parameters; infinite if the result is wrong."""


@dataclass(frozen=True)
class Tuned:
    """The parameters by kernel, and the number of choices tried."""

    parameters: dict[str, Parameters]
    trials: int

    def __str__(self) -> str:
        parameters = (
            f"{kernel} {' '.join(f'{name}={value}' for name, value in values.items())}"
            for kernel, values in self.parameters.items()
        )
        return f"tuned here by {self.trials} trials: {'; '.join(parameters)}"


def tuned(target: str, device: Device, dtype: DType) -> Tuned:
    """CLBlast's parameters for a device and type: from the cache, or else found by a search (minutes) and kept."""
    text = get(key(device, dtype))
    if text is not None:
        return Tuned(**json.loads(text))
    click.echo(f"CLBlast is tuned for {device.name}, {dtype.name}: this takes minutes, once", err=True)
    found = search(device.isa.kind, lambda *what: seconds(target, dtype, *what))
    keep(device, dtype, found)
    return found


def keep(device: Device, dtype: DType, found: Tuned) -> None:
    """Write the parameters to the cache directory."""
    put(key(device, dtype), json.dumps(asdict(found)))


def key(device: Device, dtype: DType) -> str:
    """The cache key: all that the best parameters depend on."""
    return f"clblast {version()} {device.name} {device.driver} {device.isa.units} {dtype.name} {VERSION}"


def seconds(target: str, dtype: DType, problem: str, size: int, parameters: Mapping[str, Parameters]) -> float:
    """The seconds of one choice, in a process of its own; infinite if that fails or takes too long."""
    words = [target, problem, str(size), dtype.name, json.dumps(parameters)]
    command = [*PYTHON, "-m", "benchmarks.opencl.clblast_trial", *words]
    try:
        done = subprocess.run(command, env=with_own_path(), capture_output=True, text=True, check=False, timeout=TRIAL)
        return float(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return float("inf")


def search(kind: str, trial: Trial, searches: Sequence[Search] = SEARCHES) -> Tuned:
    """The best parameters of each kernel on a kind of device, and the size up to which products use the direct one."""
    parameters: dict[str, Parameters] = {}
    trials = 0
    for one in searches:
        best, tried = _descend(one, SEEDS[one.kernel][kind], parameters, trial)
        trials += tried
        if best:
            parameters[one.kernel] = best
    parameters["GemmRoutine"] = {DIRECT: _border(trial, parameters)}
    return Tuned(parameters, trials)


def _descend(
    what: Search, seeds: Sequence[Parameters], others: Mapping[str, Parameters], trial: Trial
) -> tuple[Parameters, int]:
    """Descend from the best seed to better neighbours until the time is over; the result is empty if no choice works.

    The other kernels have the parameters found so far.
    """
    generator = random.Random(what.kernel)
    end = perf_counter() + what.seconds
    best: Parameters = {}
    least = float("inf")
    seen: list[Parameters] = []
    while True:
        fresh = [p for p in neighbours(what.kernel, best) if p not in seen] if best else []
        choices = [seed for seed in seeds if seed not in seen] or generator.sample(fresh, len(fresh))
        if not choices or (seen and perf_counter() > end):
            return best, len(seen)
        seen.append(choices[0])
        way = {"GemmRoutine": {DIRECT: what.way}} if what.problem == "product" else {}
        taken = trial(what.problem, what.size, {**others, **way, what.kernel: choices[0]})
        if taken < FASTER * least:
            best, least = choices[0], taken


def _border(trial: Trial, parameters: Mapping[str, Parameters]) -> int:
    """The size from which on the indirect kernel is faster."""
    for size in SIZES:
        direct, indirect = (
            trial("product", size, {**parameters, "GemmRoutine": {DIRECT: border}}) for border in (ALWAYS, NEVER)
        )
        if indirect <= direct:
            return size
    return 2 * SIZES[-1]
