"""`FILE.py:NAME`: the nest of that name in a Python file."""

from __future__ import annotations

import difflib
import importlib.util
import sys
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


def load_nest(where: str) -> Nest:
    """The nest that `FILE.py:NAME` means; the file is run, as an import would.

    Raises SpecError where the text has another form, the file is missing or fails, or holds no nest of that name.
    """
    file, colon, name = where.rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise SpecError(f"{where!r} is not of the form FILE.py:NAME, as in gemm.py:matmul")
    nests = {key: value for key, value in vars(_run(Path(file))).items() if isinstance(value, Nest)}
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
    try:
        spec.loader.exec_module(module)
    except PolyError:
        raise
    except BROKEN as error:
        raise SpecError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    return module
