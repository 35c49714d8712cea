"""Contractions with no rows to speak of: matrix times vector, streamed by a kernel of its own.

    for j: for k:                               for j_tile:                     (a share for each thread)
      y[j] += x[k] * B[k, j]           ->         gemvn over j, k               (B contiguous along j)
      y[j] += B[j, k] * x[k]           ->         gemvt over j, k               (both contiguous along k)
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from microkernels.isa import ISA
from poly.model import WORTHWHILE
from poly.nest import Nest, Statement
from poly.planned import Loop, band, joined
from poly.roles import Axis, Roles
from poly.tree import Micro, Node


def matrix_vector_tree(nest: Nest, statement: Statement, r: Roles, isa: ISA, threads: int, initial: str | None) -> Node | None:
    """The loops of a contraction without rows; None where no kernel streams the matrix as it lies."""
    picked = _by_rows(r) or _by_columns(r)
    if picked is None:
        return None
    family, column, reduced = picked
    loop = joined([column])
    micro: Node = Micro(
        f"{family}_{isa.name}",
        statement.name,
        None,
        band(nest, statement, loop.name, loop.function),
        (band(nest, statement, reduced.iterator, reduced.iterator),),
        r.exchanged,
        initial,
    )
    tree = _shared(nest, statement, loop, reduced, threads, micro)
    others = [axis for axis in (*r.columns, *r.reduce) if axis not in (column, reduced)]
    for axis in reversed([*r.batch, *others]):
        tree = band(nest, statement, axis.iterator, axis.iterator, tree)
    return tree


def _by_rows(r: Roles) -> tuple[str, Axis, Axis] | None:
    """The matrix and the result contiguous along one loop: `gemvn`, over the longest reduction."""
    columns = [axis for axis in r.columns if axis.right.constant == 1 and axis.output.constant == 1]
    return ("gemvn", columns[0], _longest(r.reduce)) if columns and r.reduce else None


def _by_columns(r: Roles) -> tuple[str, Axis, Axis] | None:
    """Matrix and vector contiguous along the reduction: `gemvt`."""
    reduced = [axis for axis in r.reduce if axis.right.constant == 1 and axis.left.constant == 1]
    return ("gemvt", _longest(r.columns), reduced[0]) if reduced and r.columns else None


def _longest(axes: tuple[Axis, ...]) -> Axis:
    return max(axes, key=lambda axis: axis.guess)


def _shared(nest: Nest, statement: Statement, loop: Loop, reduced: Axis, threads: int, micro: Node) -> Node:
    """The columns in one share a thread, where there is work enough."""
    if threads == 1 or loop.extent * reduced.guess < WORTHWHILE or loop.extent < 64 * threads:
        return micro
    share = ceil(loop.extent / threads / 64) * 64
    outer = replace(loop, name=f"{loop.name}_tile", function=f"floor(({loop.function})/{share})")
    return band(nest, statement, outer.name, outer.function, micro, parallel=True)
