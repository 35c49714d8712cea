"""The types that system headers declare, for a text that is read without these headers."""

from __future__ import annotations

import re
from collections.abc import Collection

UNKNOWN = "struct type_unknown_to_poly"
"""What a type is that no loop can use."""
BASIC = frozenset(
    {"char", "short", "int", "long", "float", "double", "signed", "unsigned", "_Bool", "const", "volatile"}
)
BLOCK = re.compile(r"\{[^{}]*\}")
TYPEDEF = re.compile(r"\btypedef\b([^;]*);")
DECLARED = re.compile(r"(?:\(\s*\*\s*(\w+)\s*\)\s*\(.*\)|\b(\w+)\s*(?:\[[^\]]*\]\s*)*)$", re.DOTALL)
COMPILERS_OWN = ("__float128", "_Float16", "_Float32", "_Float64", "_Float128")


def declared_types(system: str, wanted: Collection[str], known: Collection[str]) -> str:
    """Declarations of the `wanted` types that preprocessed system headers have and that are not `known`.

    A type that is a number keeps its declaration; any other is a structure about which nothing is known.
    """
    while BLOCK.search(system):
        system = BLOCK.sub(" ", system)
    numbers: dict[str, str] = {}
    found: dict[str, str] = {name: f"typedef {UNKNOWN} {name};" for name in COMPILERS_OWN}
    for body in TYPEDEF.findall(system):
        declared = DECLARED.search(body.strip())
        if declared is None:
            continue
        name, words = declared[1] or declared[2], body.split()
        is_number = words[-1:] == [name] and all(word in BASIC or word in numbers for word in words[:-1])
        if is_number:
            numbers[name] = " ".join(numbers.get(word, word) for word in words[:-1])
        found[name] = f"typedef {numbers[name]} {name};" if is_number else f"typedef {UNKNOWN} {name};"
    return "".join(text for name, text in found.items() if name in wanted and name not in known)
