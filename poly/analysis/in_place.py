"""Whether an output may be the same array as an input, and the nest in which it is.

    y[i] = exp(x[i])         ->    y[i] = exp(y[i])
    y[i] = x[i] + x[i - 1]   ->    refused: y[0] would be written before it is read as x[0]

It may if no element is read as the input's after it has been written as the output's, in the order as written. The
dependences of the nest in which they are one array then keep all schedules from doing so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from codegen.ir.expr import Load, map_loads
from poly.analysis.dependences import Dependence
from poly.analysis.legality import witness
from poly.ir.budget import QUESTION, TooCostly, limited
from poly.ir.lookups import index_reads
from poly.ir.nest import Nest
from poly.ir.paths import times


def in_place(nest: Nest, read: str, written: str) -> Nest | str:
    """The nest with the array `written` in place of `read`, which is no argument any more; or why it may not be."""
    if index_reads(nest):
        return f"{nest.name} looks up indices"
    with suppress(TooCostly), limited(QUESTION, apart=True):
        late = next(_read_late(nest, read, written), None)
        return _merged(nest, read, written) if late is None else _reason(late)
    return "it takes too much work to find whether each element is read before it is written"


def _read_late(nest: Nest, read: str, written: str) -> Iterator[Dependence]:
    """Pairs of instances: one writes an element of `written`, and then one reads the same element of `read`."""
    order = times(nest, nest.tree)
    for writer in (s for s in nest.statements if s.target.array == written):
        writes = writer.relation(writer.target).intersect_params(nest.context)
        for reader in nest.statements:
            before = order[writer.name].lex_lt_map(order[reader.name])
            for load in dict.fromkeys(load for load in reader.reads if load.array == read):
                pairs = writes.apply_range(reader.relation(Load(written, load.indices)).reverse()).intersect(before)
                if not pairs.is_empty():
                    yield Dependence("flow", read, writer.name, reader.name, pairs)


def _reason(late: Dependence) -> str:
    """`S0[1] would read it after S0[0] has written it (with N = 2)`."""
    found = witness(late)
    sizes = ", ".join(f"{name} = {value}" for name, value in found.sizes)
    both = f"{late.sink}{list(found.sink)} would read it after {late.source}{list(found.source)} has written it"
    return both + (f" (with {sizes})" if sizes else "")


def _merged(nest: Nest, read: str, written: str) -> Nest:
    def renamed(load: Load) -> Load:
        return Load(written, load.indices) if load.array == read else load

    statements = tuple(replace(s, expr=map_loads(s.expr, renamed)) for s in nest.statements)
    arrays = tuple(array for array in nest.arrays if array.name != read)
    return replace(nest, arrays=arrays, statements=statements, opened="")
