"""Shapes of loop trees that the rules look for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from poly.analysis.roles import ASSUMED
from poly.ir.nest import Nest
from poly.ir.strides import extent
from poly.ir.tree import Band, Leaf, Micro, Node, bands, children, parts, statements
from poly.schedules.schedule import Schedule

INNER_GUESS = 1024
"""The assumed extent of a loop inside a sequential one if its sizes are unknown."""


@dataclass(frozen=True)
class Chain:
    """Perfectly nested loops, outermost first; the innermost contains only statements."""

    bands: tuple[Band, ...]

    @property
    def statements(self) -> tuple[str, ...]:
        return statements(self.bands[-1])


def chain_of(node: Node) -> Chain | None:
    """The node as a chain of loops; None if it is not one."""
    found: list[Band] = []
    while isinstance(node, Band):
        found.append(node)
        node = node.body
    return Chain(tuple(found)) if found and all(isinstance(leaf, Leaf) for leaf in parts(node)) else None


def heaviest(made: Schedule) -> Chain | None:
    """The chain of loops with the most instances, an upper bound; None if there is none."""
    found = list(chains(made.tree))
    weights = [prod(extent(made.nest, band) or ASSUMED for band in chain.bands) for chain in found]
    return found[weights.index(max(weights))] if found else None


def chains(node: Node) -> Iterator[Chain]:
    """The chains of loops in a tree, of which none is part of another."""
    chain = chain_of(node)
    if chain is not None:
        yield chain
        return
    for child in children(node):
        yield from chains(child)


def innermost(tree: Node) -> tuple[Band, ...]:
    """The loops that contain no other loop."""
    return tuple(band for band in bands(tree) if not bands(band.body))


def instances(nest: Nest, node: Node, guess: int) -> int:
    """An upper bound of the statement instances in one run of a node; `guess` is the extent of unknown loops."""
    match node:
        case Band(body=body):
            known = extent(nest, node)
            return (guess if known is None else known) * instances(nest, body, guess)
        case Leaf() | Micro():
            return 1
    return sum(instances(nest, child, guess) for child in children(node))
