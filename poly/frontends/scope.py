"""What the names mean at one place of the loops."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from codegen.affine import Affine
from poly.frontends.source import Source
from poly.nest import Array


@dataclass(frozen=True, eq=False)
class Loop:
    """`for name in range(...)`: `max(lower) <= name < min(upper)`, every `step`-th from the first one that runs.

    Compared by identity: two loops may look the same.
    """

    name: str
    lower: tuple[Affine, ...]
    upper: tuple[Affine, ...]
    step: int = 1


@dataclass(frozen=True)
class Local:
    """A local of the user's, as an array over the `loops` around its definition.

    `prefix` are the array's leading indices, one for each loop; `rank` the number of indices that the user writes.
    """

    array: Array
    loops: tuple[Loop, ...]
    prefix: tuple[Affine, ...]
    rank: int


@dataclass(frozen=True)
class Scope:
    """The names that may be used: indices of `loops`, `arguments`, `constants` from around the function, `locals`."""

    source: Source
    loops: tuple[Loop, ...]
    arguments: Mapping[str, Array]
    constants: Mapping[str, Affine | float]
    locals: Mapping[str, Local]
    assigned: frozenset[str]
    """The local scalars that surely have a value here."""

    def is_index(self, name: str) -> bool:
        return any(loop.name == name for loop in self.loops)

    def undeclared(self, node: ast.Name) -> Exception:
        return self.source.error(
            node,
            f"`{node.id}` is not declared here",
            "Use a loop's index, an argument, a local with a value, a size made by poly.sizes, or a global number.",
        )
