"""What the search's process and the one that times say to each other. Each order has one answer, or `OrderFailed`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from codegen.signature import Signature


@dataclass(frozen=True)
class Data:
    """The arguments that a kernel gets: the same values for the same seed.

    `fresh` are arrays that the nest reads, but only behind its own writes; they start as NaN, as those that it only
    writes. With `delicate`, divisions, roots and solves stay tame.
    """

    signature: Signature
    sizes: tuple[tuple[str, int], ...]
    seed: int
    delicate: bool
    fresh: frozenset[str]


@dataclass(frozen=True)
class Cores:
    """How many threads a call has, and where they run."""

    threads: int
    cpus: tuple[int, ...]


@dataclass(frozen=True)
class Trust:
    """Run the trusted kernel once, and keep its result in the folder `results`.

    The answer names the arrays of `data.fresh` that hold NaN then.
    """

    library: str
    data: Data
    cores: Cores
    results: str


@dataclass(frozen=True)
class Setup:
    """Make the arrays and get ready to time; the answer is None.

    `results` is the folder with the trusted result. `length` is about how many terms an element is the sum of. `calls`
    is the most calls that a sample may have, `flush` the bytes that are streamed before each call (0: the caches stay
    as the last call left them). `device` is the label of the OpenCL device that runs candidates; empty where C does.
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
    """Load a candidate under a name, run it once, compare; the answer is the seconds of a call.

    `library` is the path of a C library, or of a device program as JSON, which the device's compiler builds first.
    """

    name: int
    library: str


@dataclass(frozen=True)
class Time:
    """Take `rounds` samples of each of these candidates, in turn; the order is drawn by lot each round.

    The answer holds for each candidate its samples, in seconds a call.
    """

    names: tuple[int, ...]
    rounds: int


@dataclass(frozen=True)
class Drop:
    """Forget a candidate and give its memory back; the answer is None."""

    name: int


Order = Trust | Setup | Check | Time | Drop


@dataclass(frozen=True)
class OrderFailed:
    """An order could not be followed, by the candidate's fault: why, in words."""

    reason: str


def result(folder: str, array: str) -> Path:
    """Where the trusted values of an array lie."""
    return Path(folder) / f"{array}.npy"
