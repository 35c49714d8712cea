"""What `poly doctor` says of the libraries to compare with."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.peers import PEERS
from benchmarks.peers.package import missing
from poly.diagnosis import Diagnosis


def peers() -> Iterator[Diagnosis]:
    """The peers that can be measured here, and each package that brings another, with the command that installs it."""
    absent = missing(list(PEERS.values()))
    gone = {name for names in absent.values() for name in names}
    yield Diagnosis("peers", "ok", ", ".join(name for name in PEERS if name not in gone))
    for package, names in absent.items():
        yield Diagnosis("peers", "note", f"{', '.join(names)}: not installed", package.line)
