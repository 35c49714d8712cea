"""Scops as kernels of one header: a schedule for each instruction set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codegen.ir.program import Threading
from codegen.package import Header, Routine
from microkernels.isa import ISA, ISAS, host_machine
from poly.embed.group import Group
from poly.embed.naming import check_arguments
from poly.embed.routine import levels, routine
from poly.embed.write import chosen_isas
from poly.errors import PolyError, SpecError
from poly.machine import machine
from poly.machine.target import checked_threads, parse
from poly.records.followed import recorded
from poly.rewriting.scops import CFile, Scop
from poly.scheduled import Scheduled
from poly.version import RELEASE


@dataclass(frozen=True)
class Kernels:
    """The header, the routine of each scop that has one, and the scops, where one without has a problem."""

    header: Header
    scops: tuple[Scop, ...]
    routines: tuple[Routine | None, ...]


def usual_isas() -> tuple[str, ...]:
    """The instruction sets of this CPU's family, and plain C."""
    return tuple(name for name, isa in ISAS.items() if isa.machine in ("", host_machine()))


def kernels(file: CFile, isas: Sequence[str] | None, threads: Threading, cores: int | None) -> Kernels:
    """The kernels of a file's scops. A scop whose kernel can't be made gets a problem."""
    chosen = chosen_isas(usual_isas() if isas is None else isas)
    prefix = _prefix(file)
    count = 1 if threads == "none" else checked_threads(cores)
    made = [_made(scop, prefix, chosen, count) for scop in file.scops]
    routines = tuple(found for _, found in made if found is not None)
    header = Header(prefix, routines, levels(chosen, routines), threads, RELEASE, machine().cpu)
    return Kernels(header, tuple(scop for scop, _ in made), tuple(found for _, found in made))


def _made(scop: Scop, prefix: str, isas: Sequence[ISA], threads: int) -> tuple[Scop, Routine | None]:
    if scop.problem is not None:
        return scop, None
    nest, isa = scop.nest, parse("c").isa
    name = f"{prefix}_{nest.name}"
    try:
        _check_names(scop, prefix)
        kernel = Scheduled(nest, isa, threads, recorded(nest, isa, threads))
        made = routine(Group(kernel, ()), name, prefix, isas, threads, dense=True)
    except PolyError as error:
        return replace(scop, outline=None, problem=error), None
    return scop, made


def _check_names(scop: Scop, prefix: str) -> None:
    """Refuse a scop that leaves nothing behind, or whose names are those of the kernels' text."""
    nest = scop.nest
    if not any(array.kind == "array" and array.name in nest.written for array in nest.arrays):
        raise SpecError(
            f"{scop.place}: what this scop computes is not used after it, so that a kernel would do nothing.\n"
            "Delete it, or use its results."
        )
    check_arguments(nest, prefix)


def _prefix(file: CFile) -> str:
    """A prefix that no name in the file has."""
    prefix = "poly_" + re.sub(r"\W", "_", Path(file.name).stem, flags=re.ASCII)[:60]
    while re.search(prefix, file.text, re.IGNORECASE):
        prefix += "_"
    return prefix
