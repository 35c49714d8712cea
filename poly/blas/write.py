"""BLAS routines to a header file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codegen.files import write_file
from poly.embed.naming import checked_prefix
from poly.embed.write import chosen_isas
from poly.errors import SpecError
from poly.version import __version__

if TYPE_CHECKING:
    from codegen.program import Threading

ROUTINES = ("gemm", "gemv", "syrk")
"""The BLAS routines that there are, each for float and double."""


def write_blas(
    path: str | Path,
    names: Sequence[str],
    *,
    prefix: str | None = None,
    isas: Sequence[str] | None = None,
    threads: Threading = "openmp",
) -> Path:
    """Write BLAS routines with CBLAS's names and semantics as one C header to embed, and return its path.

    `names` are some of "gemm", "gemv" and "syrk". All names in the file that are not CBLAS's begin with `prefix`
    (default: the file's name). `isas` and `threads` are those of `Kernel.write_header`. The same arguments give the
    same bytes.

    Raises:
        SpecError: an unknown routine, or a prefix that is no C identifier.
        TargetError: an unknown instruction set.
        OSError: the file cannot be written; then it is as it was.
    """
    from codegen.header.values import Header
    from poly.blas.routines import routines
    from poly.blas.text import blas_text

    target, wanted, chosen = Path(path), checked_names(names), chosen_isas(isas)
    made = routines(wanted, chosen, 1 if threads == "none" else 2)
    header = Header(checked_prefix(prefix or target.stem), made, chosen, threads, __version__)
    write_file(target, blas_text(header, wanted))
    return target


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """The routines in our order, each once. Raises SpecError."""
    unknown = sorted(set(names) - set(ROUTINES))
    if unknown or not names:
        raise SpecError(f"BLAS routines to choose from are {', '.join(ROUTINES)}, not {', '.join(unknown) or 'none'}.")
    return tuple(name for name in ROUTINES if name in names)
