"""A form: one way to transform a nest, with its block sizes open. Each rule extends the forms of the rules before it.

    orders  ->  sharing  ->  tiles, lines, recurrences side by side, blocks  ->  lanes  ->  written out, grain

A form is tried once, at its usual sizes: the legality of shifts, skews and blocks does not depend on block sizes, so if
that point is legal, all of its points are. The default schedule is the usual point of a form, and a space has one
structure per form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from microkernels.cached import cached_property
from poly.analysis.roles import assumed
from poly.autoschedule.spaces.space import Knob, Structure, Value, Values
from poly.errors import ScheduleError
from poly.ir.fixing import fix_tree
from poly.ir.tree import bands
from poly.model.core import Target
from poly.model.cost import Cost
from poly.model.parts import ScheduleParts
from poly.model.schedules import ScheduleModel
from poly.schedules.schedule import Schedule

Traits = tuple[tuple[str, str], ...]

Transformation = Callable[[Schedule, Values], Schedule | None]
"""Adds a rule's steps, at given values, to a schedule; None if they are illegal."""

WHOLE = 1 << 40
"""A block larger than any loop, which stands for an uncut loop in the model."""


def always(values: Values) -> bool:
    """Allow every combination of values."""
    del values
    return True


def block_sizes(values: Values) -> dict[str, int]:
    """The block sizes, if every knob is one."""
    return {name: WHOLE if value is None else value for name, value in values.items()}


@dataclass(frozen=True)
class Form:
    """One way to transform a nest, with its sizes open.

    `make` builds the schedule at given values, None if it is illegal; `tried` is the schedule at the usual values.
    `traits` name the rules behind a form and tell forms apart. `cuts` maps each loop over blocks to the knob that sets
    its block size. `blocks` converts the knobs' values to block sizes.
    """

    traits: Traits
    make: Callable[[Values], Schedule | None]
    tried: Schedule
    knobs: tuple[Knob, ...] = ()
    usual: tuple[tuple[str, Value], ...] = ()
    cuts: Mapping[str, str] = field(default_factory=dict)
    allows: Callable[[Values], bool] = always
    blocks: Callable[[Values], dict[str, int]] = block_sizes

    @staticmethod
    def fixed(traits: Traits, made: Schedule) -> Form:
        """A form without knobs."""
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
        """This form extended by a rule; `tried` is `self.tried` transformed at the rule's own usual values."""

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

    def behind(self, made: Schedule, trait: tuple[str, str]) -> Form:
        """The form behind the steps of a schedule whose nest it is of."""

        def after(other: Schedule) -> Schedule:
            return replace(other, steps=(*made.steps, *other.steps))

        def make(values: Values) -> Schedule | None:
            found = self.make(values)
            return found and after(found)

        return replace(self, traits=(trait, *self.traits), make=make, tried=after(self.tried))

    def free(self, knob: str) -> str:
        """An unused name for a knob."""
        taken = dict(self.usual)
        numbered = (f"{knob}_{number}" for number in range(2, len(taken) + 3))
        return next(name for name in (knob, *numbered) if name not in taken)

    def schedule(self, values: Values) -> Schedule:
        """The schedule at given values.

        Raises:
            ScheduleError: the values give no legal schedule.
        """
        return legal(self.make(values), values)

    def structure(self, target: Target, sizes: Mapping[str, int]) -> Structure:
        """The form as a structure of a space; costs are predicted at these values of the open sizes."""
        predict = _Predictor(self, target, sizes).predict
        return Structure(self.traits, self.knobs, self.allows, self.schedule, predict)

    def at(self) -> tuple[int, ...]:
        """The position of the usual values in the grid."""
        values = dict(self.usual)
        return tuple(knob.values.index(values[knob.name]) for knob in self.knobs)


@dataclass(frozen=True)
class _Predictor:
    """The cost model of a form's schedules, built on first use because it queries isl."""

    form: Form
    target: Target
    sizes: Mapping[str, int]

    def predict(self, values: Values) -> Cost:
        return self._model.predict(self.form.blocks(values))

    @cached_property
    def _model(self) -> ScheduleModel:
        return ScheduleModel(with_known_sizes(self.form.tried, self.sizes), self.form.cuts, self.target)


def legal(made: Schedule | None, values: Values) -> Schedule:
    """The schedule made at given values. Raises ScheduleError if there is none because they are illegal."""
    if made is None:
        raise ScheduleError(f"the sizes {dict(values)} are illegal for this structure of the space.")
    return made


def with_known_sizes(made: Schedule, sizes: Mapping[str, int]) -> Schedule:
    """The schedule with its open sizes fixed, at those assumed if no value is given."""
    values = {size: sizes.get(size, usual) for size, usual in assumed(made.nest).items()}
    if not values:
        return made
    return replace(made, nest=made.nest.with_sizes(values), tree=fix_tree(made.tree, values))


def usual_parts(made: Schedule, target: Target, ready: str = "") -> ScheduleParts:
    """The parts of a schedule that the model prices, with open sizes as assumed, and without copies of `ready`."""
    return ScheduleModel(with_known_sizes(made, {}), {}, target, ready).form({})


def new_loops(before: Schedule, after: Schedule, knobs: Mapping[str, str]) -> dict[str, str]:
    """The loops over blocks that a step has made, each with its knob; `knobs` is keyed by the loops that were cut."""
    old = {band.name for band in bands(before.tree)}
    made = [band.name for band in bands(after.tree) if band.name not in old]
    return {name: knobs[loop] for name in made if (loop := name.rpartition("_tile")[0]) in knobs}
