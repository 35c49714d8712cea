"""Scan a loop tree: generate loops from the tree and the iteration domains with isl."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import reduce

import islpy as isl

from codegen import loop_ir
from codegen.isl_ast import LOOP, PACK, loops
from codegen.loop_ir import LoopMark
from codegen.ranges import Ranges, simplified
from poly.ir.budget import TooCostly, limited, refuse_tangled
from poly.ir.nest import Nest
from poly.ir.sets import parameters
from poly.ir.tree import Band, Copy, Leaf, Node, Sequence, bands, statements
from poly.lowering.frames import with_frames
from poly.lowering.visits import is_delicate, visits_all
from poly.lowering.whole_runs import whole_runs

SCANNED = 400_000
"""Operations that isl may use to scan a tree: many loops, or loops of many pieces, take long."""

APART = SCANNED // 2
"""The part of them for loops that are cut where a written-out loop has all of its iterations."""

CHECKED, RESERVE = 400_000, 20
"""Operations that isl may use to verify delicate loops, and the percentage of the outer budget kept in reserve."""


def ast(nest: Nest, tree: Node) -> loop_ir.Node:
    """The loops of a nest in the order of `tree`, which contains no microkernels."""
    return scan({s.name: s.domain for s in nest.statements}, tree, nest.context)


def scan(
    domains: Mapping[str, isl.Set],
    tree: Node,
    context: isl.Set,
    marks: Mapping[str, LoopMark] | None = None,
    private: bool = False,
) -> loop_ir.Node:
    """The loops that visit `domains` in the order of `tree`, with `marks` by their names.

    A copy in the tree becomes a comment above the loops that read it. `private`: threads have memory of their own.

    Raises:
        TooCostly: isl takes too much work, or has generated wrong loops; `poly.ir.guards` finds simpler domains.
    """
    for domain in domains.values():
        refuse_tangled(domain)
    with limited(SCANNED):
        every, framed = with_frames(domains, tree, private)
        made, sizes = _generated(every, framed, context), parameters(context)
        found = loop_ir.restricted(loops(made, marks, sizes), lambda name: name in domains)
        found = simplified(found, Ranges.of_sizes(sizes))
    if is_delicate(found) and _is_wrong(found, {name: domains[name] for name in statements(tree)}, context):
        raise TooCostly
    return found


def _generated(domains: Mapping[str, isl.Set], tree: Node, context: isl.Set) -> isl.AstNode:
    """isl's loops, with whole runs of written-out loops apart unless that takes too much work."""
    build, scheduled = isl.AstBuild.from_context(context), _schedule(domains, tree)
    with suppress(TooCostly), limited(APART):
        options = whole_runs(domains, tree)
        if options:
            return build.node_from_schedule(_with_options(scheduled, options))
    return build.node_from_schedule(scheduled)


def _is_wrong(made: loop_ir.Node, domains: Mapping[str, isl.Set], context: isl.Set) -> bool:
    """Whether the loops are proven not to visit exactly the domains; False if the proof takes too much work."""
    try:
        with limited(CHECKED, reserve=RESERVE):
            return not visits_all(made, domains, context)
    except TooCostly:
        return False


def _schedule(domains: Mapping[str, isl.Set], node: Node) -> isl.Schedule:
    match node:
        case Leaf(name):
            return isl.Schedule.from_domain(isl.UnionSet.from_set(domains[name]))
        case Sequence(nodes):
            return reduce(isl.Schedule.sequence, (_schedule(domains, child) for child in nodes))
        case Band():
            return _band(domains, node)
        case Copy():
            return _marked(_schedule(domains, node.body), f"{PACK}pack {node.label}")
    raise TypeError(f"a {type(node).__name__} node must be expanded before it is scanned")


def _band(domains: Mapping[str, isl.Set], band: Band) -> isl.Schedule:
    """The schedule with a loop around it, which is never split into several if work-items share it or a loop in it."""
    inner = _schedule(domains, band.body)
    present = set(statements(band.body))
    functions = [isl.UnionPwAff.from_pw_aff(f) for name, f in band.functions if name in present]
    partial = isl.MultiUnionPwAff.from_union_pw_aff(reduce(isl.UnionPwAff.union_add, functions))
    scheduled = inner.insert_partial_schedule(partial)
    if any(inner.items for inner in bands(band)):
        node = scheduled.get_root().child(0)
        scheduled = node.band_member_set_ast_loop_type(0, isl.ast_loop_type.atomic).get_schedule()
    return _marked(scheduled, f"{LOOP}{band.name}")


def _with_options(schedule: isl.Schedule, options: Mapping[str, isl.UnionSet]) -> isl.Schedule:
    """The schedule with options for the generation of some loops, by their names."""

    def visit(node: isl.ScheduleNode) -> isl.ScheduleNode:
        if isl.schedule_node_type(node.get_type()) == isl.schedule_node_type.mark:
            option = options.get(node.mark_get_id().get_name().removeprefix(LOOP))
            if option is not None:
                node = node.child(0).band_set_ast_build_options(option).parent()
        for number in range(node.n_children()):
            node = visit(node.child(number)).parent()
        return node

    return visit(schedule.get_root()).get_schedule() if options else schedule


def _marked(schedule: isl.Schedule, mark: str) -> isl.Schedule:
    return schedule.get_root().child(0).insert_mark(isl.Id(mark)).get_schedule()
