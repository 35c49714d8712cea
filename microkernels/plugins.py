"""What installed packages offer poly through entry points: found by group and name, with errors that name the package.

A group is read only when a name is looked up that poly does not know itself. An entry point's name is the name that
users write, and its value points to an object of a module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from microkernels.errors import PluginError, PolyError, shown


def names(group: str) -> list[str]:
    """The names that packages offer in a group."""
    return sorted(entry_points(group=group).names)


def load(group: str, name: str, fits: Callable[[Any], bool], what: str) -> Any:
    """What a package offers under a name; None if none does. `what` says in words which objects `fits` accepts.

    Raises PluginError if it cannot be imported, or if it is something else.
    """
    for entry in entry_points(group=group, name=name):
        try:
            loaded = entry.load()
        except (Exception, SystemExit) as error:  # a package's module may raise anything
            problem = f"{type(error).__name__}: {error}"
            raise PluginError(f"{_told(entry)} cannot be loaded: {problem}. Mend it, or uninstall it.") from error
        if not fits(loaded):
            raise PluginError(f"{_told(entry)} is no {what}: it is {shown(loaded)}. Mend it, or uninstall it.")
        return loaded
    return None


@contextmanager
def blamed(plugin: str) -> Iterator[None]:
    """Raise PluginError that names `plugin` for every error inside that is not poly's own."""
    try:
        yield
    except PolyError:
        raise
    except Exception as error:  # a plugin may raise anything
        raise PluginError(f"{plugin} failed: {type(error).__name__}: {error}.") from error


def _told(entry: EntryPoint) -> str:
    package = f" of {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
    return f"the entry point {entry.name} of the group {entry.group}, {entry.value}{package},"
