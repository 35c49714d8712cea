"""Kernels to a header file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codegen.files import write_file
from microkernels.errors import TargetError
from microkernels.isa import ISA, ISAS
from poly.embed.group import groups
from poly.embed.naming import check_arguments, checked_prefix, function_names
from poly.errors import SpecError
from poly.machine import machine
from poly.scheduled import Scheduled
from poly.version import __version__

if TYPE_CHECKING:
    from codegen.header import Header
    from codegen.program import Threading


def write_header(
    path: str | Path,
    kernels: Scheduled | Iterable[Scheduled],
    *,
    prefix: str | None = None,
    isas: Sequence[str] | None = None,
    threads: Threading | None = None,
    dense: bool = False,
) -> Path:
    """Write kernels as one C header to embed, and return its path.

    Kernels of one nest make one function: one with open sizes serves every call, those with fixed sizes take over
    where their sizes come up. Every name in the file begins with `prefix` (default: the nest's name, or that of the
    file where there are several). `isas` are the instruction sets, of "avx512", "avx2", "neon" and "portable"
    (default: all; the portable one is always there). `threads` says how parallel loops run: "openmp", "pthreads"
    or "none" (default: "openmp", or "none" where the kernels were compiled for one thread). With `dense`, the
    functions take no strides. The same kernels give the same bytes.

    Raises:
        SpecError: the kernels don't go together, or the prefix is no C identifier.
        TargetError: an unknown instruction set.
        OSError: the file cannot be written; then it is as it was.
    """
    from codegen.header.text import header_text

    target = Path(path)
    write_file(target, header_text(make(target.stem, _listed(kernels), prefix, isas, threads, dense)))
    return target


def make(
    stem: str,
    kernels: Sequence[Scheduled],
    prefix: str | None = None,
    isas: Sequence[str] | None = None,
    threads: Threading | None = None,
    dense: bool = False,
) -> Header:
    """The header as a value; `stem` is its file's name without the suffix. Raises as `write_header`."""
    from codegen.header import Header
    from poly.embed.routine import routine

    found = groups(kernels)
    chosen = chosen_isas(isas)
    way = threads or ("openmp" if any(kernel.threads > 1 for kernel in kernels) else "none")
    own = checked_prefix(prefix or (found[0].name if len(found) == 1 else re.sub(r"\W", "_", stem)))
    names = function_names([group.name for group in found], own)
    for group in found:
        check_arguments(group.base.nest, own)
    most = 1 if way == "none" else None
    routines = tuple(routine(group, name, own, chosen, most, dense) for group, name in zip(found, names, strict=True))
    return Header(own, routines, chosen, way, __version__, machine().cpu)


def _listed(kernels: Scheduled | Iterable[Scheduled]) -> list[Scheduled]:
    listed = [kernels] if isinstance(kernels, Scheduled) else list(kernels)
    for kernel in listed:
        if not isinstance(kernel, Scheduled):
            raise SpecError(f"{kernel!r} is no kernel: make one with poly.compile or poly.tune.")
    return listed


def chosen_isas(names: Sequence[str] | None) -> tuple[ISA, ...]:
    """The instruction sets, best first; the portable one is always among them."""
    wanted = set(names if names is not None else ISAS) | {"portable"}
    unknown = sorted(wanted - ISAS.keys())
    if unknown:
        raise TargetError(f"unknown instruction set {unknown[0]!r}: expected some of {', '.join(ISAS)}.")
    return tuple(isa for isa in ISAS.values() if isa.name in wanted)
