"""What runs on a worker: who it is, a build, a measurement.

Only values cross the network: C text, libraries as bytes, recipes, timings.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from codegen.errors import ToolchainError
from codegen.toolchain.build import build, precompile
from codegen.toolchain.compiler import compiler_name
from microkernels.isa import ISAS
from poly.cluster.turns import alone, beside
from poly.compiled import engine
from poly.measure.builder import SECONDS
from poly.measure.live import own_workplace
from poly.measure.station import Station
from poly.measure.timer import Timing
from poly.measure.trusted import Recipe
from poly.records.key import machine_name
from poly.version import __version__

MOST = 4
"""The most nests whose arrays a worker keeps."""


@dataclass(frozen=True)
class Member:
    """A worker as far as tuning is concerned.

    `host` is the same for all workers on one machine, `machine` its name in the keys of records. `isas` are the
    instruction sets that run there. `engine` is a digest of poly's source. `slots` is the number of tasks that it runs
    at a time.
    """

    address: str
    host: str
    version: str
    engine: str
    machine: str
    compiler: str
    isas: frozenset[str]
    slots: int = 1


@dataclass(frozen=True)
class BuiltLibrary:
    """The content of a candidate's library, or why there is none."""

    content: bytes = b""
    failure: str = ""


def announce(address: str, slots: int) -> Member:
    """This worker. Raises ToolchainError if it has no compiler."""
    isas = frozenset(name for name, isa in ISAS.items() if isa.runs_here())
    return Member(address, _host(), __version__, engine(), machine_name(), compiler_name(), isas, slots)


def _host() -> str:
    """The kernel that runs here, which containers on a machine share, or the host's name."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


def compiled(text: str, flags: tuple[str, ...], many: bool) -> BuiltLibrary:
    """Build a C text to a library; `many` says that others with these flags follow, which then take less time."""
    with beside(), own_workplace() as folder:
        try:
            if many and flags not in _precompiled:
                precompile(flags)
                _precompiled.add(flags)
            return BuiltLibrary(build(text, flags, Path(folder), SECONDS).read_bytes())
        except ToolchainError as error:
            return BuiltLibrary(failure=f"does not compile: {error}")


_precompiled: set[tuple[str, ...]] = set()


def timed(
    token: str, recipe: Recipe, library: bytes, rival: bytes | None, expected: float, samples: int, patience: float
) -> Timing:
    """Time a library alone on this machine, in turn with a rival if there is one.

    `token` names the tuning, whose arrays stay for the next library. Raises SearchError if the nest itself cannot be
    measured.
    """
    with alone():
        place = _place(token, recipe, patience)
        paths = [None if content is None else place.file(content) for content in (library, rival)]
        assert paths[0] is not None, "a candidate has a library"
        timing = place.station.timing(paths[0], paths[1], expected, samples)
        place.forget(paths)
        return timing


def leave(token: str) -> None:
    """Forget the arrays of a tuning."""
    with _guard:
        place = _places.pop(token, None)
    if place is not None:
        place.close()


class _Place:
    """A station and its folder on a worker."""

    def __init__(self, patience: float) -> None:
        self._folder: TemporaryDirectory[str] = own_workplace()
        self.station = Station(Path(self._folder.name), patience)

    def file(self, content: bytes) -> Path:
        """The file of a library, which is the same for the same content."""
        path = self.station.folder / f"{hashlib.sha256(content).hexdigest()[:32]}.so"
        if not path.exists():
            path.write_bytes(content)
            os.chmod(path, 0o700)
        return path

    def forget(self, kept: list[Path | None]) -> None:
        """Remove the libraries of earlier candidates; the newest ones may come again as rivals."""
        for path in self.station.folder.glob("*.so"):
            if path not in kept:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        self.station.close()
        self._folder.cleanup()


_places: OrderedDict[str, _Place] = OrderedDict()
_guard = threading.Lock()


def _place(token: str, recipe: Recipe, patience: float) -> _Place:
    """The place of a tuning, prepared if it is new; that of the oldest makes room."""
    with _guard:
        place = _places.pop(token, None) or _Place(patience)
        _places[token] = place
        old = [_places.pop(next(iter(_places))) for _ in range(len(_places) - MOST)]
    for one in old:
        one.close()
    if not place.station.prepared:
        try:
            place.station.start()
            place.station.prepare(recipe)
        except BaseException:
            leave(token)
            raise
    return place
