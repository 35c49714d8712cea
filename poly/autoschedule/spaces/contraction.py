"""The space of a contraction: the model's structures and grids (poly/model/grid.py), each point as a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod

from poly.analysis.roles import roles
from poly.autoschedule.rules.contraction import Outline, outlined
from poly.autoschedule.rules.isolation import isolated
from poly.autoschedule.rules.microkernels import contracted
from poly.autoschedule.spaces.space import Family, Knob, Point, Structure, Values
from poly.errors import ScheduleError
from poly.ir.nest import Nest, Statement
from poly.model.contraction import Model
from poly.model.core import Target
from poly.model.grid import Grid, TileStructure
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Tensorize


def contraction_family(nest: Nest, target: Target, coarse: bool = False) -> Family | None:
    """The structures of the heaviest contraction of a nest; None where it has none with a space of its own.

    The other statements follow their default schedule. `coarse` thins the grids to some hundreds of points; the model's
    choice is among those always.
    """
    found = _heaviest(nest, target)
    if found is None:
        return None
    statement, outline = found
    grid, thin = (
        Grid(outline.work, target.caches, target.threads, outline.by_lines, thinned) for thinned in (coarse, True)
    )
    model = Model(outline.work, target.caches, target.rates, target.threads)
    made = _Maker(nest, statement.name, target, grid, model)
    kinds = list(grid.structures())
    structures = tuple(made.structure(kind) for kind in kinds)
    kind, values = thin.best(model)
    number = kinds.index(kind)
    return Family(structures, Point(number, structures[number].at(values)))


def _heaviest(nest: Nest, target: Target) -> tuple[Statement, Outline] | None:
    """The contraction with the most multiply-adds that has rows; others stream a matrix without tiles."""
    made, found = schedule(nest), []
    for statement in nest.statements:
        r = roles(nest, statement) if isolated(made, statement) else None
        if r is None or not r.rows:
            continue
        outline = outlined(r, nest.array(statement.target.array).dtype, target)
        if outline is not None:
            found.append((prod(axis.guess for axis in outline.work.axes), statement, outline))
    return max(found, key=lambda entry: entry[0])[1:] if found else None


@dataclass(frozen=True)
class _Maker:
    """Makes the structures of one contraction."""

    nest: Nest
    statement: str
    target: Target
    grid: Grid
    model: Model

    def structure(self, kind: TileStructure) -> Structure:
        return Structure(
            kind.traits,
            tuple(Knob(name, values) for name, values in self.grid.knobs(kind).items()),
            partial(self.grid.allows, kind),
            partial(self._schedule, kind),
            lambda values: self.model.predict(self.grid.choice(kind, values)),
        )

    def _schedule(self, kind: TileStructure, values: Values) -> Schedule:
        """Raises ScheduleError where the values are no legal schedule."""
        choice = self.grid.choice(kind, values)
        made = contracted(self.nest, self.target, {self.statement: choice})
        kernels = [step.kernel for step in made.steps if isinstance(step, Tensorize)]
        if choice.kernel.name not in kernels:
            raise ScheduleError(f"the sizes {dict(values)} are illegal for this structure of the space.")
        return made
