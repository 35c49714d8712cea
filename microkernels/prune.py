"""Removal of the functions, types and constants that a C text does not use.

This is no C parser: it relies on the layout of our own texts. An item begins in column 0 and ends with the line that
closes its brackets and ends in `;` or `}`. A comment belongs to the item below it; one followed by an empty line or an
`#include` heads its part, which is the text that an include guard encloses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

NO_CODE = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
INNER = r"(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*"
ATTRIBUTE = re.compile(rf"(?:__attribute__|_Pragma)\s*\({INNER}\)")
DIRECTIVE = re.compile(r"^#(?:[^\n]*\\\n)*[^\n]*\n?", re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w*")
GUARDED = re.compile(r"#ifndef (\w+)\n#define \1\n(.*)#endif\n?", re.DOTALL)


@dataclass(frozen=True)
class Item:
    """A function, type, constant or directive with the comment above it, or a comment that heads its part.

    `names` are what it defines and `code` is its text without comments and strings; `part` is the include guard around
    it, if any; `spaced` says whether an empty line precedes it.
    """

    text: str
    code: str
    names: frozenset[str]
    part: str
    spaced: bool

    @property
    def is_comment(self) -> bool:
        return not self.code

    @property
    def words(self) -> frozenset[str]:
        return frozenset(WORD.findall(self.code))


def pruned(text: str, roots: Iterable[str]) -> str:
    """The items of a C text that the functions `roots` need, in the text's order, each once, without include guards.

    Directives stay, except for definitions of unused macros. Raises ValueError if a root is not defined, or if a name
    has two different definitions: with include guards, the first would silently win.
    """
    items = different(items_of(text))
    check(items, frozenset(roots))
    used = reachable(items, frozenset(roots))
    parts = {item.part for item in items if item.names & used}
    kept = [item for item in items if (item.part in parts if item.is_comment else not item.names or item.names & used)]
    return "".join("\n" * item.spaced + item.text for item in kept).lstrip("\n")


def different(items: Iterable[Item]) -> list[Item]:
    """The items without repetitions. Directives may repeat, except for an `#include`, or an `#if` with definitions."""
    known: dict[object, Item] = {}
    for item in items:
        once = item.code.startswith("#include") or (item.code.startswith("#if") and item.names)
        anywhere = item.code.startswith("#") and not once
        known.setdefault(len(known) if anywhere else item.text, item)
    return list(known.values())


def check(items: list[Item], roots: frozenset[str]) -> None:
    definitions: dict[str, Item] = {}
    for item in items:
        is_prototype = not item.code.startswith(("typedef", "#")) and not {"{", "="} & set(item.code)
        for name in sorted(item.names) if not is_prototype else ():
            if definitions.setdefault(name, item) is not item:
                raise ValueError(f"the text defines {name} in two ways")
    missing = roots - definitions.keys()
    if missing:
        raise ValueError(f"the text does not define {', '.join(sorted(missing))}")


def reachable(items: list[Item], roots: frozenset[str]) -> frozenset[str]:
    """The names that the roots and the directives use, directly or indirectly."""
    uses: dict[str, set[str]] = {}
    for item in items:
        for name in item.names:
            uses.setdefault(name, set()).update(item.words)
    waiting = {word for item in items if not item.names for word in item.words} | roots
    used: set[str] = set()
    while waiting:
        used |= waiting
        waiting = {word for name in waiting & uses.keys() for word in uses[name]} - used
    return frozenset(used)


def items_of(text: str, part: str = "") -> Iterator[Item]:
    """The items of a text, in order."""
    comment, spaced = "", bool(part)
    for chunk in [*chunks(text), "\n"]:
        code = NO_CODE.sub(" ", chunk).strip()
        guarded = GUARDED.fullmatch(chunk)
        if comment and (guarded or chunk.isspace() or chunk.startswith("#include")):
            yield Item(comment, "", frozenset(), part, spaced)
            comment, spaced = "", False
        if guarded:
            yield from items_of(guarded[2], guarded[1])
            spaced = False
        elif code:
            yield Item(comment + chunk, code, defined(code), part, spaced)
            comment, spaced = "", False
        elif chunk.isspace():
            spaced = True
        else:
            comment += chunk


def chunks(text: str) -> Iterator[str]:
    """Lines that belong together: an item, a comment, a directive, or an `#if` up to its `#endif`."""
    chunk = ""
    for line in text.splitlines(keepends=True):
        chunk += line
        if is_whole(chunk):
            yield chunk
            chunk = ""
    if chunk:
        raise ValueError(f"the text ends within {chunk.splitlines()[0]!r}")


def is_whole(chunk: str) -> bool:
    if chunk.startswith("#if"):
        return len(re.findall("^#if", chunk, re.MULTILINE)) == len(re.findall("^#endif", chunk, re.MULTILINE))
    if chunk.startswith("#"):
        return not chunk.endswith("\\\n")
    if chunk.startswith("/*") and "*/" not in chunk:
        return False
    code = NO_CODE.sub(" ", chunk).strip()
    closed = all(code.count(a) == code.count(b) for a, b in ("()", "[]", "{}"))
    return not code or (closed and code.endswith((";", "}")))


def defined(code: str) -> frozenset[str]:
    """The names that an item defines."""
    if code.startswith("#if"):
        macros = frozenset(re.findall(r"^#define (\w+)", code, re.MULTILINE))
        return macros.union(*(item.names for item in items_of(DIRECTIVE.sub("", code))))
    if code.startswith("#"):
        return frozenset(re.findall(r"^#define (\w+)", code))
    code = ATTRIBUTE.sub(" ", code).strip()
    if code.startswith("enum"):
        enumerators = code[code.index("{") + 1 : code.rindex("}")].split(",")
        return frozenset(found[0] for found in map(WORD.search, enumerators) if found)
    if code.startswith("typedef"):
        return frozenset(WORD.findall(code)[-1:])
    return frozenset(WORD.findall(re.split(r"[({=\[;]", code)[0])[-1:])
