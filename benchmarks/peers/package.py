"""Packages that bring peers: which are missing, and the commands that install them."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.contender import NotInstalled


@dataclass(frozen=True)
class Package:
    """A package of PyPI or Debian, with a version where the newest one would not do."""

    source: Literal["pip", "apt"]
    name: str

    @property
    def command(self) -> tuple[str, ...]:
        """The command that installs it, for this interpreter's environment or for the system."""
        if self.source == "pip":
            return (sys.executable, "-m", "pip", "install", self.name)
        return ("apt-get", "install", "-y", self.name)

    @property
    def line(self) -> str:
        """The command as text; a system's package needs the superuser."""
        return ("sudo " if self.source == "apt" and os.getuid() else "") + shlex.join(self.command)

    def install(self) -> bool:
        """Install it if this user can; whether that worked."""
        if self.source == "apt" and (os.getuid() or shutil.which("apt-get") is None):
            return False
        if self.source == "apt":
            _refresh()
        return subprocess.run(self.command, check=False).returncode == 0


@functools.cache
def _refresh() -> None:
    """Ask for the newest list of Debian's packages: a fresh system has none."""
    subprocess.run(("apt-get", "update", "-q"), check=False)


class Packaged:
    """A peer that a package brings. `find` raises NotInstalled, at once and without loading the library."""

    name: str
    package: Package

    def find(self) -> object:
        """Look for the library."""
        raise NotImplementedError


def missing(peers: Sequence[object]) -> dict[Package, list[str]]:
    """The packages that are not installed, each with the names of the peers that it brings."""
    found: dict[Package, list[str]] = {}
    for peer in peers:
        if isinstance(peer, Packaged) and not _found(peer):
            found.setdefault(peer.package, []).append(peer.name)
    return found


def _found(peer: Packaged) -> bool:
    try:
        peer.find()
    except NotInstalled:
        return False
    return True


def notice(absent: dict[Package, list[str]]) -> Iterator[str]:
    """What to say before a run without some of the peers; nothing if all are there."""
    if not absent:
        return
    names = ", ".join(name for peers in absent.values() for name in peers)
    yield f"Not installed, so not compared with: {names}. OpenBLAS alone is a weak bar. One line brings each"
    yield "(`make bench-all` runs them):"
    yield from (f"  {', '.join(peers)}: {package.line}" for package, peers in absent.items())


def install(absent: dict[Package, list[str]]) -> Iterator[str]:
    """Install what this user can install; yields a line for each package."""
    for package, peers in absent.items():
        done = package.install()
        yield f"{', '.join(peers)}: " + ("installed" if done else f"not installed; run: {package.line}")
