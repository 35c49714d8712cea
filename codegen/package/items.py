"""The items of our own C text: functions, types and constants, each with the names that it defines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from microkernels.prune import WORD, Item, items_of, reachable


def items(text: str) -> list[Item]:
    """The items of a text, in order, without directives and comments that head its parts."""
    return [item for item in items_of(text) if item.names and not item.code.startswith("#")]


def used(known: Iterable[Item], roots: Iterable[str]) -> list[Item]:
    """The items that the names in `roots` need, directly or indirectly, in order."""
    known = list(known)
    wanted = reachable(known, frozenset(roots))
    return [item for item in known if item.names & wanted]


def renamed(item: Item, names: Mapping[str, str]) -> Item:
    """The item with identifiers replaced, in its comments too."""

    def other(text: str) -> str:
        return WORD.sub(lambda found: names.get(found.group(), found.group()), text)

    own = frozenset(names.get(name, name) for name in item.names)
    return replace(item, text=other(item.text), code=other(item.code), names=own)
