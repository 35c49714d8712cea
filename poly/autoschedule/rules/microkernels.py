"""Contractions through microkernels: the rule for each statement, and the forms of the heaviest contraction.

over a box               contraction.py: tiles, copies and an outer product, chosen by the model
without rows             matrix_vector.py: a kernel that streams the matrix
over boxes               non_rectangular.py: an outer product over the loops that form a box once the others are fixed
with borders             interiors.py: these apart, where tiles then take more steps at once
over a slanted domain    triangles.py: as over a box, of which a part is stored

What follows the first of these runs on its register tiles where that is legal: epilogues.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import prod

from microkernels.catalogue import sums
from microkernels.dtypes import DType, bf16, f16
from microkernels.opencl_isa import DeviceISA
from microkernels.product import MULTIPLY_ADD
from poly.analysis.contraction import in_place, recognise
from poly.analysis.roles import Roles, roles
from poly.autoschedule.rules.attempt import attempt, has_loops
from poly.autoschedule.rules.blocks import blocked
from poly.autoschedule.rules.contiguous import contiguous
from poly.autoschedule.rules.contraction import Outline, Tilings, outlined, planned_steps
from poly.autoschedule.rules.epilogues import with_epilogues
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.fusion import fused
from poly.autoschedule.rules.grain import in_groups
from poly.autoschedule.rules.inner_boxes import InnerBox
from poly.autoschedule.rules.interiors import PAYS, interiors_apart
from poly.autoschedule.rules.isolation import StepsOf, each_contraction, isolated, isolation, sums_apart
from poly.autoschedule.rules.lanes import in_lanes
from poly.autoschedule.rules.matrix_vector import StreamedProduct, matrix_vector_steps, streamed
from poly.autoschedule.rules.non_rectangular import (
    NonRectangular,
    best_box,
    non_rectangular_steps,
    tiled_steps,
    turned_box,
    usual_tiles,
)
from poly.autoschedule.rules.sharing import parallelized_beside_kernels
from poly.autoschedule.rules.triangles import in_place_steps, slanted_sum_steps, triangle_steps
from poly.autoschedule.spaces.space import Family
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Micro, walk
from poly.model import Choice
from poly.model.core import Target
from poly.schedules.matching import zeroing
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Part, Step, Tensorize

Product = StreamedProduct | NonRectangular
"""A contraction whose rule provides forms."""


def contracted(nest: Nest, target: Target, choices: Mapping[str, Choice] | None = None) -> Schedule:
    """The schedule with microkernels for all contractions that dependences and loops allow; without steps if none.

    `choices` overrides the model's choice for some statements.
    """
    known, base = choices or {}, sums_apart(nest)

    def steps(statement: Statement, loops: Mapping[str, str]) -> list[Step] | None:
        return _steps(base.nest, statement, loops, target, known.get(statement.name))

    made = _contracted(base, target, steps)
    if base.nest.sizes and (slanted := beyond_boxes(made)) and not has_loops(made, target.isa):
        made = _contracted(base, target, lambda one, loops: None if one.name in slanted else steps(one, loops))
    return made if made.steps != base.steps else schedule(nest)


def beyond_boxes(made: Schedule) -> set[str]:
    """The statements in microkernels whose domain is no box."""
    kernels = {node.statement for node in walk(made.tree) if isinstance(node, Micro)}
    return {name for name in kernels if roles(made.nest, made.nest.statement(name)) is None}


def with_interiors(nest: Nest, target: Target, pays: float = PAYS) -> Schedule | None:
    """The same with the interiors of contractions apart from their borders; None if there are none, or none pays.

    None as well if a microkernel does not serve all of these parts.
    """
    base = interiors_apart(sums_apart(nest), target, pays)
    if base is None:
        return None
    made = _contracted(base, target, lambda statement, loops: _steps(base.nest, statement, loops, target))
    served = {step.statement for step in made.steps if isinstance(step, Tensorize)}
    parted = {name for step in base.steps if isinstance(step, Part) for name in (step.statement, step.near)}
    return made if parted <= served else None


def with_turned_tiles(nest: Nest, target: Target) -> Schedule | None:
    """The same with register tiles across the results' contiguous loops where these are short; None if nowhere.

    Results of 7x7 pixels, for example, leave lanes along pixels idle, and channels are many.
    """
    base = sums_apart(nest)
    turned: dict[str, InnerBox] = {}
    for statement in base.nest.statements:
        r = roles(base.nest, statement)
        if r is not None and r.rows and r.columns and r.reduce and not _is_special(base.nest, statement):
            box = turned_box(base.nest, statement, target)
            turned |= {statement.name: box} if box is not None else {}

    def steps(statement: Statement, loops: Mapping[str, str]) -> list[Step] | None:
        box = turned.get(statement.name)
        if box is None:
            return _steps(base.nest, statement, loops, target)
        return tiled_steps(box, loops, usual_tiles(box, target), zeroing(base.nest, statement))

    return _contracted(base, target, steps) if turned else None


def _contracted(base: Schedule, target: Target, steps_of: StepsOf) -> Schedule:
    made = each_contraction(base, steps_of, partial(with_epilogues, near=target.caches.l2))
    return with_other_loops(made, target) if made.steps != base.steps else made


def with_other_loops(made: Schedule, target: Target) -> Schedule:
    """The schedule with the other loops contiguous, fused, in blocks of lines, shared by threads, and vectorised."""
    joined = blocked(fused(contiguous(made)))
    shared = parallelized_beside_kernels(joined) if target.threads > 1 else joined
    return in_groups(in_lanes(Form.fixed((), shared)), target.isa).tried


def _steps(
    nest: Nest, statement: Statement, loops: Mapping[str, str], target: Target, choice: Choice | None = None
) -> list[Step] | None:
    """The steps for a contraction that has its own loops; None if no microkernel serves it.

    `loops` maps its iterators to the names of their loops, outermost first. The microkernel absorbs a preceding
    statement that sets the output to 0. `choice` overrides the model's.
    """
    found = _steps_or_reason(nest, statement, loops, target, choice)
    return None if isinstance(found, str) else found


def _steps_or_reason(
    nest: Nest, statement: Statement, loops: Mapping[str, str], target: Target, choice: Choice | None = None
) -> list[Step] | str:
    """The same, or why no microkernel serves it."""
    dtype = _dtype(nest, statement)
    if dtype in (f16, bf16):
        return "no microkernel of one core computes in half precision"
    if not sums(target.isa, dtype):
        return f"{target.isa.name} has no microkernel with sums of {dtype}"
    converts = _converts(nest, statement)
    if converts and isinstance(target.isa, DeviceISA):
        return f"it converts {converts}, and no device packs elements of another type"
    r, initial = roles(nest, statement), zeroing(nest, statement)
    other = _other_product(nest, statement)
    if other and (isinstance(target.isa, DeviceISA) or (r is not None and not r.rows)):
        return f"a product by {other} needs rows and columns, on a CPU"
    if in_place(nest, statement):
        steps = in_place_steps(nest, statement, dtype, loops, target)
        return steps or "it replaces elements that others of its iterations have yet to read"
    if r is None and converts:
        return f"it converts {converts} while packing, and its loops are no box"
    if r is None:
        inner = non_rectangular_steps(nest, statement, loops, target)
        slanted = inner or slanted_sum_steps(nest, statement, dtype, loops, target)
        triangle = slanted or triangle_steps(nest, statement, dtype, loops, target, initial)
        return triangle or "its loops are no box, and neither a box in them nor the box around them is one for a tile"
    if _lies_apart(r) and not isinstance(target.isa, DeviceISA):
        return "each element of its matrix would be copied by itself, for one product"
    if not (r.rows or dtype.is_float):
        return f"no matrix-vector kernel has sums of {dtype}"
    streams = matrix_vector_steps(r, loops, target, initial) if choice is None and not (r.rows or converts) else None
    planned = streams or planned_steps(r, dtype, loops, target, initial, choice)
    return planned or f"it has no loop over {'a reduction' if r.columns else 'columns of the output'}"


def _lies_apart(r: Roles) -> bool:
    """Whether no loop of a matrix-vector product goes from an element of the matrix to the next in memory."""
    return not r.rows and all(axis.right.number != 1 for axis in (*r.columns, *r.reduce))


def unserved(nest: Nest, statement: Statement, target: Target) -> str | None:
    """Why no microkernel serves a statement, by the conditions of `contracted`; None if one does."""
    alone = isolation(schedule(nest), statement)
    if isinstance(alone, str):
        return alone
    base, loops = alone
    steps = _steps_or_reason(nest, statement, loops, target)
    if isinstance(steps, str):
        return steps
    return None if attempt(base, steps) else "its tiles would break a dependence, or no code can be made of them"


def contraction_family(nest: Nest, target: Target, coarse: bool = False) -> Family | None:
    """The structures of the heaviest contraction over a box; None if there is none that is tiled.

    The other statements keep their default schedule. `coarse` thins the grids to some hundreds of points.
    """
    found = heaviest_box(nest, target)
    if found is None:
        return None
    statement, outline = found

    def made(choice: Choice) -> Schedule | None:
        tiled = contracted(nest, target, {statement.name: choice})
        kernels = [step.kernel for step in tiled.steps if isinstance(step, Tensorize)]
        return tiled if choice.kernel.name in kernels else None

    return Tilings(outline, target).family(coarse, made)


def heaviest_box(nest: Nest, target: Target) -> tuple[Statement, Outline] | None:
    """The contraction over a box with rows and the most multiply-adds; those without rows stream a matrix untiled."""
    found = []
    for statement, _, r in _contractions(nest):
        dtype = _dtype(nest, statement)
        special = _converts(nest, statement) or _other_product(nest, statement)
        if not sums(target.isa, dtype) or (special and isinstance(target.isa, DeviceISA)):
            continue
        outline = outlined(r, dtype, target) if r is not None and r.rows else None
        if outline is not None:
            found.append((prod(axis.guess for axis in outline.work.axes), statement, outline))
    return max(found, key=lambda entry: entry[0])[1:] if found else None


def heaviest_product(nest: Nest, target: Target) -> Product | None:
    """The heaviest contraction that has its own forms and is legal in the usual one; None if there is none."""
    ranked = sorted(_products(nest, target), key=lambda product: -product.work)
    return next((product for product in ranked if product.usual is not None), None)


def _products(nest: Nest, target: Target) -> Iterator[Product]:
    for statement, loops, r in _contractions(nest):
        made_with = _MadeWith(nest, statement, target)
        on_device = isinstance(target.isa, DeviceISA) and _other_product(nest, statement)
        if on_device or _converts(nest, statement) or not sums(target.isa, _dtype(nest, statement)):
            continue
        box = best_box(nest, statement, target) if r is None else None
        if box is not None:
            yield NonRectangular(box, loops, target, made_with)
        elif r is not None and not r.rows and streamed(r) and _dtype(nest, statement).is_float:
            yield StreamedProduct(r, loops, zeroing(nest, statement), target, made_with)


def _contractions(nest: Nest) -> Iterator[tuple[Statement, Mapping[str, str], Roles | None]]:
    """The contractions that can be given their own loops, with these loops, and their roles if they are over a box."""
    made = schedule(nest)
    for statement in nest.statements:
        alone = isolated(made, statement) if _dtype(nest, statement) not in (f16, bf16) else None
        if alone is not None:
            yield statement, alone[1], roles(nest, statement)


def _dtype(nest: Nest, statement: Statement) -> DType:
    """The type of a statement's result. No single-core microkernel computes in half precision."""
    return nest.array(statement.target.array).dtype


def _converts(nest: Nest, statement: Statement) -> str:
    """The arrays whose elements a contraction converts, for messages; empty if there are none."""
    found = recognise(nest, statement)
    sides = {"left": found.left, "right": found.right} if found else {}
    return " and ".join(dict.fromkeys(sides[side].array for side in sorted(found.converted))) if found else ""


def _other_product(nest: Nest, statement: Statement) -> str:
    """The family of a contraction that is no sum of products; empty for one that is, or for no contraction."""
    found = recognise(nest, statement)
    return "" if found is None or found.product == MULTIPLY_ADD else found.product.family


def _is_special(nest: Nest, statement: Statement) -> bool:
    """Whether a contraction converts its operands, has sums of integers, or is by other operations."""
    return bool(_converts(nest, statement) or _other_product(nest, statement)) or not _dtype(nest, statement).is_float


class _MadeWith:
    """Makes the default schedule with other steps for one statement; None if they are illegal."""

    def __init__(self, nest: Nest, statement: Statement, target: Target) -> None:
        self._base, self._statement, self._target = sums_apart(nest), statement, target

    def __call__(self, steps_of: Callable[[Mapping[str, str]], list[Step]]) -> Schedule | None:
        def steps(other: Statement, loops: Mapping[str, str]) -> list[Step] | None:
            if other.name == self._statement.name:
                return steps_of(loops)
            return _steps(self._base.nest, other, loops, self._target)

        made = _contracted(self._base, self._target, steps)
        return made if any(getattr(step, "statement", None) == self._statement.name for step in made.steps) else None
