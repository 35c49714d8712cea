"""Rename in a pair, by a walk over all values, so that no place is forgotten."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from fuzz.pairs import Pair
from fuzz.schedules import Step
from fuzz.syntax import Binary, Call, DataTest, Joined, Number, Program, Test

LOOP = re.compile(r"^(.*?)((?:_tile\d*|_\d+)*)$")
"""A loop's name, and what steps append to it."""


def renamed(pair: Pair, names: Mapping[str, str]) -> Pair:
    program = _value(pair.program, names)
    runs = tuple(replace(r, sizes=tuple((names.get(n, n), v) for n, v in r.sizes)) for r in pair.runs)
    known = tuple(names.get(n, n) for n in pair.known)
    steps = None if pair.steps is None else tuple(_step(step, names) for step in pair.steps)
    return replace(pair, program=program, runs=runs, known=known, steps=steps)


def _value(value: Any, names: Mapping[str, str]) -> Any:
    """A value of `fuzz.syntax` with other names in it; strings that are not names (operators, types) stay."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, tuple):
        return tuple(_value(item, names) for item in value)
    if isinstance(value, Program):
        kept = ("functions", "reassociate")
    elif isinstance(value, Binary | Test | DataTest):
        kept = ("op",)
    elif isinstance(value, Joined):
        kept = ("word",)
    elif isinstance(value, Call):
        kept = ("function",)
    elif isinstance(value, Number) or not is_dataclass(value):
        return value
    else:
        kept = ("dtype", "op", "by", "rest", "scalar", "step", "below")
    changed = {f.name: _value(getattr(value, f.name), names) for f in fields(value) if f.name not in kept}
    return replace(value, **changed)


def _step(step: Step, names: Mapping[str, str]) -> Step:
    def loop(text: Any) -> Any:
        if not isinstance(text, str):
            return text
        if " " in text:
            return " ".join(map(loop, text.split()))
        match = LOOP.match(text)
        assert match
        return names[text] if text in names else names.get(match[1], match[1]) + match[2]

    return Step(step.method, tuple(map(loop, step.args)), tuple((loop(k), loop(v)) for k, v in step.kwargs))
