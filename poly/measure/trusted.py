"""The result that candidates are compared with, and what is known of a nest before it runs.

It is that of the loops as written, plain C in double precision: no step of a schedule, no microkernel. Where these take
too long, it is that of the default schedule in double precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, prod

import islpy as isl

from codegen.expr import Binary, Call, loads, walk
from microkernels.dtypes import f32, f64
from microkernels.isa import ISA
from poly.default import default_schedule
from poly.kernel import Compiled, caches, translate
from poly.nest import Nest, Statement
from poly.schedule import schedule

PLAIN = 30_000_000
"""Iterations of plain loops that are affordable: some tenths of a second."""
DRIFT = 8
"""The most calls in a row where each works on the last one's result: more, and values may leave the normal range."""
CALLS = 100_000


@dataclass(frozen=True)
class Facts:
    """What measuring needs to know of a nest with known sizes.

    `length` is about how many terms an element is the sum of, `calls` how many calls in a row keep the values normal.
    `dominant`: it divides by data, or takes roots. `settable` are arrays that it sets and reads.
    """

    iterations: int
    length: int
    calls: int
    dominant: bool
    settable: frozenset[str]


def facts(nest: Nest, sizes: Mapping[str, int]) -> Facts:
    """The facts of a nest, its open sizes being these."""
    fixed = nest.with_sizes(sizes)
    counts = {s.name: _iterations(s.domain) for s in fixed.statements}
    lengths = (ceil(counts[s.name] / max(1, _elements(fixed, s.target.array))) for s in fixed.statements)
    assigned = frozenset(s.target.array for s in fixed.statements if s.op == "=")
    read = frozenset(load.array for s in fixed.statements for load in s.reads)
    return Facts(
        iterations=sum(counts.values()),
        length=sum(lengths),
        calls=DRIFT if any(_drifts(s, fixed.written) for s in fixed.statements) else CALLS,
        dominant=any(_delicate(s) for s in fixed.statements),
        settable=frozenset(a.name for a in fixed.arguments if a.name in assigned & read and a.dtype.is_float),
    )


def trusted(nest: Nest, sizes: Mapping[str, int], isa: ISA, iterations: int) -> tuple[Nest, Compiled]:
    """The nest with all sizes known and in double precision, and its C text. It runs on one thread."""
    wide = _wide(nest.with_sizes(sizes))
    followed = schedule(wide) if iterations <= PLAIN else default_schedule(wide, isa, caches(), 1)
    return wide, translate(followed, isa)


def _wide(nest: Nest) -> Nest:
    return replace(nest, arrays=tuple(replace(a, dtype=f64) if a.dtype == f32 else a for a in nest.arrays))


def _iterations(domain: isl.Set) -> int:
    """The iterations in the box around a domain."""
    if domain.is_empty():
        return 0
    ends = ((domain.dim_min_val(at), domain.dim_max_val(at)) for at in range(domain.dim(isl.dim_type.set)))
    return prod(last.to_python() - first.to_python() + 1 for first, last in ends)


def _elements(nest: Nest, array: str) -> int:
    return prod(extent.evaluate({}) for extent in nest.array(array).shape)


def _drifts(statement: Statement, written: frozenset[str]) -> bool:
    """A second call starts from other values than the first, and not just from larger sums."""
    return statement.op == "*" or any(load.array in written for load in loads(statement.expr))


def _delicate(statement: Statement) -> bool:
    """It divides by an element, or takes a root."""
    return any(
        (isinstance(node, Binary) and node.op == "/" and bool(loads(node.right)))
        or (isinstance(node, Call) and node.function == "sqrt")
        for node in walk(statement.expr)
    )
