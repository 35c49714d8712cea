"""The packages that are installed beside this one, which a file of the user's with the same name would hide.

It imports nothing of theirs, so that it can tell what is wrong.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

SIBLINGS = ("codegen", "microkernels")
"""The packages without which nothing works."""

HOME = Path(__file__).resolve().parent.parent
"""The folder that contains `poly` and the packages beside it."""


def need_siblings() -> None:
    """Raise ImportError if Python finds something else under the name of a package of ours, or nothing."""
    for name in SIBLINGS:
        problem = hidden(name)
        if problem is None and _place(name) is None:
            problem = f"poly's package {name!r} is missing from {HOME}: install poly again"
        if problem:
            raise ImportError(problem, name=name)


def hidden(name: str, home: Path = HOME) -> str | None:
    """What hides the package `name` of the folder `home`, and what to do about it; None if nothing does."""
    place = _place(name)
    ours = home / name
    if place is None or place.resolve() in (ours, ours / "__init__.py"):
        return None
    remedy = f"rename it, or start Python where {place.parent} is not first in sys.path"
    return f"{place} hides poly's package {name!r} in {ours}: {remedy}"


def _place(name: str) -> Path | None:
    """The file or folder that `import name` reads; None if there is none."""
    loaded = sys.modules.get(name)
    spec: ModuleSpec | None = loaded.__spec__ if loaded else find_spec(name)
    if spec is None:
        file = getattr(loaded, "__file__", None)
        return Path(file) if file else None
    if spec.origin and spec.has_location:
        return Path(spec.origin)
    return next((Path(folder) for folder in spec.submodule_search_locations or ()), None)
