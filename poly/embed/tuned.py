"""The sizes of a nest that were tuned on this machine."""

from __future__ import annotations

from dataclasses import replace

from microkernels.isa import ISA
from poly.ir.nest import Nest
from poly.records import Store, key_for


def tuned_sizes(nest: Nest, isa: ISA, threads: int) -> list[dict[str, int]]:
    """Every combination of the nest's open sizes that has a record which poly.compile would follow, smallest first.

    Raises RecordError if the store cannot be used, and ToolchainError if there is no compiler.
    """
    wanted = key_for(nest, isa, threads)
    known = dict(nest.fixed)
    found = []
    for record in Store.open().records():
        sizes = dict(record.key.sizes)
        same = replace(record.key, sizes=wanted.sizes) == wanted
        if same and sizes.keys() == {*known, *nest.sizes} and known.items() <= sizes.items():
            found.append({size: sizes[size] for size in nest.sizes})
    return sorted(found, key=lambda sizes: tuple(sizes.values()))
