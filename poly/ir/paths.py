"""The positions of statements in a loop tree, and the order in which the tree runs their instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

import islpy as isl

from poly.ir.nest import Nest
from poly.ir.tree import Band, Copy, Leaf, Micro, Node, Sequence, only_loops


@dataclass(frozen=True)
class Position:
    """A position in a sequence."""

    index: int


Path = tuple[Band | Position, ...]
"""The loops and sequence positions from the root down to a statement."""


def paths(tree: Node) -> dict[str, Path]:
    """The path of each statement, in textual order.

    It includes the loops that a microkernel absorbs: rows, columns, then those of the reduction.
    """
    found: dict[str, Path] = {}
    _collect(tree, (), found)
    return found


def loops_around(tree: Node, statement: str) -> tuple[Band, ...]:
    """The loops around a statement, outermost first, with those that a microkernel absorbs."""
    return only_loops(paths(tree)[statement])


def names_around(tree: Node, statement: str) -> list[str]:
    """The names of the loops around a statement, outermost first, with those that a microkernel absorbs."""
    return loop_names(paths(tree)[statement])


def loop_names(path: Path) -> list[str]:
    """The names of the loops of a path, outermost first."""
    return [band.name for band in only_loops(path)]


def loops_outside(path: Path, loop: str) -> tuple[Band, ...]:
    """The loops of a path around one of them."""
    return tuple(takewhile(lambda band: band.name != loop, only_loops(path)))


def _collect(node: Node, above: Path, found: dict[str, Path]) -> None:
    match node:
        case Leaf(name):
            found[name] = above
        case Micro(statement=name):
            absorbed = (node.rows, node.columns, *node.reduce)
            found[name] = (*above, *(band for band in absorbed if band is not None))
        case Band(body=body):
            _collect(body, (*above, node), found)
        case Copy(body=body):
            _collect(body, above, found)
        case Sequence(children):
            for index, child in enumerate(children):
                _collect(child, (*above, Position(index)), found)


def times(nest: Nest, tree: Node) -> Mapping[str, isl.Map]:
    """For each statement, the map from its instances to their time vectors: `{ S1[i, k] -> [i, 1, k] }`.

    The order of execution is the lexicographic order of these vectors, which are padded with zeros to one length.
    """
    found = paths(tree)
    length = max((len(path) for path in found.values()), default=0)
    return {name: _time(nest.statement(name).domain, path, length) for name, path in found.items()}


def _time(domain: isl.Set, path: Path, length: int) -> isl.Map:
    zero = isl.PwAff.zero_on_domain(isl.LocalSpace.from_space(domain.get_space()))
    result = isl.Map.from_domain(domain)
    for name_or_position in path:
        match name_or_position:
            case Position(index):
                value = zero.add_constant_val(isl.Val(index))
            case Band() as band:
                value = band.function(domain.get_tuple_name())
        result = result.flat_range_product(isl.Map.from_pw_aff(value))
    for _ in range(length - len(path)):
        result = result.flat_range_product(isl.Map.from_pw_aff(zero))
    return result.intersect_domain(domain)
