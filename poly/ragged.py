"""Contractions over a domain that is no box: a kernel over the loops that are one once all others are fixed.

    for p, q, f:                                            for p, r, s:
      for r, s:                                               for q_tile: for f_tile:
        if 0 <= p + r - 1 < P and 0 <= q + s - 1 < Q:   ->      microkernel over q, f, c
          for c:
            O[p, q, f] += I[p+r-1, q+s-1, c] * W[r, s, c, f]

The taps of a padded convolution that would multiply zeros are not in the domain, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

from microkernels.isa import ISA
from poly.contraction import Contraction, recognise
from poly.instances import Instances, coordinate
from poly.layout import step
from poly.model import WORTHWHILE, tile_shape
from poly.nest import Nest, Statement
from poly.roles import ASSUMED
from poly.steps import Microkernel, Order, Parallel, Split, Step

LEAST = 16
"""Steps of the reduction below which a kernel's start costs more than it brings."""


def ragged_steps(
    nest: Nest, statement: Statement, loops: Mapping[str, str], isa: ISA, threads: int
) -> list[Step] | None:
    """The steps for a contraction of which a row, a column and a reduce loop make a box for each value of the others.

    None where there are no such loops, or the right operand is not contiguous along the columns.
    """
    c = recognise(nest, statement)
    if c is None or statement.domain.is_empty():
        return None
    inner = next((names for names in _candidates(nest, statement, c) if _is_box(statement, names)), None)
    if inner is None:
        return None
    row, column, reduced = (loops[name] for name in inner)
    m, n = (min(_extent(statement, name), ASSUMED) for name in inner[:2])
    kernel = tile_shape(m, n, isa, nest.array(c.output.array).dtype)
    own = [loops[i] for i in (*c.batch, *c.rows, *c.columns) if i not in inner]
    outer = [*own, *(loops[i] for i in c.reduce if i not in inner)]
    steps: list[Step] = [
        Split(((row, kernel.rows),)),
        Split(((column, kernel.columns),)),
        Order((*outer, f"{row}_tile", f"{column}_tile", row, column, reduced)),
        Microkernel(kernel.name, statement.name),
    ]
    work = prod(_extent(statement, iterator) for iterator in statement.iterators)
    return [*steps, Parallel(own[0])] if own and threads > 1 and work >= WORTHWHILE else steps


def _candidates(nest: Nest, statement: Statement, c: Contraction) -> Iterator[tuple[str, str, str]]:
    """Row, column and reduce iterators, the longest first; the columns contiguous in output and right operand."""

    def longest(names: tuple[str, ...]) -> list[str]:
        return sorted(names, key=lambda name: -_extent(statement, name))

    columns = [
        name
        for name in c.columns
        if step(nest.array(c.output.array), c.output, name).constant == 1
        and step(nest.array(c.right.array), c.right, name).constant == 1
    ]
    reduce = [name for name in longest(c.reduce) if _extent(statement, name) >= LEAST]
    yield from product(longest(c.rows), columns, reduce)


def _extent(statement: Statement, iterator: str) -> int:
    """How many values an iterator takes in all; ASSUMED where that depends on a size."""
    position = statement.iterators.index(iterator)
    low, high = statement.domain.dim_min_val(position), statement.domain.dim_max_val(position)
    return high.to_python() - low.to_python() + 1 if low.is_int() and high.is_int() else ASSUMED


def _is_box(statement: Statement, inner: tuple[str, ...]) -> bool:
    """Whether these iterators take all combinations of their values for each value of the others."""
    values = {name: coordinate(statement.domain, position) for position, name in enumerate(statement.iterators)}
    others = tuple((name, value) for name, value in values.items() if name not in inner)
    return Instances("rest", statement.domain, others).is_box([values[name] for name in inner])
