"""A rule of the space: the outermost loop backwards in blocks, where that is legal."""

from __future__ import annotations

from collections.abc import Iterator

import poly
from poly.extending import Form, Knob

SIZES = (8, 32, 128)
"""The block sizes that a search chooses from."""


class Backwards:
    """One form: the first loop is cut into blocks, and the blocks run from the last to the first."""

    name = "backwards"

    def forms(self, nest: poly.Nest, target: object) -> Iterator[Form]:
        """None, if the loops are not legal backwards; else one form with one knob."""
        first = nest.statements[0].iterators[:1]
        if not first:
            return
        (loop,) = first

        def make(values: dict[str, int]) -> poly.Schedule:
            return poly.schedule(nest).tile(**{loop: values["block"]}).reverse(f"{loop}_tile")

        usual = {"block": SIZES[1]}
        try:
            tried = make(usual)
        except poly.ScheduleError:
            return
        knobs = (Knob("block", SIZES),)
        yield Form((("blocks", "backwards"),), make, tried, knobs, tuple(usual.items()), {f"{loop}_tile": "block"})


BACKWARDS = Backwards()
