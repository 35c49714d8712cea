"""Blocks of time steps: how many steps, and which of the loops inside are cut with them.

one row    a tile of time steps runs row by row through the whole space
rows       all loops inside the time loop but the innermost are cut too
all        the innermost too
"""

from __future__ import annotations

from collections.abc import Iterator

from poly.autoschedule.defaults.marks import vectorized
from poly.autoschedule.defaults.time_tiles import TimeLoops, TimeTiles, tile_in_time, time_loops, usual_tiles
from poly.autoschedule.spaces.form import Form
from poly.autoschedule.spaces.grids import middle, sizes
from poly.autoschedule.spaces.orders import Base
from poly.autoschedule.spaces.space import Knob, Values
from poly.ir.strides import extent
from poly.ir.tree import Band, bands
from poly.model import Caches
from poly.schedules.schedule import Schedule

STEPS, ROWS, INNER = (2, 64), (4, 128), (256, 4096)
"""The least and the most time steps of a tile, its rows, and its elements of the innermost loop."""


def time_tiles(base: Base, caches: Caches) -> Iterator[Form]:
    """The forms of the first time loop that there is; the rule's own sizes are among those of its form."""
    for band in bands(base.made.tree):
        found = time_loops(base.made, band)
        if found is not None:
            usual = usual_tiles(base.made.nest, found, caches)
            forms = (_form(base, found, name, depth, usual) for name, depth in _names(found))
            yield from (form for form in forms if form is not None)
            return


def _names(found: TimeLoops) -> list[tuple[str, int]]:
    """The forms, and how many of the loops inside the time loop each cuts."""
    return [*([("one row", 0), ("rows", found.depth - 1)] if found.depth > 1 else []), ("all", found.depth)]


def _form(base: Base, found: TimeLoops, name: str, depth: int, usual: TimeTiles | None) -> Form | None:
    """The form in which the outer `depth` loops are cut; the first is run value by value where there is none."""
    nest, time = base.made.nest, found.time.name
    inside = found.chains[0].bands[:depth]
    own = {}
    if usual is not None and tuple(block is None for block in usual.blocks) == ((False,) * depth or (True,)):
        own = {band.name: block for band, block in zip(inside, usual.blocks, strict=False)} | {time: usual.time}

    def grid(band: Band, bounds: tuple[int, int]) -> tuple[int, ...]:
        also = own.get(band.name)
        return sizes(extent(nest, band), *bounds, () if also is None else (also,))

    grids = {time: grid(found.time, STEPS)}
    grids |= {band.name: grid(band, INNER if band is found.chains[0].bands[-1] else ROWS) for band in inside}
    if not all(grids.values()):
        return None

    def make(values: Values) -> Schedule | None:
        blocks = tuple(values[band.name] for band in inside) or (None,)
        made = tile_in_time(base.made, found, TimeTiles(values[time] or 1, blocks))
        return made and vectorized(made)

    return Form(
        (*base.traits, ("time tiles", name)),
        make,
        tuple(Knob(loop, values) for loop, values in grids.items()),
        tuple((loop, own.get(loop) or middle(values)) for loop, values in grids.items()),
        {f"{loop}_tile": loop for loop in grids},
        default=base.usual and bool(own),
    )
