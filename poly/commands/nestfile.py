"""`FILE.py:NAME` and `FILE.c:NAME`: the nest with that name in a Python file, and that of a C function."""

from __future__ import annotations

import difflib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from microkernels.errors import plain, shown
from poly.errors import PolyError, SpecError
from poly.ir.nest import Nest

MODULE = "poly_nest_file"
C = ".c"
LONGEST = 500
"""The most characters shown of an error that a user's file raises."""


@dataclass(frozen=True)
class NestFile:
    """Nests from a file, each named like its variable there, and the user's files from which they were read."""

    nests: tuple[Nest, ...]
    sources: tuple[Path, ...]


def open_nests(where: str) -> NestFile:
    """The nest at `FILE.py:NAME`, or all nests in `FILE.py`, in the file's order; the one nest of `FILE.c`.

    Raises SpecError as `load_nest` does, and if a file has no nest.
    """
    file, _, name = where.rpartition(":")
    if file and name.isidentifier():
        nests = {name: load_nest(where)}
        path = Path(file)
    else:
        path = Path(where)
        nests = _of_c(path, None) if path.suffix == C else _nests(_run(path))
        if not nests:
            raise SpecError(
                f"{plain(str(path))} has no nest: decorate a function with @poly.nest, or name a poly.einsum"
            )
    return NestFile(tuple(replace(nest, name=key) for key, nest in nests.items()), _sources(path))


def _nests(module: ModuleType) -> dict[str, Nest]:
    """The nests of a module by name; a nest with several names has the first."""
    found: dict[str, Nest] = {}
    for key, value in vars(module).items():
        if isinstance(value, Nest) and not any(value is other for other in found.values()):
            found[key] = value
    return found


def _sources(path: Path) -> tuple[Path, ...]:
    """The file, and the modules in or below its directory that it has imported."""
    if path.suffix == C:
        return (path,)
    folder = path.resolve().parent
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    beside = {Path(file) for file in files if file and folder in Path(file).parents and Path(file) != path.resolve()}
    own = {module for module in beside if "site-packages" not in module.parts}
    return (path, *sorted(own))


def load_nest(where: str) -> Nest:
    """The nest at `FILE.py:NAME`, where the file is run, as by an import, or at `FILE.c:NAME`.

    Raises SpecError if the text has another form, the file is missing or fails, or it has no nest with that name.
    """
    file, name = _split(where)
    path = Path(file)
    nests = _of_c(path, name) if path.suffix == C else _nests(_run(path))
    if name not in nests:
        raise SpecError(
            f"{plain(file)} has no nest {shown(name)}; it has {', '.join(nests) or 'none'}.{_hint(name, nests)}"
        )
    return nests[name]


def load_value(where: str) -> Any:
    """The value of any kind at `FILE.py:NAME`. Raises SpecError as `load_nest` does."""
    file, name = _split(where)
    values = vars(_run(Path(file)))
    if name not in values:
        raise SpecError(f"{plain(file)} has no {shown(name)}.{_hint(name, values)}")
    return values[name]


def _split(where: str) -> tuple[str, str]:
    file, colon, name = where.rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise SpecError(f"{shown(where)} is not of the form FILE.py:NAME, as in gemm.py:matmul")
    return file, name


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _of_c(path: Path, function: str | None) -> dict[str, Nest]:
    """The nest of a function of a C file, or of the one function that has a scop, by its name."""
    from poly.frontends.c.read import read_c  # pycparser is not needed otherwise

    nest = read_c(path, function)
    return {nest.name: nest}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the name is too long for a file
        return False


def _line(path: Path, error: BaseException) -> str:
    """`:12`, the line at which the file failed; empty if it is not known."""
    steps = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        steps.append((error.filename, error.lineno))
    lines = [number for file, number in steps if Path(file).absolute() == path.absolute()]
    return f":{lines[-1]}" if lines else ""


def _words(error: BaseException) -> str:
    """The error as Python shows it at the end of a traceback."""
    text = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    printable = text.removeprefix(f"{MODULE}.").encode(errors="backslashreplace").decode()
    return printable if len(printable) <= LONGEST else f"{printable[:LONGEST]}…"


def _run(path: Path) -> ModuleType:
    if not _is_file(path):
        raise SpecError(f"there is no file {plain(str(path))}")
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"{plain(str(path))} is no Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # as for `python FILE.py`: modules beside the file can be imported
    try:
        spec.loader.exec_module(module)
    except PolyError:
        raise
    except (Exception, SystemExit) as error:  # the user's file may raise anything
        raise SpecError(f"{path}{_line(path, error)} cannot be run: {_words(error)}") from error
    finally:
        with suppress(ValueError):
            sys.path.remove(folder)
    return module
