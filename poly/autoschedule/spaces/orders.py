"""Orders of loops from which a space starts: as written, contiguous, fused, permutations of the heaviest loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import prod

from poly.analysis.legality import is_parallel
from poly.analysis.roles import ASSUMED
from poly.autoschedule.defaults.attempt import attempt
from poly.autoschedule.defaults.contiguous import contiguous
from poly.autoschedule.defaults.fusion import fused
from poly.autoschedule.defaults.loops import Chain, chain_of
from poly.autoschedule.defaults.marks import shared_out
from poly.autoschedule.spaces.form import Traits
from poly.ir.nest import Nest
from poly.ir.paths import paths
from poly.ir.strides import extent, moved_iterator, strided_cost
from poly.ir.tree import Node, bands, children
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Order, Parallel

MOST = 6
"""Orders of one chain of loops that are worth a structure: all of three loops, the most contiguous of more."""

PERMUTED = 7
"""Loops of one chain that change places, the inner ones: all orders of more are too many to look at."""


@dataclass(frozen=True)
class Base:
    """A schedule to go on from, and what tells it apart. `usual` marks that of the default rules."""

    traits: Traits
    made: Schedule
    usual: bool = False

    @property
    def shared(self) -> bool:
        """Whether threads share one of the loops."""
        return any(band.parallel for band in bands(self.made.tree))


def bases(nest: Nest) -> list[Base]:
    """The orders and fusions of a nest's loops, the loops as written first."""
    written = schedule(nest)
    natural = contiguous(written)
    found = [Base((("order", "as written"),), written)]
    if natural is not written:
        found.append(Base((("order", "contiguous"),), natural))
    joined = fused(natural)
    if joined is not natural:
        found.append(Base((*found[-1].traits, ("loops", "fused")), joined))
    found[-1] = Base(found[-1].traits, found[-1].made, usual=True)
    return [*found, *_permuted(joined, found[-1].traits)]


def _permuted(made: Schedule, traits: Traits) -> Iterator[Base]:
    """The legal orders of the heaviest chain of loops, but for the one it has."""
    chain = heaviest(made)
    if chain is None or len(chain.bands) < 2:
        return
    names = tuple(band.name for band in chain.bands)
    costs = {name: _strided(made, chain, name) for name in names}
    outer, inner = names[:-PERMUTED], names[-PERMUTED:]
    others = ((*outer, *order) for order in permutations(inner) if order != inner)
    orders = sorted(others, key=lambda order: [costs[name] for name in reversed(order)])
    for order in orders[: MOST - 1]:
        turned = attempt(made, [Order(order)])
        if turned is not None:
            rest = [trait for trait in traits if trait[0] != "order"]
            yield Base((("order", " ".join(order)), *rest), turned)


def _strided(made: Schedule, chain: Chain, loop: str) -> int:
    """What the accesses cost where this loop is the innermost."""
    found = paths(made.tree)
    total = 0
    for name in chain.statements:
        statement = made.nest.statement(name)
        iterator = moved_iterator(statement, found[name], loop)
        total += strided_cost(made.nest, statement, iterator) if iterator else 0
    return total


def heaviest(made: Schedule) -> Chain | None:
    """The chain of loops with the most instances; None where there is none."""
    found = list(_chains(made.tree))
    return max(found, key=lambda chain: _instances(made.nest, chain)) if found else None


def _chains(node: Node) -> Iterator[Chain]:
    chain = chain_of(node)
    if chain is not None:
        yield chain
        return
    for child in children(node):
        yield from _chains(child)


def _instances(nest: Nest, chain: Chain) -> int:
    """Of one run of a chain, an upper bound."""
    return prod(extent(nest, band) or ASSUMED for band in chain.bands)


def shares(base: Base, threads: int) -> list[Base]:
    """The base with each loop parallel that may be: none, those of the default rule, another of the heaviest chain."""
    if threads == 1:
        return [base]
    usual = shared_out(base.made)
    alone = Base((*base.traits, ("parallel", "none")), base.made, base.usual and usual is base.made)
    found = [alone]
    if usual is not base.made:
        names = [step.loop for step in usual.steps if isinstance(step, Parallel)]
        found.append(Base((*base.traits, ("parallel", " ".join(names))), usual, base.usual))
        chain = heaviest(base.made)
        for band in chain.bands[:-1] if chain else ():
            if band.name not in names and is_parallel(base.made.nest, base.made.tree, band.name):
                shared = base.made.apply([Parallel(band.name)])
                found.append(Base((*base.traits, ("parallel", band.name)), shared))
    return found
