"""Steps that users and packages add, by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, TypeVar

from microkernels.errors import PluginError, plain, shown
from microkernels.plugins import load
from poly.errors import ScheduleError
from poly.schedules.steps.base import Step, check_fields

GROUP = "poly.steps"
"""The entry point group in which packages offer steps, each under the step's name."""
OF_SCHEDULE = ("nest", "steps", "tree", "apply", "on", "loops", "to_json", "from_json", "microkernel")
"""Names of a schedule's attributes, which are no steps."""

_OWN: dict[str, type[Step]] = {}

Kind = TypeVar("Kind", bound=type[Any])


def adder(taken: frozenset[str]) -> Callable[[Kind], Kind]:
    """The function that adds a step under a name that is not taken."""

    def register(kind: Kind) -> Kind:
        name = getattr(kind, "name", None)
        if not is_step(kind):
            raise ScheduleError(
                f"{shown(kind)} is no step: a step is a frozen dataclass with name, reorders, apply and arguments."
            )
        if not (isinstance(name, str) and name.isidentifier()) or name in taken or name in OF_SCHEDULE:
            raise ScheduleError(f"a step cannot be called {plain(name)}: a schedule has that name, or it is no name.")
        check_fields(kind)
        _OWN[name] = kind
        return kind

    return register


def is_step(kind: Any) -> bool:
    """Whether a value is a class with the parts of a step."""
    parts = isinstance(kind, type) and is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    return parts and callable(getattr(kind, "apply", None)) and callable(getattr(kind, "arguments", None))


def own_step(name: str) -> type[Step] | None:
    """The step that a user registered under this name, or that an installed package offers; None if there is none.

    Raises PluginError if the package's step cannot be used.
    """
    if name not in _OWN:
        offered = load(GROUP, name, lambda one: is_step(one) and getattr(one, "name", None) == name, f"step {name}")
        if offered is None:
            return None
        _OWN[name] = offered
    return _OWN[name]


def is_own(value: Any) -> bool:
    """Whether a value is a step of a class that was registered."""
    return type(value) in _OWN.values()


def described(step: Step) -> str:
    """The step's class, for errors: `the step mirror (package.module.Mirror)`."""
    kind = type(step)
    return f"the step {step.name} ({kind.__module__}.{kind.__qualname__})"


def check_text(step: Step) -> None:
    """Refuse a user's step that its own arguments do not make again. Raises PluginError."""
    try:
        given, named = json.loads(json.dumps(step.arguments()))
        same = type(step)(*given, **named) == step
    except Exception as error:  # a user's class may raise anything
        raise PluginError(f"{described(step)} has no JSON text: {type(error).__name__}: {error}.") from error
    if not same:
        raise PluginError(
            f"{described(step)} is not made again by its arguments, {shown(step.arguments())}: they must be those of "
            "its class, as values of JSON."
        )
