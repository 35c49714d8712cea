"""A form: one way to transform a nest, with its sizes open. Each rule goes on from the forms of those before it.

    orders  ->  sharing  ->  time tiles, lines, recurrences side by side, blocks  ->  lanes  ->  written out, grain

A form is tried once, at its usual sizes: whether shifts, skews and blocks are legal does not depend on the sizes of
blocks, so that all of its points are legal where that one is. The default schedule is a form's usual point, and a space
has a structure for each form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from poly.analysis.roles import ASSUMED
from poly.autoschedule.spaces.space import Knob, Structure, Value, Values
from poly.errors import ScheduleError
from poly.ir.fixing import fix_tree
from poly.ir.tree import bands
from poly.model.core import Target
from poly.model.cost import Cost
from poly.schedules.schedule import Schedule

if TYPE_CHECKING:
    from poly.model.schedules import ScheduleModel

Traits = tuple[tuple[str, str], ...]

Transformation = Callable[[Schedule, Values], Schedule | None]
"""A rule's steps at some values, after those of a schedule; None where they are illegal."""

WHOLE = 1 << 40
"""A block that no loop fills: what a loop that stays uncut is to the model."""


def always(values: Values) -> bool:
    """No combination of values is left out."""
    del values
    return True


def as_they_are(values: Values) -> dict[str, int]:
    """Knobs that are blocks themselves."""
    return {name: WHOLE if value is None else value for name, value in values.items()}


@dataclass(frozen=True)
class Form:
    """`make` gives the schedule of some values, None where that is illegal; `tried` is that of the usual values.

    `traits` tell forms apart: they say which rules have made one. `cuts` names the knob that says the block of each
    loop over blocks. `blocks` makes numbers of the knobs' values.
    """

    traits: Traits
    make: Callable[[Values], Schedule | None]
    tried: Schedule
    knobs: tuple[Knob, ...] = ()
    usual: tuple[tuple[str, Value], ...] = ()
    cuts: Mapping[str, str] = field(default_factory=dict)
    allows: Callable[[Values], bool] = always
    blocks: Callable[[Values], dict[str, int]] = as_they_are

    @staticmethod
    def fixed(traits: Traits, made: Schedule) -> Form:
        """A form without sizes."""
        return Form(traits, lambda values: made, made)

    def then(
        self,
        transform: Transformation,
        tried: Schedule,
        traits: Traits = (),
        knobs: tuple[Knob, ...] = (),
        usual: tuple[tuple[str, Value], ...] = (),
        cuts: Mapping[str, str] | None = None,
        allows: Callable[[Values], bool] = always,
    ) -> Form:
        """The form that a rule makes of this one; `tried` is what it makes of `self.tried` at its own usual values."""

        def make(values: Values) -> Schedule | None:
            made = self.make(values)
            return made and transform(made, values)

        return replace(
            self,
            traits=(*self.traits, *traits),
            make=make,
            tried=tried,
            knobs=(*self.knobs, *knobs),
            usual=(*self.usual, *usual),
            cuts={**self.cuts, **(cuts or {})},
            allows=lambda values: self.allows(values) and allows(values),
        )

    def free(self, knob: str) -> str:
        """A name for a knob that no other has."""
        taken = dict(self.usual)
        numbered = (f"{knob}_{number}" for number in range(2, len(taken) + 3))
        return next(name for name in (knob, *numbered) if name not in taken)

    def schedule(self, values: Values) -> Schedule:
        """The schedule of some values.

        Raises:
            ScheduleError: they are no legal schedule.
        """
        return legal(self.make(values), values)

    def structure(self, target: Target, sizes: Mapping[str, int]) -> Structure:
        """The structure of a space; costs are predicted at these values of the sizes that are open."""
        predict = _Predictor(self, target, sizes).predict
        return Structure(self.traits, self.knobs, self.allows, self.schedule, predict)

    def at(self) -> tuple[int, ...]:
        """The place of the usual values in the grid."""
        values = dict(self.usual)
        return tuple(knob.values.index(values[knob.name]) for knob in self.knobs)


@dataclass(frozen=True)
class _Predictor:
    """The model of a form's schedules, made when it is first asked: it takes some questions to isl."""

    form: Form
    target: Target
    sizes: Mapping[str, int]

    def predict(self, values: Values) -> Cost:
        return self._model.predict(self.form.blocks(values))

    @cached_property
    def _model(self) -> ScheduleModel:
        from poly.model.schedules import ScheduleModel  # poly.compile predicts no form's costs

        return ScheduleModel(located(self.form.tried, self.sizes), self.form.cuts, self.target)


def legal(made: Schedule | None, values: Values) -> Schedule:
    """The schedule of some values. Raises ScheduleError where there is none, as these are illegal."""
    if made is None:
        raise ScheduleError(f"the sizes {dict(values)} are illegal for this structure of the space.")
    return made


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
