"""Scan a loop tree: generate loops from the tree and the iteration domains with isl."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce

import islpy as isl

from codegen.ir import loop_ir
from codegen.ir.isl_ast import LOOP, PACK, loops
from codegen.ir.loop_ir import LoopMark
from codegen.ir.ranges import Ranges, simplified
from poly.ir.budget import TooCostly, limited, refuse_tangled
from poly.ir.instances import coordinate, loop_values
from poly.ir.nest import Nest
from poly.ir.sets import parameters
from poly.ir.tree import Band, Copy, Leaf, Node, Sequence, bands, children, mapped, parts, statements
from poly.lowering.visits import is_delicate, visits_all

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
        every, framed = _with_frames(domains, tree, private)
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
        options = _whole_runs(domains, tree)
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


def _with_frames(domains: Mapping[str, isl.Set], tree: Node, private: bool) -> tuple[dict[str, isl.Set], Node]:
    """The domains and the tree with statements that do nothing around those of a loop that must stay whole.

    for j: S0(j)                                 for j: S0(j); if j == 2: S1(j)
    S1(2)          # of the same iteration   <-

    isl makes loops of their own for statements that may run before or after all the others, such as S1, which only the
    last iteration has. A variable of an iteration, and a thread's memory (`private`), would be others there. Statements
    at the start and at the end of each iteration leave no such choice.
    """
    framed = _Framed(domains, private)
    made = framed.node(tree, ())
    return {**domains, **framed.added}, made


@dataclass
class _Framed:
    domains: Mapping[str, isl.Set]
    private: bool
    added: dict[str, isl.Set] = field(default_factory=dict)

    def node(self, node: Node, around: tuple[Band, ...]) -> Node:
        if not isinstance(node, Band):
            return mapped(node, lambda child: self.node(child, around))
        body = self.node(node.body, (*around, node))
        if node.variables or (node.parallel and self.private):
            body = self._between(node, body, around)
        own = [name for name in statements(body) if name in self.added]
        functions = tuple((name, coordinate(self.added[name], len(around))) for name in own)
        return replace(node, functions=(*node.functions, *functions), body=body)

    def _between(self, band: Band, body: Node, around: tuple[Band, ...]) -> Node:
        """The body between statements that run in each iteration, unless each of its own does."""
        each = [self._values(name, (*around, band)) for name in statements(band.body) if name in self.domains]
        every = reduce(isl.Set.union, each).coalesce()
        if all(every.is_subset(one) for one in each):
            return body
        names = [f"{band.name}'{at}" for at in ("starts", "ends")]
        self.added |= {name: every.set_tuple_name(name) for name in names}
        return Sequence((Leaf(names[0]), *parts(body), Leaf(names[1])))

    def _values(self, name: str, loops: tuple[Band, ...]) -> isl.Set:
        """The values of loops at which a statement runs."""
        return loop_values(self.domains[name], (band.function(name) for band in loops)).range()


def _whole_runs(domains: Mapping[str, isl.Set], node: Node, around: tuple[Band, ...] = ()) -> dict[str, isl.UnionSet]:
    """The options of isl's generator that set iterations apart in which a written-out loop inside is whole.

    for j in range(N + 7):                                       for j in range(7): …
      for i in range(max(0, j - N + 1), min(8, j + 1)):    ->    for j in range(7, N):
        A[i, j - i] = …                                            for i in range(8): A[i, j - i] = …
                                                                 for j in range(N, N + 7): …

    There are none inside vector lanes, whose loops are printed as a whole, and of loops that threads share.
    """
    if not isinstance(node, Band):
        inside = (_whole_runs(domains, child, around) for child in children(node))
        return {name: option for found in inside for name, option in found.items()}
    inner, around = node.body, (*around, node)
    if not (isinstance(inner, Band) and inner.unroll > 1 and not bands(inner.body)):
        return _whole_runs(domains, inner, around)
    whole = node.parallel or any(band.vectorize or band.items for band in (*around, inner))
    option = None if whole or any(band.unroll > 1 for band in around) else _whole(domains, around, inner)
    return {} if option is None else {node.name: option}


def _whole(domains: Mapping[str, isl.Set], around: tuple[Band, ...], inner: Band) -> isl.UnionSet | None:
    """The option for the last loop of `around`; None if the one inside always has all of its iterations, or never."""
    every = [_values(domains[name], name, (*around, inner)) for name in statements(inner)]
    together, last, kind = reduce(isl.Set.union, every).coalesce(), len(around), isl.dim_type.set
    some = together.project_out(kind, last, 1)
    block = together.project_out(kind, last - 1, 1).insert_dims(kind, last - 1, 1)
    expected = some.insert_dims(kind, last, 1).intersect(block)
    lacking = reduce(isl.Set.union, (expected.subtract(one) for one in every)).project_out(kind, last, 1)
    whole = some.subtract(lacking).intersect(_longest(block)).coalesce()
    if lacking.is_empty() or whole.is_empty():
        return None
    option = isl.Map.from_range(whole).move_dims(isl.dim_type.in_, 0, isl.dim_type.out, 0, last - 1)
    return isl.UnionSet.from_set(option.wrap().set_tuple_name("isolate"))


def _longest(block: isl.Set) -> isl.Set:
    """Where the last dimension of a set takes the most values, as it does in all blocks but those at the ends."""
    last = block.dim(isl.dim_type.set) - 1
    values = isl.Map.from_range(block).move_dims(isl.dim_type.in_, 0, isl.dim_type.out, 0, last)
    high, low = (bound.get_pw_aff(0) for bound in (values.lexmax_pw_multi_aff(), values.lexmin_pw_multi_aff()))
    length = high.sub(low)
    most = length.max_val()
    return length.eq_set(length.scale_val(isl.Val(0)).add_constant_val(most)) if most.is_int() else length.domain()


def _values(domain: isl.Set, name: str, loops: tuple[Band, ...]) -> isl.Set:
    """What the loops count together, for all instances of a statement."""
    counted = isl.Map.from_domain(domain)
    for band in loops:
        counted = counted.flat_range_product(isl.Map.from_pw_aff(band.function(name)))
    return counted.intersect_domain(domain).range().reset_tuple_id()
