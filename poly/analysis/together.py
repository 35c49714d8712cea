"""Whether the iterations of a loop go through the loops inside it together, as lanes do.

for x:                       for x:
  for r < R: …                 for r < x: …

On the left they do: each has the same iterations of r. On the right each has its own.
"""

from __future__ import annotations

from functools import reduce

import islpy as isl

from poly.analysis.legality import is_written_out
from poly.ir.budget import QUESTION, limited
from poly.ir.instances import loop_values
from poly.ir.nest import Nest
from poly.ir.paths import loops_around, loops_outside, paths
from poly.ir.tree import Band, Node, bands, statements


@limited(QUESTION)
def apart(nest: Nest, tree: Node, band: Band) -> str | None:
    """The first loop inside a loop whose iterations depend on that one; None if there is none.

    Loops that are written out don't count.
    """
    inner = (one for one in bands(band.body) if not is_written_out(nest, tree, one))
    return next((one.name for one in inner if not _is_shared(nest, tree, band, one)), None)


def _is_shared(nest: Nest, tree: Node, band: Band, inner: Band) -> bool:
    """Whether an inner loop, with those between, has the same iterations in all of those of a loop.

    Some of its statements may run in some of these alone.
    """
    own = reduce(isl.Map.union, (_reached(nest, tree, band, inner, name) for name in statements(inner)))
    last = own.dim(isl.dim_type.in_) - 1
    every = own.project_out(isl.dim_type.in_, last, 1).insert_dims(isl.dim_type.in_, last, 1)
    return bool(every.intersect_domain(own.domain()).is_subset(own))


def _reached(nest: Nest, tree: Node, band: Band, inner: Band, name: str) -> isl.Map:
    """`{ [loops around, loop] -> [loops between, inner loop] }` of a statement."""
    around, domain = loops_outside(paths(tree)[name], band.name), nest.statement(name).domain
    between = loops_around(tree, name)[len(around) + 1 :]
    until = between.index(inner) + 1
    outer = loop_values(domain, [one.function(name) for one in (*around, band)])
    return outer.reverse().apply_range(loop_values(domain, [one.function(name) for one in between[:until]]))
