"""Dependences that vector lanes keep by reading first: an iteration reads elements that only later ones write.

for i:                               for i:  # vectorize
  a[i] = b[i] * c[i]                   first a[i + 1] of all lanes,
  b[i] = a[i] * a[i + 1]       ->      then a[i] = b[i] * c[i]
                                       then b[i] = a[i] * …
"""

from __future__ import annotations

from codegen.ir.expr import Load
from codegen.lanes.ahead import is_ahead
from codegen.lanes.simd import is_apart
from poly.analysis.dependences import Dependence
from poly.ir.coordinates import linear
from poly.ir.nest import Nest, Statement
from poly.ir.paths import Path, loop_names, paths
from poly.ir.tree import Node, only_loops


def reads_first(nest: Nest, tree: Node, loop: str, carried: Dependence) -> bool:
    """Whether all pairs of a dependence that an innermost loop carries are such reads and writes.

    All statements of the loop must run in each iteration, count it by the same iterator, and reduce into nothing, so
    that what holds of their subscripts holds of the elements (`codegen.lanes.ahead`).
    """
    if carried.kind != "anti":
        return False
    found = {name: path for name, path in paths(tree).items() if loop in loop_names(path)}
    inside = [nest.statement(name) for name in found]
    if any(loop_names(path)[-1] != loop for path in found.values()):
        return False
    counters = [_counters(one, found[one.name]) for one in inside]
    own = counters[0].get(loop) if counters else None
    if own is None or any(one != counters[0] for one in counters) or {carried.source, carried.sink} - found.keys():
        return False
    domains = [one.domain.reset_tuple_id() for one in inside]
    if any(not domain.is_equal(domains[0]) for domain in domains) or any(_reduces(one, own) for one in inside):
        return False
    source, sink = nest.statement(carried.source), nest.statement(carried.sink)
    written = [one.target for one in inside]
    early = [
        load
        for load in source.reads
        if is_ahead(load, sink.target, own) and all(is_apart(load, target) for target in written)
    ]
    others = [load for load in (*source.reads, source.target) if load.array == carried.array and load not in early]
    return bool(early) and not any(_meets(source, load, sink, carried) for load in others)


def _reduces(statement: Statement, own: str) -> bool:
    return statement.op != "=" and not any(own in index.names for index in statement.target.indices)


def _meets(source: Statement, load: Load, sink: Statement, carried: Dependence) -> bool:
    """Whether an access takes part in a dependence."""
    pairs = source.relation(load).apply_range(sink.relation(sink.target).reverse())
    return not pairs.intersect(carried.relation).is_empty()


def _counters(statement: Statement, path: Path) -> dict[str, str]:
    """The loops around a statement that count one of its iterators; empty unless each iterator is counted."""
    found: dict[str, str] = {}
    for band in only_loops(path):
        value = linear(statement.iterators, band.function(statement.name))
        if value is not None and value.constant == 0 and len(value.terms) == 1 and value.terms[0][1] == 1:
            found[band.name] = value.terms[0][0]
    return found if set(found.values()) == set(statement.iterators) else {}
