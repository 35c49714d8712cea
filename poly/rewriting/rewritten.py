"""`poly optimize`: a C file's scops read, scheduled, and replaced by calls of their kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codegen.ir.program import Threading
from poly.errors import FileError, PolyError
from poly.rewriting.check import Checked, checked
from poly.rewriting.kernels import Kernels, kernels
from poly.rewriting.scops import CFile, read_file
from poly.rewriting.text import Settings, edits, prelude, rewritten


@dataclass(frozen=True)
class Rewritten:
    """A C file and its new text, in which each scop that has a kernel calls it; `checks` are those of these scops."""

    file: CFile
    kernels: Kernels
    text: str
    checks: Mapping[str, Checked]

    @property
    def problems(self) -> tuple[PolyError, ...]:
        """Why some scops and pragmas stay as they are."""
        return (*(scop.problem for scop in self.kernels.scops if scop.problem is not None), *self.file.stray)


def read_text(path: Path) -> str:
    """The text of a file, with each byte that is no UTF-8 as a surrogate. Raises FileError."""
    try:
        return path.read_bytes().decode(errors="surrogateescape")
    except OSError as error:
        raise FileError(f"{path} can't be read: {error.strerror or error}. Give the path of a C file.") from error


def rewrite(
    path: Path,
    include: Sequence[Path] = (),
    define: Mapping[str, object] | None = None,
    *,
    isas: Sequence[str] | None = None,
    threads: Threading = "none",
    cores: int | None = None,
    reassociate: bool = True,
    check: bool = False,
) -> Rewritten:
    """The new text of a C file; with `check`, each kernel is compared with the loops that it replaces.

    Raises:
        FileError: the file can't be read.
        SpecError: it is no C that poly can read, or has no scop.
        ToolchainError: there is no compiler.
    """
    settings = Settings((path.parent, *include), define or {})
    original = read_text(path)
    settings.says(("-fsyntax-only",), original, str(path), reading=False)
    file = read_file(original, str(path), settings.folders, settings.define, reassociate)
    made = kernels(file, isas, threads, cores)
    if not made.header.routines:
        return Rewritten(file, made, file.text, {})
    found, before = edits(file, made, settings), prelude(file, made, settings)
    text = rewritten(file, made, found, before)
    settings.says(("-fsyntax-only",), text, str(path), reading=False)
    checks = checked(file, made, found, before, settings) if check else {}
    return Rewritten(file, made, text, checks)
