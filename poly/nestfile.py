"""`FILE.py:NAME`: the nest of that name in a Python file."""

from __future__ import annotations

import difflib
import importlib.util
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from poly.errors import PolyError, SpecError
from poly.nest import Nest

MODULE = "poly_nest_file"
BROKEN = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What running a user's file may raise by the user's mistake."""


@dataclass(frozen=True)
class NestFile:
    """Nests from a file, each under the name that it has there, and the user's files that they were read from."""

    nests: tuple[Nest, ...]
    sources: tuple[Path, ...]


def open_nests(where: str) -> NestFile:
    """The nest that `FILE.py:NAME` means, or all nests in `FILE.py` in the order in which they stand there.

    Raises SpecError as `load_nest`, and where a file holds no nest.
    """
    file, _, name = where.rpartition(":")
    if file and name.isidentifier():
        nests = {name: load_nest(where)}
        path = Path(file)
    else:
        path = Path(where)
        nests = _nests(_run(path))
        if not nests:
            raise SpecError(f"{path} has no nest: decorate a function with @poly.nest, or name a poly.einsum")
    return NestFile(tuple(replace(nest, name=key) for key, nest in nests.items()), _sources(path))


def _nests(module: ModuleType) -> dict[str, Nest]:
    """The nests of a module by their names; one with several has the first."""
    found: dict[str, Nest] = {}
    for key, value in vars(module).items():
        if isinstance(value, Nest) and not any(value is other for other in found.values()):
            found[key] = value
    return found


def _sources(path: Path) -> tuple[Path, ...]:
    """The file, and the modules beside it or below that it has imported."""
    folder = path.resolve().parent
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    beside = {Path(file) for file in files if file and folder in Path(file).parents and Path(file) != path.resolve()}
    own = {module for module in beside if "site-packages" not in module.parts}
    return (path, *sorted(own))


def load_nest(where: str) -> Nest:
    """The nest that `FILE.py:NAME` means; the file is run, as an import would.

    Raises SpecError where the text has another form, the file is missing or fails, or holds no nest of that name.
    """
    file, colon, name = where.rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise SpecError(f"{where!r} is not of the form FILE.py:NAME, as in gemm.py:matmul")
    nests = _nests(_run(Path(file)))
    if name not in nests:
        close = difflib.get_close_matches(name, nests, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise SpecError(f"{file} has no nest {name!r}; it has {', '.join(nests) or 'none'}.{hint}")
    return nests[name]


def _run(path: Path) -> ModuleType:
    if not path.is_file():
        raise SpecError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"{path} is no Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # as for `python FILE.py`: modules beside the file can be imported
    try:
        spec.loader.exec_module(module)
    except PolyError:
        raise
    except BROKEN as error:
        raise SpecError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    finally:
        with suppress(ValueError):
            sys.path.remove(folder)
    return module
