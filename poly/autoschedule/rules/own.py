"""Rules that users and packages add to the space of a nest.

A rule makes forms of a nest: ways to transform its loops, each with its block sizes open. The space of a nest has one
structure for each of them, beside those of poly's own rules. Schedules that were not proven step by step are proven
here, so that every point is legal whatever a rule does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from microkernels.errors import PluginError, plain, shown
from microkernels.plugins import blamed, load, names
from poly.autoschedule.rules.form import Form
from poly.autoschedule.spaces.space import Values
from poly.errors import ScheduleError
from poly.ir.nest import Nest
from poly.model.core import Target
from poly.schedules.schedule import Schedule, schedule

GROUP = "poly.rules"
"""The entry point group in which packages offer rules, each under the rule's name."""


class Rule(Protocol):
    """A rule of the space."""

    @property
    def name(self) -> str:
        """What the structures of its forms are called: their trait `rule`."""

    def forms(self, nest: Nest, target: Target) -> Iterable[Form]:
        """The forms of a nest for a target; none if the rule does not apply."""


_OWN: dict[str, Rule] = {}


def register(rule: Rule) -> Rule:
    """Add a rule, or replace the one of its name. Raises ScheduleError for anything else."""
    if not is_rule(rule):
        raise ScheduleError(f"{shown(rule)} is no rule: a rule has a name and a method forms(nest, target).")
    _OWN[rule.name] = rule
    return rule


def is_rule(value: object) -> bool:
    """Whether a value has the parts of a rule."""
    return isinstance(getattr(value, "name", None), str) and callable(getattr(value, "forms", None))


def own_forms(nest: Nest, target: Target) -> Iterator[Form]:
    """The forms of all rules that were registered or that packages offer, each with a trait that names its rule.

    Raises PluginError if a rule fails, or makes something else than legal forms of this nest.
    """
    for name in names(GROUP):
        if name not in _OWN:
            _OWN[name] = load(GROUP, name, lambda one: is_rule(one) and one.name == name, f"rule {name}")  # noqa: B023
    for rule in tuple(_OWN.values()):
        told = f"the rule {plain(rule.name)} of the space"
        with blamed(told):
            made = tuple(rule.forms(nest, target))
        for number, form in enumerate(made):
            yield _checked(form, nest, told, (("rule", f"{rule.name} {number}" if len(made) > 1 else rule.name),))


def _checked(form: Form, nest: Nest, told: str, traits: tuple[tuple[str, str], ...]) -> Form:
    if not isinstance(form, Form):
        raise PluginError(f"{told} made {shown(form)}, which is no form.")
    try:
        tried = _proven(form.tried, nest, told)
    except ScheduleError as error:
        raise PluginError(f"{told} made a form that is not legal at its usual sizes: {error}") from error

    def make(values: Values) -> Schedule | None:
        try:
            with blamed(told):
                made = form.make(values)
            return None if made is None else _proven(made, nest, told)
        except ScheduleError:
            return None

    with blamed(told):
        known = all(dict(form.usual)[knob.name] in knob.values for knob in form.knobs)
    if not known:
        raise PluginError(f"{told} made a form whose usual values are none of its knobs' values.")
    return replace(form, traits=(*traits, *form.traits), make=make, tried=tried)


def _proven(made: Schedule, nest: Nest, told: str) -> Schedule:
    """The same steps on the nest itself, each proven. Raises PolyError if they are illegal, or no schedule."""
    if not isinstance(made, Schedule):
        raise PluginError(f"{told} made {shown(made)}, which is no schedule.")
    return schedule(nest).apply(made.steps)
