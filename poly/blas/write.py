"""Write BLAS routines to a header file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from codegen.ir.program import Threading
from microkernels.errors import plain
from poly.checks import checked_choice, checked_path, is_collection
from poly.embed.files import write_output
from poly.embed.naming import checked_prefix
from poly.embed.write import chosen_isas
from poly.errors import SpecError
from poly.version import RELEASE

ROUTINES = ("gemm", "gemv", "syrk")
"""The available BLAS routines, each for float and double."""


def write_blas(
    path: str | Path,
    names: Sequence[str],
    *,
    prefix: str | None = None,
    isas: Sequence[str] | None = None,
    threads: Threading = "openmp",
) -> Path:
    """Write BLAS routines with CBLAS's names and semantics as a single C header, and return its path.

    `names` are some of "gemm", "gemv" and "syrk". All names in the file that are not CBLAS's begin with `prefix`
    (default: the file's name). `isas` and `threads` are as for `Kernel.write_header`. The same arguments give the same
    bytes.

    Raises:
        SpecError: an unknown routine, or a prefix that is not a C identifier.
        ArgumentError: not a path, or an invalid `threads`.
        TargetError: an unknown instruction set.
        FileError: the file cannot be written; an existing one is left unchanged.
    """
    from codegen.package.values import Header
    from poly.blas.routines import routines
    from poly.blas.text import blas_text

    target, wanted, chosen = checked_path("the path of the header", path), checked_names(names), chosen_isas(isas)
    checked_choice("threads", threads, get_args(Threading))
    made = routines(wanted, chosen, 1 if threads == "none" else 2)
    header = Header(checked_prefix(target.stem if prefix is None else prefix), made, chosen, threads, RELEASE)
    write_output(target, blas_text(header, wanted))
    return target


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """The routines in the order of `ROUTINES`, each once. Raises SpecError."""
    wanted = set()
    for name in names if is_collection(names) else (names,):
        if not isinstance(name, str) or name not in ROUTINES:
            raise SpecError(f"BLAS routines to choose from are {', '.join(ROUTINES)}, not {plain(name)}.")
        wanted.add(name)
    if not wanted:
        raise SpecError(f"BLAS routines to choose from are {', '.join(ROUTINES)}, not none.")
    return tuple(name for name in ROUTINES if name in wanted)
