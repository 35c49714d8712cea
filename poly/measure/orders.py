"""The messages between the search's process and the measuring one. Each order has one answer, or `OrderFailed`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from codegen.ir.signature import Signature

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Data:
    """The arguments of a kernel: the same values for the same seed.

    `fresh` are arrays that the nest reads only after having written them; they start as NaN, like pure outputs. With
    `delicate`, the values keep divisions, roots and solves well-conditioned.
    """

    signature: Signature
    sizes: tuple[tuple[str, int], ...]
    seed: int
    delicate: bool
    fresh: frozenset[str]
    indices: tuple[tuple[str, int, int], ...] = ()
    """The arrays whose elements are looked up as indices, with the least value and the end of the values they take."""


@dataclass(frozen=True)
class Cores:
    """The number of threads of a call, and the CPUs they run on."""

    threads: int
    cpus: tuple[int, ...]


@dataclass(frozen=True)
class Trust:
    """Run the trusted kernel once, and store its result in the folder `results`.

    The answer names the arrays of `data.fresh` that contain NaN afterwards.
    """

    library: str
    data: Data
    cores: Cores
    results: str


@dataclass(frozen=True)
class Setup:
    """Create the arrays and prepare for timing; the answer is None.

    `results` is the folder with the trusted result. `length` is the approximate number of terms summed into an element.
    `calls` is the maximum number of calls per sample, `flush` the bytes that are streamed before each sample (0: the
    caches stay as the last call left them). `device` is the label of the OpenCL device that runs the candidates; empty
    for C.
    """

    data: Data
    cores: Cores
    results: str
    length: int
    calls: int
    flush: int
    device: str = ""


@dataclass(frozen=True)
class Check:
    """Load a candidate under a name, run it once, and compare its result; the answer is the seconds of a call.

    `library` is the path of a C library, or of a device program in JSON, which the device's compiler builds first.
    """

    name: int
    library: str


@dataclass(frozen=True)
class Time:
    """Take `rounds` samples of each of these candidates in turn, in a new random order each round.

    The answer contains each candidate's samples, in seconds per call.
    """

    names: tuple[int, ...]
    rounds: int


@dataclass(frozen=True)
class Drop:
    """Forget a candidate and free its memory; the answer is None."""

    name: int


@dataclass(frozen=True)
class RunFunction:
    """Call `int NAME(int way, void *const *pointers, const long *bytes)` of a C library on copies of values.

    The answer is `Ran`.
    """

    library: str
    name: str
    way: int
    values: Mapping[str, Array]


@dataclass(frozen=True)
class Ran:
    """The values after a call, what the function returned, and whether it wrote outside of their memory."""

    values: Mapping[str, Array]
    returned: int
    overrun: bool


Order = Trust | Setup | Check | Time | Drop | RunFunction


@dataclass(frozen=True)
class OrderFailed:
    """An order failed because of the candidate, for this reason."""

    reason: str


def result(folder: str, array: str) -> Path:
    """The file with the trusted values of an array."""
    return Path(folder) / f"{array}.npy"
