"""The default schedule of a nest: contractions through microkernels, whatever else by its dependences.

    for i: for j:                         for i: for j:
      C[i, j] = 0                           C[i, j] = 0          (taken over by the kernel's first visit)
      for k:                      ->      …tiles, copies and the microkernel of the second statement
        C[i, j] += A[i, k] * B[k, j]

Each contraction gets loops of its own where the dependences allow it. All that is done is steps of a schedule, each
checked.
"""

from __future__ import annotations

from microkernels.isa import ISA
from poly.budget import TooCostly, limited
from poly.contraction import recognise
from poly.coordinates import linear
from poly.defaults import dependence_schedule, vectorized
from poly.defaults.attempt import attempt
from poly.microkernel import zeroing
from poly.model import Caches
from poly.nest import Nest, Statement
from poly.paths import paths
from poly.plan import contraction_steps
from poly.schedule import Schedule, schedule
from poly.steps import Distribute
from poly.tree import Band, statements

AFFORDABLE = 10_000_000
"""The operations that isl may take between two questions: some seconds."""


def default_schedule(nest: Nest, isa: ISA, caches: Caches, threads: int) -> Schedule:
    """The schedule that poly.compile takes where none is given; nothing is measured.

    It is the loops as written where finding a better one would take isl too long.
    """
    try:
        with limited(AFFORDABLE):
            return _chosen(nest, isa, caches, threads)
    except TooCostly:
        return schedule(nest)


def _chosen(nest: Nest, isa: ISA, caches: Caches, threads: int) -> Schedule:
    begun = schedule(nest)
    made = begun
    for statement in nest.statements:
        if nest.reassociate and recognise(nest, statement) is not None:
            made = _contracted(made, statement, isa, caches, threads)
    return dependence_schedule(nest, isa, caches, threads) if made is begun else vectorized(made)


def _contracted(made: Schedule, statement: Statement, isa: ISA, caches: Caches, threads: int) -> Schedule:
    """The schedule with the microkernel's loops for a contraction.

    It is the same as before where the dependences or the loops don't allow them.
    """
    alone = _distributed(made, statement)
    loops = _loops(alone, statement) if alone else None
    if alone is None or loops is None:
        return made
    steps = contraction_steps(made.nest, statement, loops, isa, caches, threads, zeroing(made.nest, statement))
    return (attempt(alone, steps) if steps else None) or made


def _distributed(made: Schedule, statement: Statement) -> Schedule | None:
    """The schedule with loops of its own for a statement; None where the dependences forbid it."""
    alone: Schedule | None = made
    while alone is not None:
        around = [entry for entry in paths(alone.tree)[statement.name] if isinstance(entry, Band)]
        shared = next((band for band in around if len(statements(band)) > 1), None)
        if shared is None:
            return alone
        alone = attempt(alone, [Distribute(shared.name)])
    return None


def _loops(made: Schedule, statement: Statement) -> dict[str, str] | None:
    """The names of the loops that count the statement's iterators, outermost first.

    None where a loop counts something else.
    """
    names: dict[str, str] = {}
    for band in paths(made.tree)[statement.name]:
        if not isinstance(band, Band):
            continue
        value = linear(statement.iterators, band.function(statement.name))
        if value is None or len(value.terms) != 1 or value.terms[0][1] != 1 or value.constant:
            return None
        names[value.terms[0][0]] = band.name
    return names
