"""The iterations of a loop in which one inside has all of its iterations, not only some as at the ends of a skewed one.

for j in range(N + 7):                                       for j in range(7): …
  for i in range(max(0, j - N + 1), min(8, j + 1)):    ->    for j in range(7, N):
    A[i, j - i] = …                                            for i in range(8): A[i, j - i] = …
                                                             for j in range(N, N + 7): …
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import islpy as isl

from poly.ir.tree import Band, Node, bands, children, statements


def whole_runs(domains: Mapping[str, isl.Set], node: Node, around: tuple[Band, ...] = ()) -> dict[str, isl.UnionSet]:
    """The options of isl's generator that set these iterations apart, for loops directly around one written out.

    There are none inside vector lanes, whose loops are printed as a whole, and of loops that threads share.
    """
    if not isinstance(node, Band):
        inside = (whole_runs(domains, child, around) for child in children(node))
        return {name: option for found in inside for name, option in found.items()}
    inner, around = node.body, (*around, node)
    if not (isinstance(inner, Band) and inner.unroll > 1 and not bands(inner.body)):
        return whole_runs(domains, inner, around)
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
