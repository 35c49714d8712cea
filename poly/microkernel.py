"""Put a microkernel in place of the innermost loops of a contraction.

    for i_tile: for j_tile:                         for i_tile: for j_tile:
      for i: for j: for k:               ->           microkernel gemm_avx512_6x64 over i, j, k
        C[i, j] += A[i, k] * B[k, j]
"""

from __future__ import annotations

from dataclasses import replace

from microkernels.catalogue import Microkernel, find
from poly.calls import involves
from poly.contraction import Contraction, exchange, recognise
from poly.coordinates import linear
from poly.ctext import constants
from poly.errors import ScheduleError
from poly.instances import Instances
from poly.layout import step
from poly.micro_call import LEVELS
from poly.nest import Nest, Statement
from poly.paths import paths
from poly.steps.base import edit
from poly.tree import Band, Leaf, Micro, Node, walk


def insert(nest: Nest, tree: Node, kernel: str) -> Node:
    """The tree with the microkernel over the innermost loops of the contraction that has loops for it.

    Raises:
        ScheduleError: no contraction, or loops that do not fit the kernel's tile; the message says which, and what to do.
        TargetError: no such microkernel.
    """
    found = [(s, c) for s in nest.statements if (c := recognise(nest, s)) is not None]
    leaves = {n.statement for n in walk(tree) if isinstance(n, Leaf)}
    found = [(s, c) for s, c in found if s.name in leaves]
    if not found:
        raise ScheduleError(
            f"microkernel({kernel}): no statement of {nest.name} is a contraction, `C[…] += A[…] * B[…]` over arrays of one floating type."
        )
    statement, contraction = found[0]
    bands = _innermost(tree, statement)
    flipped = not _contiguous(nest, contraction)
    if flipped:
        contraction = exchange(contraction)
    micro, absorbed = _absorb(statement, contraction, bands, kernel)
    _check(nest, statement, replace(micro, exchanged=flipped), find(kernel, nest.array(statement.target.array).dtype), tree)
    return edit(tree, absorbed[0], replace(micro, exchanged=flipped))


def _innermost(tree: Node, statement: Statement) -> list[Band]:
    """The bands directly around a statement, from inside out, up to a place that other statements share."""
    path = paths(tree)[statement.name]
    bands: list[Band] = []
    for entry in reversed(path):
        if not isinstance(entry, Band):
            break
        bands.append(entry)
    return bands


def _contiguous(nest: Nest, contraction: Contraction) -> bool:
    """Whether the output is contiguous along a column loop."""
    output = nest.array(contraction.output.array)
    return any(step(output, contraction.output, i).constant == 1 for i in contraction.columns)


def _absorb(
    statement: Statement, contraction: Contraction, bands: list[Band], kernel: str
) -> tuple[Micro, list[Band]]:
    """The microkernel with the bands that it takes, and these bands, outermost first."""
    rows: Band | None = None
    columns: Band | None = None
    reduce: list[Band] = []
    taken: list[Band] = []
    for band in bands:
        if not _is_point(statement, band):
            break
        role = _role(statement, contraction, band)
        if role == "rows" and rows is None:
            rows = band
        elif role == "columns" and columns is None:
            columns = band
        elif role == "reduce" and len(reduce) < LEVELS:
            reduce.insert(0, band)
        else:
            break
        taken.insert(0, band)
    if columns is None or not reduce:
        lacking = "a loop of the columns" if columns is None else "a loop of the reduction"
        around = ", ".join(band.name for band in reversed(bands)) or "none"
        raise ScheduleError(
            f"microkernel({kernel}): the innermost loops around {statement.name} lack {lacking}. Loops around it alone: {around}. "
            f"Columns: {', '.join(contraction.columns)}; reduction: {', '.join(contraction.reduce)}. "
            "Remedy: order or distribute the loops so that these are innermost."
        )
    return Micro(kernel, statement.name, rows, columns, tuple(reduce)), taken


def _is_point(statement: Statement, band: Band) -> bool:
    """Whether the loop counts iterations, not tiles: its function is linear."""
    return linear(statement.iterators, band.function(statement.name)) is not None


def _role(statement: Statement, contraction: Contraction, band: Band) -> str:
    """The one role whose iterators the loop counts, or `mixed`."""
    function = band.function(statement.name)
    roles = [
        role
        for role in ("rows", "columns", "reduce", "batch")
        if involves(statement, function, frozenset(getattr(contraction, role)))
    ]
    return roles[0] if len(roles) == 1 else "mixed"


def _check(nest: Nest, statement: Statement, micro: Micro, kernel: Microkernel, tree: Node) -> None:
    """Refuse tiles larger than the kernel's."""
    path = [entry for entry in paths(tree)[statement.name] if isinstance(entry, Band)]
    inner = [band for band in (micro.rows, micro.columns, *micro.reduce) if band is not None]
    outer = tuple((b.name, b.function(statement.name)) for b in path if not any(b is taken for taken in inner))
    instances = Instances("tile", statement.domain, outer)
    for band, most, what in ((micro.rows, kernel.rows, "rows"), (micro.columns, kernel.columns, "columns")):
        if band is None:
            continue
        counts = constants(instances.most(band.function(statement.name)))
        if counts is None or max(counts) > most:
            size = "any number of" if counts is None else str(max(counts))
            raise ScheduleError(
                f"microkernel({kernel.name}): loop {band.name} runs over {size} {what} at a time, the kernel's tile has {most}. "
                f"Remedy: split({band.name}={most}) first."
            )
