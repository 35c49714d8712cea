"""Races between the work-items of a group, found by enumerating the instances of a lowered tree.

This shares nothing with the placement of barriers: instances are enumerated for fixed sizes and sorted by the tree; the
item of each is computed from the values of its loops, and a barrier ends a phase.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from interpreter import Element, Instance, iterations, points, value

from codegen.ir.expr import Load
from codegen.ir.instructions import MEMORIES, Barrier
from codegen.ir.program import Instructions, PrintedStatement
from poly.ir.nest import Statement
from poly.ir.tree import Band, Leaf, Node, Sequence, bands, statements
from poly.lowering.mapping.partials import Shared

DIMENSIONS = 3
ALL = -1
"""In place of an item's number: all items."""


@dataclass(frozen=True)
class Access:
    element: Element
    writes: bool
    item: int
    phase: int
    instance: Instance


def races(shared: Shared, removed: frozenset[str] = frozenset()) -> list[tuple[Instance, Instance]]:
    """Two instances of different items that access an element in one phase of a group, of which one writes it.

    Barriers named in `removed` are left out.
    """
    found: list[tuple[Instance, Instance]] = []
    for group in groups(shared.tree, _instances(shared)):
        accesses = list(_accesses(shared, group, removed))
        for _, together in groupby(sorted(accesses, key=_place), key=_place):
            part = list(together)
            writers = [access for access in part if access.writes]
            found += [(w.instance, a.instance) for w in writers for a in part if a.item != w.item]
    return found


def _place(access: Access) -> tuple[Element, int]:
    return access.element, access.phase


def barriers(shared: Shared) -> frozenset[str]:
    """The names of the barriers in the tree."""
    return frozenset(name for name in shared.texts if name.startswith("barrier"))


def _instances(shared: Shared) -> list[Instance]:
    domains = {s.name: s.domain for s in shared.nest.statements} | {n: d for n, (d, _) in shared.texts.items()}
    return [Instance(name, point) for name in statements(shared.tree) for point in points(domains[name])]


def groups(node: Node, found: list[Instance]) -> Iterator[list[Instance]]:
    """The instances that each work-group runs, in order."""
    match node:
        case Band(parallel=True):
            yield from _grouped(node, found, DIMENSIONS)
        case Band() if _has_groups(node):
            for part in iterations(node, found):
                yield from groups(node.body, part)
        case Sequence(nodes) if _has_groups(node):
            for shared, run in groupby(nodes, _has_groups):
                children = list(run)
                if shared:
                    for child in children:
                        yield from groups(child, _below(child, found))
                else:
                    yield [i for child in children for i in ordered(child, _below(child, found))]
        case _:
            yield ordered(node, found)


def _grouped(node: Node, found: list[Instance], dimensions: int) -> Iterator[list[Instance]]:
    if isinstance(node, Band) and node.parallel and dimensions:
        for part in iterations(node, found):
            yield from _grouped(node.body, part, dimensions - 1)
    else:
        yield ordered(node, found)


def _has_groups(node: Node) -> bool:
    return any(band.parallel for band in bands(node))


def _below(node: Node, found: list[Instance]) -> list[Instance]:
    return [i for i in found if i.statement in set(statements(node))]


def ordered(node: Node, found: list[Instance]) -> list[Instance]:
    match node:
        case Sequence(nodes):
            return [i for child in nodes for i in ordered(child, _below(child, found))]
        case Band():
            return [i for part in iterations(node, found) for i in ordered(node.body, part)]
    assert isinstance(node, Leaf) and len(found) <= 1, "two instances at one time"
    return found


def _accesses(shared: Shared, group: list[Instance], removed: frozenset[str]) -> Iterator[Access]:
    """The accesses of one group; each kind of memory has its own phases, which end at barriers that fence it."""
    known = {s.name: s for s in shared.nest.statements}
    phases = dict.fromkeys(MEMORIES, 0)
    private = {w.name for w in shared.workspaces if w.space == "private"}
    local = {w.name for w in shared.workspaces if w.space == "local"}
    for instance in group:
        if instance.statement in shared.texts:
            if instance.statement.startswith("barrier") and instance.statement not in removed:
                fenced = _fenced(shared.texts[instance.statement][1])
                phases = {memory: phase + (memory in fenced) for memory, phase in phases.items()}
            continue
        statement = known[instance.statement]
        item = _item(shared.tree, statement, instance, private)
        for load, writes in ((statement.target, True), *((load, False) for load in statement.reads)):
            if load.array not in private | shared.synchronised:
                phase = phases["local" if load.array in local else "global"]
                yield Access(_element(load, statement, instance), writes, item, phase, instance)


def _fenced(printed: PrintedStatement) -> frozenset[str]:
    """The memories whose writes a barrier makes visible."""
    assert isinstance(printed.body, Instructions)
    return frozenset(m for node in printed.body.nodes if isinstance(node, Barrier) for m in node.memories)


def _element(load: Load, statement: Statement, instance: Instance) -> Element:
    values = dict(zip(statement.iterators, instance.point, strict=True))
    return load.array, tuple(index.evaluate(values) for index in load.indices)


def _item(tree: Node, statement: Statement, instance: Instance, private: set[str]) -> int:
    """The item that runs an instance: the remainders of the shared loops' values, the innermost fastest."""
    around = [band for band in bands(tree) if statement.name in statements(band) and band.items]
    if not around and statement.target.array in private:
        return ALL
    item = 0
    for band in around:
        item = item * band.items + value(band.function(statement.name), instance.point) % band.items
    return item
