"""Write kernels to a header file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from codegen.ir.program import Threading
from microkernels.errors import TargetError, shown
from microkernels.isa import ISA, ISAS, find
from poly.checks import checked_choice, checked_flag, checked_path, is_collection
from poly.embed.files import write_output
from poly.embed.group import groups
from poly.embed.naming import check_arguments, checked_prefix, function_names
from poly.errors import SpecError
from poly.machine import machine
from poly.scheduled import Scheduled
from poly.version import RELEASE

if TYPE_CHECKING:
    from codegen.package import Header


def write_header(
    path: str | Path,
    kernels: Scheduled | Iterable[Scheduled],
    *,
    prefix: str | None = None,
    isas: Sequence[str] | None = None,
    threads: Threading | None = None,
    dense: bool = False,
) -> Path:
    """Write kernels as a single C header, and return its path.

    Kernels of one nest become one function: the one with open sizes serves any call, and those with fixed sizes take
    over for calls with their sizes. Every name in the file begins with `prefix` (default: the nest's name, or the
    file's if there are several nests). `isas` are the instruction sets, of "avx512", "avx2", "neon" and "portable"
    (default: all; "portable" is always included). `threads` says how parallel loops run: "openmp", "pthreads" or "none"
    (default: "openmp", or "none" if the kernels were compiled for one thread). With `dense`, the functions take no
    strides. The same kernels give the same bytes.

    Raises:
        SpecError: not a kernel, a nest without results, kernels that don't go together, a prefix that is not a C
            identifier, or names that clash.
        TargetError: an unknown instruction set.
        ArgumentError: not a path, or an invalid `threads` or `dense`.
        FileError: the file cannot be written; an existing one is left unchanged.
    """
    from codegen.package.header.text import header_text

    target = checked_path("the path of the header", path)
    write_output(target, header_text(make(target.stem, listed(kernels), prefix, isas, threads, dense)))
    return target


def make(
    stem: str,
    kernels: Sequence[Scheduled],
    prefix: str | None = None,
    isas: Sequence[str] | None = None,
    threads: Threading | None = None,
    dense: bool = False,
) -> Header:
    """The header as a value; `stem` is its file's name without the suffix. Raises the errors of `write_header`."""
    from codegen.package import Header
    from poly.embed.routine import levels, routine

    found = groups(kernels)
    chosen = chosen_isas(isas)
    compact = checked_flag("dense", dense)
    way = _threading(threads) or ("openmp" if any(kernel.threads > 1 for kernel in kernels) else "none")
    own = checked_prefix(
        prefix if prefix is not None else (found[0].name if len(found) == 1 else re.sub(r"\W", "_", stem))
    )
    names = function_names([group.name for group in found], own)
    for group in found:
        check_arguments(group.base.nest, own)
    most = 1 if way == "none" else None
    routines = tuple(routine(group, name, own, chosen, most, compact) for group, name in zip(found, names, strict=True))
    return Header(own, routines, levels(chosen, routines), way, RELEASE, machine().cpu)


def listed(kernels: Scheduled | Iterable[Scheduled]) -> list[Scheduled]:
    """The kernels as a list. Raises SpecError for anything else, and for kernels whose operand was packed before."""
    listed = []
    for kernel in kernels if is_collection(kernels) else (kernels,):
        if not isinstance(kernel, Scheduled):
            raise SpecError(f"{shown(kernel)} is no kernel: make one with poly.compile or poly.tune.")
        if kernel.packed_before:
            raise SpecError(
                f"the functions in a file take {kernel.packed_before}, which this kernel of {kernel.nest.name} leaves "
                "out. Remedy: pass the kernel before prepack, whose functions pack it in each call."
            )
        listed.append(kernel)
    return listed


def _threading(given: Any) -> Threading | None:
    return None if given is None else cast(Threading, checked_choice("threads", given, get_args(Threading)))


def chosen_isas(names: Sequence[str] | None) -> tuple[ISA, ...]:
    """The instruction sets, best first, always with the portable one."""
    wanted = {"portable"}
    for name in ISAS if names is None else names if is_collection(names) else (names,):
        if not isinstance(name, str) or name not in ISAS:
            if isinstance(name, str) and find(name) is not None:
                raise TargetError(f"a header asks the CPU only for poly's own instruction sets, and {name} is none.")
            raise TargetError(f"unknown instruction set {shown(name)}: expected some of {', '.join(ISAS)}.")
        wanted.add(name)
    return tuple(isa for isa in ISAS.values() if isa.name in wanted)
