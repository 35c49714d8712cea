"""Blocks of loops that are no contraction: of the loops of the heaviest chain, of cache lines, of time steps.

Each function gives the forms that a schedule allows, their sizes open.
"""

from __future__ import annotations

from poly.autoschedule.defaults.attempt import attempt
from poly.autoschedule.defaults.blocks import blocked
from poly.autoschedule.defaults.loops import innermost
from poly.autoschedule.defaults.marks import vectorized
from poly.autoschedule.defaults.wavefront import CHAINS, overlapped
from poly.autoschedule.spaces.form import Form, new_loops
from poly.autoschedule.spaces.grids import middle, sizes, uncut
from poly.autoschedule.spaces.orders import Base, heaviest
from poly.autoschedule.spaces.space import Knob, Values
from poly.ir.edits import find_loop
from poly.ir.strides import extent
from poly.ir.tree import Band
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Step, Tile, Unroll

DEEPEST = 3
"""Loops that are cut together: more than three make grids that no search gets through."""

OUTER, INNER = (4, 256), (32, 4096)
"""The least and the largest block of a loop around others, and of an innermost one, which runs in vector lanes."""

SQUARE = (4, 128)
"""The same for a block of cache lines, in both loops."""

WRITTEN_OUT = (2, 4, 8)
"""Iterations that are written out at a time."""

SIDE_BY_SIDE = (2, 4, 8, 16)
"""Recurrences that run side by side."""


def plain(base: Base) -> Form:
    """The loops as they are, in vector lanes."""
    return Form(base.traits, lambda values: vectorized(base.made))


def written_out(base: Base) -> Form | None:
    """Several iterations at a time of the innermost loops that can't run in vector lanes; None without any."""
    made = vectorized(base.made)
    loops = [band.name for band in innermost(made.tree) if not band.vectorize]
    if not loops:
        return None
    return Form(
        (*base.traits, ("innermost", "written out")),
        lambda values: made.apply([Unroll(tuple((loop, values["unroll"] or 1) for loop in loops))]),
        (Knob("unroll", WRITTEN_OUT),),
        (("unroll", WRITTEN_OUT[0]),),
    )


def blocks(base: Base) -> Form | None:
    """The loops of the heaviest chain in blocks; None where they may not be cut, or aren't two of some length."""
    chain = heaviest(base.made)
    loops = chain.bands[-DEEPEST:] if chain else ()
    while len(loops) > 1:
        form = _blocks(base, loops)
        if form is not None:
            return form
        loops = loops[1:]
    return None


def _blocks(base: Base, loops: tuple[Band, ...]) -> Form | None:
    grid = {band.name: sizes(extent(base.made.nest, band), *_bounds(band is loops[-1])) for band in loops}
    if not all(grid.values()):
        return None
    usual = tuple((name, middle(values)) for name, values in grid.items())

    def make(values: Values) -> Schedule | None:
        cut = [(name, value) for name, value in values.items() if value is not None]
        made = attempt(base.made, [Tile(tuple(cut))])
        return made and vectorized(made)

    first = make(dict(usual))
    if first is None:
        return None
    return Form(
        (*base.traits, ("blocks", "of loops")),
        make,
        tuple(Knob(name, uncut(values)) for name, values in grid.items()),
        usual,
        new_loops(base.made, first, {name: name for name in grid}),
        allows=lambda values: any(value is not None for name, value in values.items() if name != loops[0].name),
    )


def _bounds(innermost: bool) -> tuple[int, int]:
    return INNER if innermost else OUTER


def lines(base: Base) -> Form | None:
    """The two innermost loops in blocks of cache lines; None where one of them is contiguous for all accesses."""
    first = blocked(base.made)
    tiles = [step for step in first.steps[len(base.made.steps) :] if isinstance(step, Tile)]
    if not tiles:
        return None
    (outer, above), (inner, below) = tiles[0].sizes

    def make(values: Values) -> Schedule | None:
        made = blocked(base.made, (values[outer] or above, values[inner] or below))
        return vectorized(made) if made is not base.made else None

    def grid(loop: str, usual: int) -> Knob:
        whole = extent(base.made.nest, find_loop(base.made.tree, loop))
        return Knob(loop, sizes(whole, *SQUARE, (usual,)))

    cuts = {f"{loop}_tile": knob for tile in tiles for (loop, _), knob in zip(tile.sizes, (outer, inner), strict=True)}
    return Form(
        (*base.traits, ("blocks", "of lines")),
        make,
        (grid(outer, above), grid(inner, below)),
        ((outer, above), (inner, below)),
        cuts,
    )


def side_by_side(base: Base) -> Form | None:
    """Recurrences of neighbouring iterations side by side; None where no innermost loop carries one that allows it."""
    first = overlapped(base.made)
    if first is base.made:
        return None
    made: list[Step] = list(first.steps[len(base.made.steps) :])
    cut = {name for step in made for name, _ in getattr(step, "sizes", ())}
    return Form(
        (*base.traits, ("recurrences", "side by side")),
        lambda values: vectorized(overlapped(base.made, values["chains"] or CHAINS)),
        (Knob("chains", SIDE_BY_SIDE),),
        (("chains", CHAINS),),
        new_loops(base.made, first, dict.fromkeys(cut, "chains")),
    )
