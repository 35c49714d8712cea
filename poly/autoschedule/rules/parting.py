"""Part a loop at the iteration that its others depend on, so that these depend on nothing within their own loop.

for i:                                            for i < k: P[i, j] = min(P[i, j], P[i, k] + P[k, j])
  P[i, j] = min(P[i, j], P[i, k] + P[k, j])  ->   P[k, j] = min(P[k, j], P[k, k] + P[k, j])
                                                  for i > k: P[i, j] = min(P[i, j], P[i, k] + P[k, j])

(Griebl, Feautrier, Lengauer, "Index set splitting", IJPP 28(6), 2000.)
"""

from __future__ import annotations

from codegen.names import fresh
from poly.analysis.dependences import Dependence
from poly.ir.instances import coordinates
from poly.ir.tree import Band, bands, statements
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Part, Step
from poly.schedules.steps.formulas import Formula


def apart(made: Schedule, band: Band, own: str, conflict: Dependence) -> list[Step] | None:
    """The steps that part a loop of one statement where an end of all conflicting pairs lies; None if nowhere.

    There, the iterator `own`, which the loop advances, equals another one.
    """
    (name,) = statements(band)
    statement = made.nest.statement(name)
    values = coordinates(statement.domain, statement.iterators)
    for other in statement.iterators:
        alone = values[own].eq_set(values[other]) if other != own else None
        ends = (conflict.relation.domain(), conflict.relation.range())
        if alone is not None and any(end.is_subset(alone) for end in ends):
            taken = frozenset(statement.name for statement in made.nest.statements)
            at, behind = fresh(f"{name}_at", taken), fresh(f"{name}_behind", taken)
            first = Part(name, where=Formula(f"{own} >= {other}"), into=at)
            inwards = [inner.name for inner in bands(band)]
            then = Part(at, where=Formula(f"{own} > {other}"), into=behind)
            return [first, then, *(Distribute(loop) for loop in reversed(inwards))]
    return None
