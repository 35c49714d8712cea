"""The tile that one call of a microkernel computes: its instances, operands and extents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap

import islpy as isl

from codegen.ir.instructions import Factor, Let, Pointer
from codegen.ir.integer import Int, Linear, Test, compare, connected, maximum, minimum, product
from microkernels.cached import cached_property
from microkernels.contract import Side
from microkernels.dtypes import DType
from microkernels.kernel import OuterProduct
from microkernels.opencl_isa import DeviceISA
from poly.analysis.contraction import Contraction
from poly.errors import ScheduleError
from poly.ir.coordinates import solve
from poly.ir.instances import Instances, coordinates, loop_values
from poly.ir.nest import Array, Nest, Statement
from poly.ir.tree import Band, Micro
from poly.lowering.calls import (
    Level,
    Loops,
    MemoryParts,
    Operand,
    Panel,
    absorbed,
    in_words,
    inner_bands,
    involves,
    lows,
    operand,
    quotients,
)
from poly.lowering.ctext import constants, test, value
from poly.lowering.ragged import each_row_of, is_ragged, is_whole, ranges, uncut


@dataclass(frozen=True)
class KernelTile:
    """The iterations inside the loops around a microkernel, and how a call addresses the operands."""

    node: Micro
    statement: Statement
    contraction: Contraction
    instances: Instances
    left: Operand
    right: Operand
    output: Operand
    target: Array
    """The output's array."""
    ranges: Mapping[str, Instances]
    """For each absorbed loop, by its name: the instances, grouped by loops around it, over which it ranges."""
    ragged: bool
    """Whether not all rows have the same columns: the call computes a box around the tile."""

    @property
    def dtype(self) -> DType:
        return self.target.dtype

    @property
    def word(self) -> int:
        """The steps of the innermost reduction loop in an element of a panel."""
        kernel = self.node.kernel
        return kernel.steps if isinstance(kernel, OuterProduct) else 1

    def count(self, band: Band | None) -> Int:
        """The number of iterations of a loop; 1 for None."""
        return self.values[band.name] if band else Linear.of(1)

    @cached_property
    def row_columns(self) -> tuple[Int, Int] | None:
        """The first column of the row `this_row`, and the number of columns; None if all rows have the same.

        The number may be negative: no column of the tile is in that row.
        """
        node, name = self.node, self.statement.name
        if not self.ragged or node.rows is None or node.columns is None:
            return None
        row = each_row_of(self.statement, node, self.instances.loops)
        names = (*row.names[:-1], "this_row")
        columns, begin = node.columns.function(name), Linear.name(node.columns.name)
        first = maximum(begin, value(row.low(columns), names))
        end = minimum(begin + Linear.name("tile_columns"), value(row.high(columns), names) + 1)
        return first, end - Linear.name("from")

    @cached_property
    def in_place(self) -> Test | None:
        """Where the results of a ragged tile are a box, which a call writes in place; None if nowhere."""
        is_apart = run_length(self.output, self.node) is not None
        if not self.ragged or is_apart or isinstance(self.node.kernel.isa, DeviceISA):  # its pointers have one space
            return None
        boxes = uncut(self.statement, self.node, self.instances.loops, self.ranges)
        return None if boxes.is_empty() else test(boxes, self.instances.names)

    def start(self, op: Operand) -> Pointer:
        """Where an operand begins; loops that begin at the same number in all tiles are that number.

        `A + K*i + k` becomes `A + K*i` if all tiles begin at k = 0.
        """
        numbers = {name: low for name, low in self.lows.items() if low.number is not None}
        return Pointer(op.array, op.offset.substitute(numbers))

    @cached_property
    def lows(self) -> dict[str, Int]:
        """The first values of the absorbed loops, in terms of C variables."""
        bands = inner_bands(self.node)
        return {
            name: low
            for band in bands
            for name, low in lows(self.ranges[band.name], (band,), self.statement.name).items()
        }

    @cached_property
    def counts(self) -> dict[str, isl.PwAff]:
        """The number of iterations of each absorbed loop, by its name."""
        bands, name = inner_bands(self.node), self.statement.name
        return {band.name: self.ranges[band.name].count(band.function(name)) for band in bands}

    @cached_property
    def values(self) -> dict[str, Int]:
        """The counts in terms of C variables."""
        return {name: value(count, self.ranges[name].names) for name, count in self.counts.items()}

    def extents(self, band: Band | None) -> frozenset[int] | None:
        """The values that the loop's count takes; None if they are not known."""
        return constants(self.counts[band.name], self.ranges[band.name].domain) if band else frozenset({1})

    @property
    def definitions(self) -> tuple[Let, ...]:
        """The definitions of the constants in a call.

        These are the first values of the absorbed loops by their names, the quotients that are constant in the tile,
        the extents `tile_rows` and `tile_columns`, and those of the reduction: `steps0` (the innermost), `steps1`, …
        """
        node = self.node
        return (
            *starmap(Let, self.lows.items()),
            *self._quotients(),
            Let("tile_rows", self.count(node.rows)),
            Let("tile_columns", self.count(node.columns)),
            *(Let(f"steps{level}", self.count(band)) for level, band in enumerate(reversed(node.reduce))),
        )

    def _quotients(self) -> list[Let]:
        """The quotients of loops that are neither rows nor columns."""
        inside = frozenset(band.name for band in (self.node.rows, self.node.columns) if band)
        coordinates = self.output.coordinates
        loops = frozenset(loop for loop, _ in coordinates.atoms.values()) - inside
        return quotients(coordinates, frozenset(coordinates.atoms), loops)

    def reduction(self, left: Panel | None = None, right: Panel | None = None) -> list[Level]:
        """A call's extents and strides along the reduction's loops, innermost first.

        The strides are those of the left and of the right operand, in the array or in a panel.
        """
        levels: list[Level] = []
        for level, band in enumerate(reversed(self.node.reduce)):
            left_stride, right_stride = (
                self.panel_stride(panel, level) if panel else op.stride(band.name)
                for panel, op in ((left, self.left), (right, self.right))
            )
            levels.append((self.steps(level), left_stride, right_stride))
        return levels

    def steps(self, level: int) -> Int:
        """The number of steps, or words, of one of the reduction's loops, which are counted from the innermost."""
        known = self.values[self.node.reduce[-1 - level].name]
        steps = known if known.number is not None else Linear.name(f"steps{level}")
        return steps if level else in_words(steps, self.word)

    def panel_stride(self, panel: Panel, level: int) -> Int:
        """The number of elements from a step of one of these loops to the next in a panel."""
        inner = reversed(self.node.reduce[len(self.node.reduce) - level :])
        return product(panel.longer.get(band.name, self.steps(at)) for at, band in enumerate(inner)) * panel.width

    @property
    def factor(self) -> Factor:
        """The factor of each product."""
        return Factor(self.contraction.factor, self.dtype)

    @property
    def accumulate(self) -> Int | Test:
        """1, or if the kernel sets the results to 0: whether an earlier step of the reduction has written the tile."""
        if self.node.initial is None:
            return Linear.of(1)
        reduced = frozenset(self.contraction.reduce)
        loops = self.instances.loops
        others = tuple(loop for loop in loops if not involves(self.statement, loop[1], reduced))
        outer = Instances("outer", self.instances.points, others)
        tests = [
            compare(Linear.name(name), "!=", value(outer.low(function), outer.names))
            for name, function in loops
            if involves(self.statement, function, reduced)
        ]
        return connected("||", tests) if tests else Linear()


def begins_at_lows(statement: Statement, contraction: Contraction, loops: Sequence[tuple[str, isl.PwAff]]) -> bool:
    """Whether each element is first visited where all reduction loops around the tile have their least values.

    This holds if all results have the same steps of the reduction, no loop counts both results and steps, and one step
    has the least values of all loops.
    """
    domain, reduced = statement.domain, frozenset(contraction.reduce)
    values = coordinates(domain, statement.iterators)
    results, steps = (
        loop_values(domain, [c for name, c in values.items() if (name in reduced) is kind]) for kind in (False, True)
    )
    met = results.reverse().apply_range(steps)
    if not isl.Map.from_domain_and_range(results.range(), steps.range()).is_subset(met):
        return False
    own = frozenset(statement.iterators) - reduced
    stepping = [function for _, function in loops if involves(statement, function, reduced)]
    if any(involves(statement, function, own) for function in stepping):
        return False
    counts = loop_values(domain, stepping).range()
    return bool(isl.Set.from_multi_pw_aff(counts.min_multi_pw_aff()).is_subset(counts))


def checked_operands(nest: Nest, node: Micro, loops: Loops) -> tuple[Operand, Operand, Operand]:
    """The left operand, the right operand and the output of a microkernel below `loops`.

    Raises:
        ScheduleError: its iterations are not a full box of rows, columns and reduction steps, the loops don't determine
            the iterators, not every result is first visited where the reduction begins (with `initial`), an array
            moves along a loop that does not belong to it, or the columns of a ragged tile differ in their distance.
    """
    statement = nest.statement(node.statement)
    contraction = absorbed(nest, node)
    functions = [(band.name, band.function(statement.name)) for band in inner_bands(node)]
    whole = is_whole(statement, node, loops)
    if not whole and not is_ragged(statement, node, loops):
        inside = ", ".join(name for name, _ in functions)
        raise ScheduleError(
            f"microkernel({node.kernel}): the iterations of a tile of {statement.name} are not a box: the range of one "
            f"of the loops {inside} changes with another of them. Remedy: order the loops such that the kernel takes "
            "others, or tile them such that only whole tiles are left to it."
        )
    coordinates = solve(statement.iterators, statement.domain, (*loops, *functions))
    if coordinates is None:
        raise ScheduleError(
            f"microkernel({node.kernel}): the loops around {statement.name} don't determine its iterators. "
            "Remedy: skew or flatten none of them."
        )
    if node.initial is not None and not begins_at_lows(statement, contraction, loops):
        raise ScheduleError(late_start(node))
    accesses = (contraction.left, contraction.right, contraction.output)
    left, right, output = (operand(nest, access, coordinates) for access in accesses)
    if not contraction.product.is_sum and (not whole or run_length(output, node) is not None):
        raise ScheduleError(
            f"microkernel({node.kernel}): the tiles of {statement.name} are no boxes, or the columns of {output.array} "
            "are not contiguous, and only sums are put there from a tile on the stack. Remedy: loops without it."
        )
    _check_still(node, ((left, node.columns), (right, node.rows), *((output, band) for band in node.reduce)))
    if not whole and node.columns is not None and not output.is_linear(node.columns.name):
        raise ScheduleError(
            f"microkernel({node.kernel}): some tiles of {statement.name} are no boxes, and the columns of "
            f"{output.array} do not have the same distance. Remedy: tile the loops such that only whole tiles are left "
            f"to it, or another order of the elements of {output.array}."
        )
    return left, right, output


def run_length(output: Operand, node: Micro) -> int | None:
    """The number of neighbouring columns that are contiguous in the output; None if all are."""
    column = node.columns.name if node.columns else ""
    if output.stride(column).number != 1:
        return 1
    atoms = output.coordinates.atoms.items()
    used = [divisor for atom, (loop, divisor) in atoms if loop == column and atom in output.offset.names]
    return min(used, default=None)


def _check_still(node: Micro, pairs: Iterable[tuple[Operand, Band | None]]) -> None:
    """Refuse a tile in which an array moves along a loop that should not move it, because a loop around is skewed."""
    for op, band in pairs:
        if band is not None and op.part(band.name).terms:
            raise ScheduleError(
                f"microkernel({node.kernel}): in a tile, {op.array} is accessed elsewhere for each iteration of "
                f"{band.name}, since a loop around is skewed by it. Remedy: leave out the skew, or skew after tiling."
            )


def tile_of(nest: Nest, node: Micro, loops: Loops, copied: Mapping[Side, int], parts: MemoryParts) -> KernelTile:
    """The tile of a microkernel below `loops`, which `checked_operands` has accepted."""
    statement = nest.statement(node.statement)
    contraction = absorbed(nest, node)
    instances = Instances(f"{statement.name}_tile", statement.domain, loops)
    functions = [(band.name, band.function(statement.name)) for band in inner_bands(node)]
    coordinates = solve(statement.iterators, statement.domain, (*loops, *functions))
    assert coordinates is not None, "the loops determine the iterators"
    return KernelTile(
        node,
        statement,
        contraction,
        instances,
        left=operand(nest, contraction.left, coordinates, parts, loops),
        right=operand(nest, contraction.right, coordinates, parts, loops),
        output=operand(nest, contraction.output, coordinates, parts, loops),
        target=nest.array(statement.target.array),
        ranges=ranges(statement, node, loops, copied),
        ragged=not is_whole(statement, node, loops),
    )


def late_start(node: Micro) -> str:
    """The error message for a microkernel that can't initialise its results."""
    return (
        f"microkernel({node.kernel}, initial={node.initial}): not every result of {node.statement} is first visited "
        "where the loops of the reduction begin, so the kernel can't tell when to start at 0. Remedy: no initial."
    )
