"""Reductions whose updates of one element are spread over the work-items of a group.

for i:
  for j:  # 32 items        each item sums its share, and the shares are combined after the loop
    s[i] += A[i, j]

All updates in one run of the outermost shared loop must be of the same element, which nothing else may access there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from poly.analysis.dependences import Dependence
from poly.ir.instances import loop_values
from poly.ir.nest import Op, Statement
from poly.ir.paths import Path, loops_outside
from poly.ir.tree import Band, Leaf, Node, children, walk
from poly.ir.work_groups import item_loops
from poly.lowering.mapping.runners import Runners


@dataclass(frozen=True)
class Region:
    """An outermost loop that items share, with the names of its plain statements."""

    loop: Band
    statements: tuple[str, ...]


@dataclass(frozen=True)
class Reduction:
    """Updates of `array` by the operator `op` in one region. `elements`: `{ [loops around] -> array[…] }`."""

    region: Region
    statements: tuple[str, ...]
    array: str
    op: Op
    elements: isl.Map


def regions(node: Node) -> Iterator[Region]:
    """The regions of a tree, in textual order."""
    if isinstance(node, Band) and node.items:
        yield Region(node, tuple(n.statement for n in walk(node) if isinstance(n, Leaf)))
        return
    for child in children(node):
        yield from regions(child)


def spread(runners: Runners, region: Region) -> Iterator[tuple[Reduction, Dependence]]:
    """The reductions of a region in which different items update one element, each with a pair of such updates."""
    for reduction in _reductions(runners, region):
        for source in reduction.statements:
            for sink in reduction.statements:
                pairs = runners.crossing(_same_element(runners, region, source, sink), source, sink)
                if not pairs.is_empty():
                    yield reduction, Dependence("flow", reduction.array, source, sink, pairs, True)
                    break
            else:
                continue
            break


def obstacle(runners: Runners, reduction: Reduction) -> str | None:
    """The reason why the items' shares of a reduction cannot be combined after the loop; None if they can."""
    region, loop = reduction.region, reduction.region.loop.name
    if not reduction.elements.is_single_valued():
        return f"the iterations of loop {loop} update several elements of {reduction.array}"
    for name in region.statements:
        statement = runners.nest.statement(name)
        own = name in reduction.statements
        accesses = statement.reads if not own else tuple(load for load in statement.reads if load != statement.target)
        for access in (*accesses, *(() if own else (statement.target,))):
            if access.array != reduction.array:
                continue
            touched = _runs(runners, name).reverse().apply_range(statement.relation(access))
            if not touched.intersect(reduction.elements).is_empty():
                return f"{name} needs the element of {reduction.array} inside loop {loop}"
    return None


def _reductions(runners: Runners, region: Region) -> list[Reduction]:
    """The reductions of a region, with statements that update common elements joined into one."""
    found: list[Reduction] = []
    for name in region.statements:
        statement = runners.nest.statement(name)
        if statement.op == "=":
            continue
        own = Reduction(region, (name,), statement.target.array, statement.op, _elements(runners, region, statement))
        related = [r for r in found if _related(r, own)]
        found = [r for r in found if r not in related]
        found.append(reduce(_joined, [*related, own]))
    return found


def _related(first: Reduction, second: Reduction) -> bool:
    if (first.array, first.op) != (second.array, second.op):
        return False
    return not first.elements.intersect(second.elements).is_empty()


def _joined(first: Reduction, second: Reduction) -> Reduction:
    names, elements = first.statements + second.statements, first.elements.union(second.elements).coalesce()
    return Reduction(first.region, names, first.array, first.op, elements)


def _elements(runners: Runners, region: Region, statement: Statement) -> isl.Map:
    """`{ [loops around the region] -> A[…] }`: the elements that a statement updates in each run of the region."""
    runs = _runs(runners, statement.name)
    return runs.reverse().apply_range(statement.relation(statement.target)).coalesce()


def _same_element(runners: Runners, region: Region, source: str, sink: str) -> isl.Map:
    """The pairs of updates of one element within one run of the region."""
    first, second = runners.nest.statement(source), runners.nest.statement(sink)
    same = first.relation(first.target).apply_range(second.relation(second.target).reverse())
    runs = _runs(runners, source).apply_range(_runs(runners, sink).reverse())
    return same.intersect(runs).intersect_params(runners.nest.context)


def _runs(runners: Runners, statement: str) -> isl.Map:
    """`{ S[…] -> run[loops around the region] }`."""
    functions = (band.function(statement) for band in _around(runners.paths[statement]))
    return loop_values(runners.nest.statement(statement).domain, functions).set_tuple_name(isl.dim_type.out, "run")


def _around(path: Path) -> tuple[Band, ...]:
    """The loops of a path around its outermost shared loop."""
    return loops_outside(path, item_loops(path)[0].name)
