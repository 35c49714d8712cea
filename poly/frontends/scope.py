"""The meaning of names at one place in the loops."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from codegen.ir.integer import Affine, Int
from poly.errors import SpecError
from poly.frontends.source import Source
from poly.ir.nest import Array


@dataclass(frozen=True, eq=False)
class Loop:
    """`for name in range(...)`: `max(lower) <= name < min(upper)`, in steps of `step` from the first iteration.

    Loops are compared by identity, since two of them may look the same.
    """

    name: str
    lower: tuple[Int, ...]
    upper: tuple[Int, ...]
    step: int = 1

    @property
    def first(self) -> Int:
        """The index of the first iteration of a loop whose step is not 1."""
        return self.lower[0] if self.step > 0 else self.upper[0] - 1


@dataclass(frozen=True)
class Local:
    """A local of the user's function, as an array over the `loops` around its definition.

    `prefix` has the array's leading indices, one for each loop; `rank` is the number of indices that the user writes.
    """

    array: Array
    loops: tuple[Loop, ...]
    prefix: tuple[Affine, ...]
    rank: int


@dataclass(frozen=True)
class Scope:
    """The names in scope: indices of `loops`, `arguments`, `constants` from outside the function, and `locals`.

    `functions` maps the permitted calls, as written (`np.exp`), to the functions that they stand for.
    """

    source: Source
    arguments: Mapping[str, Array]
    constants: Mapping[str, Affine | float]
    functions: Mapping[str, str]
    locals: Mapping[str, Local]
    loops: tuple[Loop, ...] = ()
    assigned: frozenset[str] = frozenset()
    """The arrays of local scalars that are certain to have a value here."""

    @property
    def indices(self) -> tuple[str, ...]:
        """The indices of the loops, outermost first."""
        return tuple(loop.name for loop in self.loops)

    def is_index(self, name: str) -> bool:
        return name in self.indices

    def encloses(self, local: Local) -> bool:
        """Whether the loops around the local's definition are still running here."""
        return local.loops == self.loops[: len(local.loops)]

    def undeclared(self, node: ast.Name) -> SpecError:
        return self.source.error(
            node,
            f"`{node.id}` is not declared here",
            "Use a loop's index, an argument, a local with a value, a size made by poly.sizes, or a global number.",
        )

    def unordered(self, node: ast.Compare) -> SpecError:
        """The error for a comparison that is not of numbers, such as `in`."""
        return self.source.error(
            node,
            f"`{ast.unparse(node)}` uses a comparison that is not one of < <= > >= == !=",
            "Write it with these, joined by and, or, not.",
        )

    def ended(self, node: ast.Name, local: Local) -> SpecError:
        """The error for a local that is used outside the loop to which it belongs."""
        return self.source.error(
            node,
            f"`{node.id}` belongs to the loop over `{local.loops[-1].name}`, which does not run here",
            f"Define `{node.id}` before that loop, or once more here.",
        )
