"""Make loops perfectly nested: statements before and after an inner loop sink into its first or last iteration.

for i:                        for i:
  S0                            for k:
  for k:              ->          if k == first: S0
    S1                            S1
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from poly.errors import ScheduleError
from poly.ir.edits import chain, edit, sequence
from poly.ir.nest import Nest
from poly.ir.tree import Band, Node, Sequence, statements


def perfect_chain(nest: Nest, tree: Node, top: Band, bottom: Band) -> tuple[Node, list[Band]]:
    """The tree with all statements between two loops sunk into the inner one, in the same order of execution.

    Returns:
        The tree, and its loops from `top` to `bottom`.

    Raises:
        ScheduleError: a node between them is neither a loop nor a sequence.
    """
    merged = _perfect(nest, top, bottom)
    spine = [merged]
    while spine[-1].name != bottom.name:
        body = spine[-1].body
        assert isinstance(body, Band), "the loops are perfectly nested now"
        spine.append(body)
    return edit(tree, top, merged), spine


def rebuild(loops: list[Band], body: Node) -> Node:
    """The loops, outermost first, around `body`."""
    for band in reversed(loops):
        body = replace(band, body=body)
    return body


def _perfect(nest: Nest, node: Node, bottom: Band) -> Band:
    """The loop `node`, perfectly nested down to `bottom`."""
    if not isinstance(node, Band):
        kind = type(node).__name__.lower()
        raise ScheduleError(
            f"a {kind} step is around loop {bottom.name}. Remedy: change the order of the loops before it."
        )
    if node is bottom:
        return node
    if not isinstance(node.body, Sequence):
        return replace(node, body=_perfect(nest, node.body, bottom))
    nodes = node.body.children
    place = next(p for p, child in enumerate(nodes) if chain(child, bottom))
    inner = _perfect(nest, nodes[place], bottom)
    return replace(node, body=_sunk(nest, nodes[:place], inner, nodes[place + 1 :], bottom.name))


def _sunk(nest: Nest, before: tuple[Node, ...], band: Band, after: tuple[Node, ...], bottom: str) -> Band:
    """`before; band; after` as one perfect nest down to `bottom`."""
    first = tuple((name, _end(nest, band, name, last=False)) for node in before for name in statements(node))
    last = tuple((name, _end(nest, band, name, last=True)) for node in after for name in statements(node))
    if band.name == bottom:
        body = sequence([*before, band.body, *after])
    else:
        assert isinstance(band.body, Band), "what is below was made perfect first"
        body = _sunk(nest, before, band.body, after, bottom)
    return replace(band, functions=(*first, *band.functions, *last), body=body)


def _end(nest: Nest, band: Band, statement: str, last: bool) -> isl.PwAff:
    """The first or last of all the values of a loop, on another statement's domain; 0 where the loop never runs."""
    values = isl.Set.empty(isl.Space.set_from_params(nest.context.get_space()).add_dims(isl.dim_type.set, 1))
    for name, function in band.functions:
        domain = nest.statement(name).domain.intersect_params(nest.context)
        values = values.union(isl.Map.from_pw_aff(function).intersect_domain(domain).range())
    bound = values.dim_max(0) if last else values.dim_min(0)
    never = bound.domain().complement()
    bound = bound.union_add(
        isl.PwAff.zero_on_domain(isl.LocalSpace.from_space(never.get_space())).intersect_domain(never)
    )
    return bound.coalesce().insert_domain(nest.statement(statement).domain.get_space())
