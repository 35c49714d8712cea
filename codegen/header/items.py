"""Our own C text as its top-level items: what each defines, and what it uses.

It is no parser of C: it relies on the way in which this package lays out text. An item starts in column 0, and ends
with the line on which its braces and parentheses are closed and that ends in `;` or `}`. A comment belongs to the item
below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

WORD = re.compile(r"\b[A-Za-z_]\w*\b")
STATEMENT_END = (";", "}")


@dataclass(frozen=True)
class Item:
    """A function, a type or some constants; `names` are what it defines."""

    names: tuple[str, ...]
    text: str

    @property
    def words(self) -> frozenset[str]:
        """Every identifier in it."""
        return frozenset(WORD.findall(without_comments(self.text)))

    def renamed(self, names: Mapping[str, str]) -> Item:
        """The item with identifiers replaced, in its comments too."""
        text = WORD.sub(lambda found: names.get(found.group(), found.group()), self.text)
        return Item(tuple(names.get(name, name) for name in self.names), text)


def items(text: str) -> list[Item]:
    """The items of a text, in order; include guards and `#include` lines are left out."""
    found: list[Item] = []
    lines: list[str] = []
    for line in text.split("\n"):
        if not lines and (not line.strip() or line.startswith("#")):
            continue
        lines.append(line)
        body = without_comments("\n".join(lines)).strip()
        if body and _closed(body):
            found.append(Item(_defined(body), "\n".join(lines)))
            lines = []
    assert not without_comments("\n".join(lines)).strip(), f"an item has no end: {lines}"
    return found


def used(known: Iterable[Item], roots: Iterable[str]) -> list[Item]:
    """The items that the names in `roots` need, directly or through others, in their order."""
    known = list(known)
    by_name = {name: item for item in known for name in item.names}
    wanted: set[str] = set()
    todo = [name for name in roots if name in by_name]
    while todo:
        item = by_name[todo.pop()]
        if not wanted.issuperset(item.names):
            wanted.update(item.names)
            todo += [word for word in item.words if word in by_name and word not in wanted]
    return [item for item in known if wanted.intersection(item.names)]


def without_comments(text: str) -> str:
    """The text without comments; one that is not ended yet goes as far as the text."""
    return re.sub(r"/\*.*?(\*/|\Z)", " ", text, flags=re.DOTALL)


def without_attributes(text: str) -> str:
    """The text without `__attribute__((…))`."""
    head, found, rest = text.partition("__attribute__")
    if not found:
        return text
    depth = 0
    for at, mark in enumerate(rest):
        depth += (mark == "(") - (mark == ")")
        if mark == ")" and depth == 0:
            return head + without_attributes(rest[at + 1 :])
    return head


def _closed(body: str) -> bool:
    depth = sum(body.count(mark) for mark in "{(") - sum(body.count(mark) for mark in "})")
    return depth == 0 and body.endswith(STATEMENT_END)


def _defined(body: str) -> tuple[str, ...]:
    """The names that an item without comments defines."""
    plain = without_attributes(body)
    if plain.startswith("enum"):
        inside = plain[plain.index("{") + 1 : plain.rindex("}")]
        return tuple(match[1] for match in re.finditer(r"(?:^|,)\s*(\w+)", inside))
    if plain.startswith("typedef"):
        return (WORD.findall(plain)[-1],)
    head = plain[: plain.index("(")]
    return (WORD.findall(head)[-1],)
