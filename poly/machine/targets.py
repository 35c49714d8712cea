"""Targets of users and packages: a name for an instruction set, a C compiler and its flags.

A target is what kernels run on in this process. Its instruction set decides which microkernels and vectors there are,
its compiler and flags turn the C text into a library; both are part of the keys of caches and records.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.toolchain.compiler import Toolchain, toolchain
from microkernels.errors import TargetError, shown
from microkernels.isa import ISA, parse_target
from microkernels.plugins import load

GROUP = "poly.targets"
"""The entry point group in which packages offer targets, each under the target's name."""


@dataclass(frozen=True)
class OwnTarget:
    """A target: `isa` is a text such as `c:avx2`; `compiler` and `flags` are as for `poly.compile`."""

    name: str
    isa: str = "c"
    compiler: str | Sequence[str] | None = None
    flags: Sequence[str] = ()

    def instructions(self) -> ISA:
        """The instruction set. Raises TargetError if it is unknown, or cannot be used here."""
        return parse_target(self.isa)

    def toolchain(self) -> Toolchain:
        """The compiler and its flags. Raises ArgumentError."""
        return toolchain(self.compiler, self.flags)


_OWN: dict[str, OwnTarget] = {}


def register(target: OwnTarget) -> OwnTarget:
    """Add a target, or replace the one of its name.

    Raises TargetError or ArgumentError if it is no target, or cannot be used here.
    """
    if not isinstance(target, OwnTarget) or not re.fullmatch(r"[A-Za-z][\w.+-]*", str(target.name)):
        raise TargetError(f"{shown(target)} is no target: make one by OwnTarget(name, isa, compiler, flags).")
    if target.name in ("c", "opencl"):
        raise TargetError(f"a target cannot be called {target.name}, which is poly's own.")
    target.instructions(), target.toolchain()
    _OWN[target.name] = target
    return target


def own_target(name: object) -> OwnTarget | None:
    """The target that was registered under this name, or that a package offers; None if there is none."""
    if not isinstance(name, str) or name.partition(":")[0] in ("c", "opencl"):
        return None
    if name in _OWN:
        return _OWN[name]
    offered = load(GROUP, name, lambda one: isinstance(one, OwnTarget) and one.name == name, f"target {name}")
    return None if offered is None else register(offered)
