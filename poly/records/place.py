"""Points of a space as text, by names and values instead of positions, so that they can be found in a later space."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from poly.autoschedule.spaces.space import Point, Space, Value


def point_text(space: Space, point: Point) -> str:
    """The structure's traits and the value of each knob, as JSON."""
    traits = dict(space.structures[point.structure].traits)
    return json.dumps({"traits": traits, "values": space.values(point)})


def read_point(text: str) -> tuple[tuple[tuple[str, str], ...], dict[str, Value]]:
    """The traits and values in a point's text. Raises one of MALFORMED if `point_text` did not write it."""
    facts = json.loads(text)
    traits, values = dict(facts["traits"]), dict(facts["values"])
    if not all(isinstance(trait, str) for trait in traits.values()):
        raise ValueError("the traits of a point are texts")
    if not all(value is None or type(value) is int for value in values.values()):
        raise ValueError("the values of a point are integers or null")
    return tuple(traits.items()), values


def find_point(space: Space, text: str) -> Point | None:
    """The point with exactly these traits and values; None if the space has none."""
    from poly.autoschedule.spaces.space import Point  # a compilation that looks up a record needs no spaces

    traits, values = read_point(text)
    for number, structure in enumerate(space.structures):
        if dict(structure.traits) == dict(traits) and {knob.name for knob in structure.knobs} == values.keys():
            if any(values[knob.name] not in knob.values for knob in structure.knobs):
                return None
            point = Point(number, tuple(knob.values.index(values[knob.name]) for knob in structure.knobs))
            return point if point in space else None
    return None
