"""A form: one way to transform a nest, with its sizes open. What becomes a structure of a space.

A form is tried once, at its usual sizes: whether shifts, skews and blocks are legal does not depend on the sizes of
blocks, so that all of its points are legal where that one is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from microkernels.isa import ISA
from poly.analysis.roles import ASSUMED
from poly.autoschedule.spaces.space import Knob, Structure, Values
from poly.errors import ScheduleError
from poly.ir.fixing import fix_tree
from poly.ir.tree import bands
from poly.model import Caches
from poly.model.core import Core
from poly.model.cost import Cost
from poly.model.rates import Rates
from poly.model.schedules import ScheduleModel
from poly.schedules.schedule import Schedule

Traits = tuple[tuple[str, str], ...]

WHOLE = 1 << 40
"""A block that no loop fills: what a loop that stays uncut is to the model."""


@dataclass(frozen=True)
class SpaceTarget:
    """What schedules are derived and costs predicted for; `sizes` are values of the nest's open sizes."""

    isa: ISA
    caches: Caches
    rates: Rates
    threads: int
    sizes: Mapping[str, int]


def always(values: Values) -> bool:
    """No combination of values is left out."""
    del values
    return True


def as_they_are(values: Values) -> dict[str, int]:
    """Knobs that are blocks themselves."""
    return {name: WHOLE if value is None else value for name, value in values.items()}


@dataclass(frozen=True)
class Form:
    """`make` gives the schedule of some values, None where that is illegal; `usual` are the values tried first.

    `cuts` names the knob that says the block of each loop over blocks. `blocks` makes numbers of the knobs' values.
    """

    traits: Traits
    make: Callable[[Values], Schedule | None]
    knobs: tuple[Knob, ...] = ()
    usual: tuple[tuple[str, int | None], ...] = ()
    cuts: Mapping[str, str] | None = None
    allows: Callable[[Values], bool] = always
    blocks: Callable[[Values], dict[str, int]] = as_they_are
    default: bool = False
    """Whether the usual point is what `poly.compile` takes without a measurement."""

    def schedule(self, values: Values) -> Schedule:
        """The schedule of some values.

        Raises:
            ScheduleError: they are no legal schedule.
        """
        made = self.make(values)
        if made is None:
            raise ScheduleError(f"the sizes {dict(values)} are illegal for this structure of the space.")
        return made

    def tried(self) -> Schedule | None:
        """The schedule of the usual values; None where it is illegal."""
        return self.make(dict(self.usual))

    def structure(self, tried: Schedule, target: SpaceTarget) -> Structure:
        """The structure; `tried` is the form's usual schedule."""
        return Structure(self.traits, self.knobs, self.allows, self.schedule, _Predictor(self, tried, target).predict)

    def at(self) -> tuple[int, ...]:
        """The place of the usual values in the grid."""
        values = dict(self.usual)
        return tuple(knob.values.index(values[knob.name]) for knob in self.knobs)


@dataclass(frozen=True)
class _Predictor:
    """The model of a form's schedules, made when it is first asked: it takes some questions to isl."""

    form: Form
    made: Schedule
    target: SpaceTarget

    def predict(self, values: Values) -> Cost:
        return self._model.predict(self.form.blocks(values))

    @cached_property
    def _model(self) -> ScheduleModel:
        t = self.target
        core = Core(t.isa, t.caches, t.rates, t.threads)
        return ScheduleModel(located(self.made, t.sizes), self.form.cuts or {}, core)


def located(made: Schedule, sizes: Mapping[str, int]) -> Schedule:
    """The schedule at some values of the sizes that are open; ASSUMED for those that are not given."""
    values = {size: sizes.get(size, ASSUMED) for size in made.nest.sizes}
    if not values:
        return made
    return replace(made, nest=made.nest.with_sizes(values), tree=fix_tree(made.tree, values))


def new_loops(before: Schedule, after: Schedule, knobs: Mapping[str, str]) -> dict[str, str]:
    """The loops over blocks that a step has made, with the knob for each; `knobs` names those of the loops cut."""
    old = {band.name for band in bands(before.tree)}
    made = [band.name for band in bands(after.tree) if band.name not in old]
    return {name: knobs[loop] for name in made if (loop := name.rpartition("_tile")[0]) in knobs}
