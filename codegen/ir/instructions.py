"""Instructions of statements that are not assignments: calls of routines, their variables and tables, and barriers.

Let j = 64*j_tile                                const int64_t j = 64*j_tile;
Table row_a[2] = A + K*i, A + K*i + K            const float *const row_a[2] = {A + K*i, A + K*i + K};
Call gemm_f32(2, row_a, B + j)                   gemm_f32(2, row_a, B + j);

Instructions are values: names are listed and replaced in them without parsing text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from codegen.ir.expr import Expr, loads
from codegen.ir.integer import Compare, Connected, Int, Linear, Test, in_c, names_of, replaced
from codegen.names import c_name
from microkernels.dtypes import DType

Memory: TypeAlias = Literal["local", "global"]
MEMORIES: tuple[Memory, ...] = ("local", "global")
"""The memories that the work-items of a group share."""

ITEM = "item"
"""The variable that counts the work-items of a group."""

START: Int = Linear()
"""No offset."""


@dataclass(frozen=True)
class Cell:
    """`row_c[row]`: an element of a table."""

    table: str
    index: Int


@dataclass(frozen=True)
class Pointer:
    """`A + K*i`, `row_c[row] + 64`, `run + row_offset[row]`: the address of an element, as an offset from a pointer."""

    base: str | Cell
    offset: Int | Cell = START


@dataclass(frozen=True)
class Factor:
    """An expression of numbers and scalar arguments, computed in a type."""

    expr: Expr
    dtype: DType


Value: TypeAlias = Int | Test | Cell | Pointer | Factor


@dataclass(frozen=True)
class Let:
    """`const int64_t name = value;`, or a variable of another type."""

    name: str
    value: Value
    type: str = "const int64_t "


@dataclass(frozen=True)
class Table:
    """`type name[count] = {values};`, or without values, if these are stored later."""

    type: str
    name: str
    count: int
    values: tuple[Value, ...] = ()
    aligned: bool = False
    """Whether it is aligned to 64 bytes."""


@dataclass(frozen=True)
class Write:
    """`cell = value;`, or with an operator and a type, `cell += value;`."""

    cell: Cell
    value: Value
    op: str = "="
    dtype: DType | None = None


@dataclass(frozen=True)
class Call:
    """`function(arguments);`."""

    function: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True)
class Barrier:
    """A barrier of the work-items of a group, which makes their writes to these memories visible to each other."""

    memories: tuple[Memory, ...]


Instruction: TypeAlias = Let | Table | Write | Call | Barrier


def values_of(instruction: Instruction) -> tuple[Value, ...]:
    """The values in an instruction."""
    match instruction:
        case Let():
            return (instruction.value,)
        case Table():
            return instruction.values
        case Write():
            return (instruction.cell, instruction.value)
        case Call():
            return instruction.arguments
    return ()


def instruction_names(instruction: Instruction) -> frozenset[str]:
    """The names in an instruction, including that of a variable or table that it declares."""
    own = frozenset({instruction.name} if isinstance(instruction, Let | Table) else ())
    return own.union(*map(_names, values_of(instruction)))


def _names(value: Value) -> frozenset[str]:
    match value:
        case Cell():
            return value.index.names | {value.table}
        case Pointer(base):
            return _names(value.offset) | ({base} if isinstance(base, str) else _names(base))
        case Factor():
            return frozenset(c_name(load.array) for load in loads(value.expr))
        case Compare() | Connected():
            return names_of(value)
    return value.names


def with_values(instruction: Instruction, values: Mapping[str, Int]) -> Instruction:
    """The instruction with variables replaced by expressions."""
    match instruction:
        case Let():
            return replace(instruction, value=replaced_in(instruction.value, values))
        case Table():
            return replace(instruction, values=tuple(replaced_in(value, values) for value in instruction.values))
        case Write():
            cell, value = _cell(instruction.cell, values), replaced_in(instruction.value, values)
            return replace(instruction, cell=cell, value=value)
        case Call():
            return replace(instruction, arguments=tuple(replaced_in(value, values) for value in instruction.arguments))
    return instruction


def replaced_in(value: Value, values: Mapping[str, Int]) -> Value:
    """The value with variables replaced by expressions."""
    match value:
        case Cell():
            return _cell(value, values)
        case Pointer(base):
            offset = value.offset
            return Pointer(
                base if isinstance(base, str) else _cell(base, values),
                _cell(offset, values) if isinstance(offset, Cell) else offset.substitute(values),
            )
        case Factor():
            return value
        case Compare() | Connected():
            return replaced(value, values)
    return value.substitute(values)


def _cell(cell: Cell, values: Mapping[str, Int]) -> Cell:
    return Cell(cell.table, cell.index.substitute(values))


def index_inside(index: Int, extent: Int) -> list[Call]:
    """The assertion that an index, in terms of C variables, is within its dimension; empty if this is known."""
    if not index.terms and not extent.terms and 0 <= index.constant < extent.constant:
        return []
    return [assert_within(index, in_c(extent))]


def assert_within(index: Int, count: Int) -> Call:
    """The assertion that 0 <= index < count, in terms of C variables."""
    return Call("PFX_IN", (index, count))
