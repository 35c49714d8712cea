"""A microkernel's tile as a call: pointers, strides, extents, and whether the result is added to what is there."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import islpy as isl

from codegen.expr import Binary, Const, Expr, Load, Unary
from codegen.names import c_name
from codegen.scalar import literal
from microkernels.catalogue import Microkernel, find
from microkernels.errors import TargetError
from microkernels.dtypes import DType
from microkernels.isa import ISA
from poly.calls import (
    Call,
    Operand,
    Panel,
    absorbed,
    atom_lines,
    fixed,
    inner_bands,
    involves,
    low_lines,
    operand,
)
from poly.contraction import Contraction
from poly.coordinates import Coordinates, solve
from poly.ctext import constants, text
from poly.errors import ScheduleError
from poly.instances import Instances
from poly.nest import Nest, Statement
from poly.polynomial import Polynomial
from poly.tree import Band, Micro

LEVELS = 3
"""The loops of a reduction that a microkernel runs through itself."""


def kernel_call(
    nest: Nest,
    node: Micro,
    isa: ISA,
    loops: tuple[tuple[str, isl.PwAff], ...],
    panels: Mapping[tuple[str, str], Panel],
) -> Call:
    """The statement that stands for all the iterations below the loops that surround the microkernel.

    Raises ScheduleError if these iterations are not a full box of rows, columns and reduction steps, or an operand does not
    lie as the kernel reads it; TargetError if the kernel is made for another instruction set.
    """
    made_for = node.kernel.split("_")[1]
    if made_for != isa.name:
        raise TargetError(
            f"microkernel({node.kernel}) is made for {made_for}, and the target is 'c:{isa.name}'. "
            f"Remedy: target='c:{made_for}', or a microkernel of {isa.name}."
        )
    statement = nest.statement(node.statement)
    contraction = absorbed(nest, node)
    if contraction is None:
        raise ScheduleError(f"microkernel({node.kernel}): {statement.name} is not a contraction")
    dtype = nest.array(statement.target.array).dtype
    instances = Instances(f"{statement.name}_tile", statement.domain, loops)
    bands = inner_bands(node)
    if not instances.is_box([band.function(statement.name) for band in bands]):
        raise ScheduleError(f"microkernel({node.kernel}): the iterations of a tile of {statement.name} are not a box")
    functions = [(band.name, band.function(statement.name)) for band in bands]
    coordinates = solve(statement.iterators, statement.domain, (*loops, *functions))
    if coordinates is None:
        raise ScheduleError(f"microkernel({node.kernel}): the loops around {statement.name} don't determine its iterators")
    left, right, output = (
        operand(nest, access, coordinates) for access in (contraction.left, contraction.right, contraction.output)
    )
    counts = {band.name: instances.count(band.function(statement.name)) for band in bands}
    if node.kernel.startswith("gemv"):
        return _vector_call(nest, node, isa, contraction, instances, coordinates, counts)
    kernel = find(node.kernel, dtype)
    _check_operands(node, left, right, (statement.name, "right") in panels)
    rows = constants(counts[node.rows.name]) if node.rows else frozenset({1})
    columns = constants(counts[node.columns.name]) if node.columns else frozenset({1})
    names = instances.names
    run = _run_length(output, node)
    accumulate = _accumulate(node, contraction, statement, instances)
    lines = [
        *low_lines(instances, bands, statement.name),
        f"const int64_t tile_rows = {text(counts[node.rows.name], names) if node.rows else 1};",
        f"const int64_t tile_columns = {text(counts[node.columns.name], names) if node.columns else 1};",
        *_pointers(node, kernel, left, output, panels.get((statement.name, "left")), run is not None),
        *([] if run else _ahead(nest, node, kernel, instances, output, counts)),
        *_call(nest, node, kernel, contraction, instances, left, right, panels, counts, "0" if run else accumulate),
        *(_scatter(node, kernel, isa, output, run, accumulate) if run else []),
    ]
    routine = "gemm" if run is None else "scatter"
    return Call(f"{statement.name}_tile", names, instances.domain, tuple(lines), routine, rows, columns)


SHORT, FAR = 96, 4 << 20
"""Steps of a reduction too few to hide how long the output takes to come, and bytes of an output that lies far away."""


def _ahead(
    nest: Nest, node: Micro, kernel: Microkernel, instances: Instances, output: Operand, counts: Mapping[str, isl.PwAff]
) -> list[str]:
    """Ask for the lines of the next tile's results, where the kernel is short and the output larger than the caches nearby."""
    steps = [constants(counts[band.name]) for band in node.reduce]
    statement = nest.statement(node.statement)
    shape = nest.array(statement.target.array).shape
    extents = [extent.constant for extent in shape if not extent.terms]
    known = len(extents) == len(shape) and all(value is not None for value in steps)
    depth = prod(max(value) for value in steps if value)
    if not known or depth > SHORT or prod(extents) * kernel.dtype.size < FAR or not instances.loops:
        return []
    row, last = node.rows, instances.loops[-1][1]
    moves = output.stride(row.name) * kernel.rows if row and _follows(statement, last, row) else Polynomial.of(kernel.columns)
    return [
        "for (int64_t row = 0; row < tile_rows; row++)",
        f"    for (int64_t at = 0; at < {kernel.columns}; at += {64 // kernel.dtype.size})",
        f"        __builtin_prefetch(row_c[row] + {moves} + at, 1, 2);",
    ]


def _follows(statement: Statement, function: isl.PwAff, band: Band) -> bool:
    """Whether a loop over tiles moves along a band's iterators."""
    own = band.function(statement.name)
    return involves(
        statement, function, frozenset(name for name in statement.iterators if involves(statement, own, frozenset({name})))
    )


def _check_operands(node: Micro, left: Operand, right: Operand, packed: bool) -> None:
    """Refuse operands that the kernel can't walk through: the reduction by strides, the columns of the right one as they lie."""
    for op, band in ((op, band) for op in (left, right) for band in node.reduce):
        if not op.is_linear(band.name):
            raise ScheduleError(
                f"microkernel({node.kernel}): {op.array} has no constant stride along {band.name}. "
                "Remedy: don't flatten the loops of the reduction."
            )
    column = node.columns
    if column and not packed and not (right.is_linear(column.name) and right.stride(column.name).constant == 1):
        which = f"{right.array}, role=right" if left.array == right.array else right.array
        raise ScheduleError(
            f"microkernel({node.kernel}): {right.array} is not contiguous along {column.name}. Remedy: pack({which})."
        )


def _run_length(output: Operand, node: Micro) -> int | None:
    """How many neighbouring columns are neighbours in the output, where not all are; None where all are."""
    column = node.columns.name if node.columns else ""
    if output.stride(column).constant != 1:
        return 1
    used = [divisor for atom, (loop, divisor) in output.coordinates.atoms.items() if loop == column and atom in output.offset.names]
    return min(used) if used else None


def _scatter(node: Micro, kernel: Microkernel, isa: ISA, output: Operand, run: int, accumulate: str) -> list[str]:
    """From the tile on the stack to the output, run by run."""
    column, row = node.columns.name if node.columns else "", node.rows.name if node.rows else ""
    suffix = f"{kernel.dtype.name}_{isa.name}"
    by_column = _part(output, column)
    by_row = output.offset + by_column * -1
    atoms, loops = output.coordinates, frozenset(loop for loop, _ in output.coordinates.atoms.values())
    length = f"imin(tile_columns - at, {run} - {column} % {run})" if run > 1 else "1"
    return [
        f"const int64_t corner_column = {column};",
        *([f"const int64_t corner_row = {row};"] if row else []),
        f"int64_t row_offset[{kernel.rows}];",
        *atom_lines(atoms, by_row.names, loops - {row, column}),
        "for (int64_t row = 0; row < tile_rows; row++) {",
        *([f"    const int64_t {row} = corner_row + row;"] if row else []),
        *(f"    {line}" for line in atom_lines(atoms, by_row.names, frozenset({row}))),
        f"    row_offset[row] = {by_row};",
        "}",
        "for (int64_t at = 0, length; at < tile_columns; at += length) {",
        f"    const int64_t {column} = corner_column + at;",
        *(f"    {line}" for line in atom_lines(atoms, by_column.names, frozenset({column}))),
        f"    {kernel.dtype.c_name} *const run = {output.array} + {by_column};",
        f"    length = {length};",
        "    for (int64_t row = 0; row < tile_rows; row++)",
        f"        store_run_{suffix}(run + row_offset[row], tile + row * {kernel.columns} + at, length, {accumulate});",
        "}",
    ]


def _part(op: Operand, loop: str) -> Polynomial:
    """The part of an operand's offset that depends on one loop."""
    names = {loop, *(atom for atom, (of, _) in op.coordinates.atoms.items() if of == loop)}
    return Polynomial(tuple((m, c) for m, c in op.offset.terms if names & set(m)))


def _vector_call(
    nest: Nest,
    node: Micro,
    isa: ISA,
    contraction: Contraction,
    instances: Instances,
    coordinates: Coordinates,
    counts: Mapping[str, isl.PwAff],
) -> Call:
    """The call of a matrix-vector kernel: `gemvn` where the matrix is contiguous along the columns, `gemvt` along the reduction."""
    statement = nest.statement(node.statement)
    left, right, output = (
        operand(nest, access, coordinates) for access in (contraction.left, contraction.right, contraction.output)
    )
    column, reduced = node.columns, node.reduce[0]
    assert column is not None, "a matrix-vector kernel has columns"
    dtype = nest.array(statement.target.array).dtype
    n, steps = (text(counts[band.name], instances.names) for band in (column, reduced))
    x, matrix, y = (f"{op.array} + {op.offset}" for op in (left, right, output))
    alpha = c_scalar(contraction.factor, dtype)
    accumulate = _accumulate(node, contraction, statement, instances)
    if node.kernel.startswith("gemvn"):
        middle = f"{x}, {fixed(left.stride(reduced.name))}, {matrix}, {fixed(right.stride(reduced.name))}, {y}"
    else:
        middle = f"{matrix}, {fixed(right.stride(column.name))}, {x}, {y}, {fixed(output.stride(column.name))}"
    family = node.kernel.partition("_")[0]
    lines = [
        *low_lines(instances, inner_bands(node), statement.name),
        f"{family}_{dtype.name}_{isa.name}({n}, {steps}, {middle}, {alpha}, {accumulate});",
    ]
    return Call(f"{statement.name}_tile", instances.names, instances.domain, tuple(lines), "gemv")


def _pointers(
    node: Micro, kernel: Microkernel, left: Operand, output: Operand, panel: Panel | None, scattered: bool
) -> list[str]:
    """C arrays with a pointer for each row of the left operand and of the output, or of a tile on the stack in its place."""
    row = node.rows.name if node.rows else ""
    c_type = kernel.dtype.c_name
    count = range(kernel.rows)
    read = frozenset() if panel else left.offset.names
    written = frozenset() if scattered else output.offset.names
    every = frozenset(loop for loop, _ in left.coordinates.atoms.values())
    lines = [f"{c_type} tile[{kernel.rows * kernel.columns}] __attribute__((aligned(64)));"] if scattered else []
    if (panel or left.is_linear(row)) and (scattered or output.is_linear(row)):
        sources = [f"{panel.start} + {r}" if panel else f"{left.array} + {_shifted(left, row, r)}" for r in count]
        results = [
            f"tile + {r * kernel.columns}" if scattered else f"{output.array} + {_shifted(output, row, r)}" for r in count
        ]
        return [
            *lines,
            *atom_lines(left.coordinates, read | written, every),
            f"const {c_type} *const row_a[{kernel.rows}] = {{{', '.join(sources)}}};",
            f"{c_type} *const row_c[{kernel.rows}] = {{{', '.join(results)}}};",
        ]
    source = f"{panel.start} + row" if panel else f"{left.array} + {left.offset}"
    result = f"tile + row * {kernel.columns}" if scattered else f"{output.array} + {output.offset}"
    return [
        *lines,
        *atom_lines(left.coordinates, read | written, every - {row}),
        f"const {c_type} *row_a[{kernel.rows}];",
        f"{c_type} *row_c[{kernel.rows}];",
        f"const int64_t first_row = {row};",
        "for (int64_t row = 0; row < tile_rows; row++) {",
        f"    const int64_t {row} = first_row + row;",
        *(f"    {line}" for line in atom_lines(left.coordinates, read | written, frozenset({row}))),
        f"    row_a[row] = {source};",
        f"    row_c[row] = {result};",
        "}",
    ]


def _shifted(op: Operand, row: str, by: int) -> str:
    return str(op.offset + op.stride(row) * by)


def _call(
    nest: Nest,
    node: Micro,
    kernel: Microkernel,
    contraction: Contraction,
    instances: Instances,
    left: Operand,
    right: Operand,
    panels: Mapping[tuple[str, str], Panel],
    counts: Mapping[str, isl.PwAff],
    accumulate: str,
) -> list[str]:
    """The kernel's call, with the extents and strides of the reduction's loops from inside out."""
    statement = nest.statement(node.statement)
    left_panel, right_panel = panels.get((statement.name, "left")), panels.get((statement.name, "right"))
    lines = [
        f"const int64_t steps{level} = {text(counts[band.name], instances.names)};"
        for level, band in enumerate(reversed(node.reduce))
    ]
    levels = []
    for level in range(LEVELS):
        if level >= len(node.reduce):
            levels.append("1, 0, 0")
            continue
        loop = node.reduce[-1 - level].name
        before = "*".join(f"steps{inner}" for inner in range(level))
        strides = [
            "*".join(filter(None, (str(panel.width), before))) if panel else fixed(op.stride(loop))
            for panel, op in ((left_panel, left), (right_panel, right))
        ]
        levels.append(f"steps{level}, {strides[0]}, {strides[1]}")
    start = right_panel.start if right_panel else f"{right.array} + {right.offset}"
    alpha = c_scalar(contraction.factor, kernel.dtype)
    lines.append(
        f"{kernel.c_name}(tile_rows, tile_columns, row_a, {start}, row_c, {', '.join(levels)}, "
        f"{alpha}, {accumulate});"
    )
    return lines


def _accumulate(node: Micro, contraction: Contraction, statement: Statement, instances: Instances) -> str:
    """1, or where the start value 0 is the kernel's job: whether an earlier tile has already written this one."""
    if node.initial is None:
        return "1"
    reduced = frozenset(contraction.reduce)
    tests = []
    for name, function in instances.loops:
        if involves(statement, function, reduced):
            others = tuple(loop for loop in instances.loops if not involves(statement, loop[1], reduced))
            low = Instances("outer", instances.points, others).low(function)
            tests.append(f"{name} != {text(low, [n for n, _ in others])}")
    return " || ".join(tests) or "0"


def c_scalar(expr: Expr, dtype: DType) -> str:
    """A product of constants and scalar arguments as C."""
    match expr:
        case Const(value):
            return literal(value, dtype)[0]
        case Load(name, ()):
            return c_name(name)
        case Unary("-", operand_):
            return f"-{c_scalar(operand_, dtype)}"
        case Binary(op, left, right):
            return f"({c_scalar(left, dtype)} {op} {c_scalar(right, dtype)})"
    raise TypeError(f"{expr} is not a scalar")
