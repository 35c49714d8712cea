"""Print instructions as lines of C and OpenCL C."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.arithmetic import update
from codegen.ir.expr import Binary, Const, Expr, Load, Unary
from codegen.ir.instructions import Barrier, Call, Cell, Factor, Instruction, Let, Memory, Pointer, Table, Value, Write
from codegen.ir.integer import Int, Linear
from codegen.names import c_name
from codegen.typed_text import literal
from microkernels.dtypes import DType

FENCES: Mapping[Memory, str] = {"local": "CLK_LOCAL_MEM_FENCE", "global": "CLK_GLOBAL_MEM_FENCE"}
"""The fences that make writes of the other work-items of a group visible."""


def line(instruction: Instruction) -> str:
    """The line of an instruction."""
    match instruction:
        case Let(name, value, type_):
            return f"{type_}{name} = {_text(value)};"
        case Table(type_, name, count, values):
            aligned = " __attribute__((aligned(64)))" * instruction.aligned
            filled = f" = {{{', '.join(map(_text, values))}}}" if values else ""
            return f"{type_}{name}[{count}]{aligned}{filled};"
        case Write(cell, value, op, dtype):
            place = _text(cell)
            return f"{place} = {_text(value)};" if dtype is None else update(op, dtype, place, _text(value))
        case Call(function, arguments):
            return f"{function}({', '.join(map(_text, arguments))});"
        case Barrier(memories):
            return f"barrier({' | '.join(FENCES[memory] for memory in memories)});"


def _text(value: Value) -> str:
    match value:
        case Cell(table, index):
            return f"{table}[{index}]"
        case Pointer(base, offset):
            start = base if isinstance(base, str) else _text(base)
            text = _text(offset)
            if isinstance(offset, Linear) and _passes_outside(offset):
                text = f"({text})"
            return start if offset == Linear() else f"{start} + {text}"
        case Factor(expr, dtype):
            return _scalar(expr, dtype)
    return str(value)


def _passes_outside(offset: Int) -> bool:
    """Whether a part of a sum may lead outside of an array, where C allows no pointer, though the whole does not."""
    parts = [factor for _, factor in offset.terms] + [offset.constant] * (offset.constant != 0)
    return len(parts) > 1 and min(parts) < 0


def _scalar(expr: Expr, dtype: DType) -> str:
    match expr:
        case Const(value):
            return literal(value, dtype)[0]
        case Load(name, ()):
            return c_name(name)
        case Unary("-", operand):
            return f"-{_scalar(operand, dtype)}"
        case Binary(op, left, right):
            return f"({_scalar(left, dtype)} {op} {_scalar(right, dtype)})"
    raise TypeError(f"{expr} is not a scalar")
