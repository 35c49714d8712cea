"""Recognise contractions, and the role of each loop: rows, columns, reduction or batch.

A contraction is any `C[…] += factor * A[…] * B[…]` with affine accesses: matrix products in every transposition,
batches, matrix-vector products, einsums of two operands, convolutions. The operands may be converted to the output's
type: `C[i, j] += f32(A[i, k]) * f32(B[k, j])`. So is the same with another pair of operations
(microkernels/product.py): `C[i, j] = min(C[i, j], A[i, k] + B[k, j])`, `D[i, j] += abs(X[i, k] - Y[j, k])`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from codegen.ir.expr import Binary, Cast, Const, Expr, FunctionCall, Load, Unary, loads, walk
from microkernels.dtypes import DType, bf16, f16, f32, i32
from microkernels.product import MULTIPLY_ADD, WORDS, Combination, OperationPair, Reduction
from poly.analysis.dependences import dependences
from poly.ir.instances import coordinates, loop_values
from poly.ir.layout import step
from poly.ir.nest import Nest, Statement


@dataclass(frozen=True)
class Contraction:
    """The operands of a contraction, and its loops by role, each in the statement's order.

    `columns` are the loops of `output` and `right` alone, among them the one along which `output` is contiguous (unless
    that is a batch loop); `rows` are those of `output` and `left` alone (or of `output` alone); `reduce` those absent
    from `output`; `batch` those of all three. If an index of the output adds several loops, some of them may have to
    stay outside tiles (see `overlapping`).
    """

    statement: str
    output: Load
    left: Load
    right: Load
    factor: Expr
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    reduce: tuple[str, ...]
    batch: tuple[str, ...]
    dtype: DType = f32
    """The type of the sums."""
    elements: tuple[DType, DType] = (f32, f32)
    """The types of the left and the right operand's elements, which are converted to that of the sums."""
    product: OperationPair = MULTIPLY_ADD
    """What is done with two elements, and with the results."""

    @property
    def converted(self) -> frozenset[str]:
        """The operands, `left` or `right`, whose elements are converted."""
        sides = zip(("left", "right"), self.elements, strict=True)
        return frozenset(side for side, own in sides if own != self.dtype)


def recognise(nest: Nest, statement: Statement) -> Contraction | None:
    """The statement as a contraction; None if it is not one, or if its sums must keep their order."""
    found = recognised(nest, statement)
    return found if isinstance(found, Contraction) else None


def recognised(nest: Nest, statement: Statement) -> Contraction | str:
    """The same, or the first condition of a contraction that the statement does not meet."""
    found = _formed(nest, statement)
    if isinstance(found, Contraction) and feeds_itself(nest, statement):
        return f"an iteration of it reads what another one has written to {statement.target.array}"
    return found


def formed(nest: Nest, statement: Statement) -> Contraction | None:
    """The same for a statement whose instances may depend on each other, as long as no tile has two that do."""
    found = _formed(nest, statement)
    return found if isinstance(found, Contraction) else None


def _formed(nest: Nest, statement: Statement) -> Contraction | str:
    if statement.op not in WORDS:
        return "it is no sum of the form C[…] += A[…] * B[…], nor the same with min or max"
    if statement.op == "+" and not nest.reassociate:
        return "its sums must keep their order: the nest says reassociate=False"
    dtype = nest.array(statement.target.array).dtype
    term = _term(nest, statement, dtype)
    if isinstance(term, str):
        return term
    operands, others = (term.left, term.right), list(term.others)
    if not all(index.is_affine for load in (statement.target, *operands) for index in load.indices):
        return "an index is not affine"
    if any(not _is_scalar(nest, f) for f in others):
        return "a factor beside the two elements is neither a constant nor a number that the caller passes"
    types = [nest.array(load.array).dtype for load in operands]
    if not dtype.is_float and (dtype != i32 or any(own.size > i32.size for own in types)):
        return f"there is none for {dtype.name}"
    if not dtype.is_float and any(own.is_float for own in types):
        return "it converts floats to integers"
    halves = [own.name for own in (f16, bf16) if own in types]
    if halves and dtype not in (f32, f16, bf16):
        return f"it converts {' and '.join(halves)} to {dtype.name}, not to f32"
    found = _with_roles(statement, operands[0], operands[1], _product(others))
    pair = OperationPair(term.reduce, term.combine)
    if not dtype.is_float and pair != MULTIPLY_ADD:
        return f"of {dtype.name}, there are only sums of products"
    return _oriented(nest, replace(found, dtype=dtype, elements=(types[0], types[1]), product=pair))


@dataclass(frozen=True)
class _Term:
    """What a contraction adds, or takes the extreme of: two elements, what is made of them, and other factors."""

    reduce: Reduction
    combine: Combination
    left: Load
    right: Load
    others: tuple[Expr, ...] = ()


def _term(nest: Nest, statement: Statement, dtype: DType) -> _Term | str:
    """The term of a statement, or why it is none of two elements."""
    op = statement.op
    assert op in ("+", "min", "max"), "the caller has checked it"
    if op != "+":
        pair = _pair(nest, statement.expr, dtype)
        return _Term(op, *pair) if pair else f"it takes the {op} of no two combined elements of arrays"
    factors = _factors(statement.expr)
    known = [_element(nest, factor, dtype) for factor in factors]
    operands = [element for element in known if element is not None]
    others = tuple(factor for factor, element in zip(factors, known, strict=True) if element is None)
    if len(operands) == 2:
        return _Term("+", "mul", operands[0], operands[1], others)
    if not operands:
        for factor in others:
            rest = tuple(other for other in others if other != factor)
            pair = _pair(nest, factor, dtype)
            if pair and pair[0] == "sub" and others.count(factor) == 2:
                return _Term("+", "square", pair[1], pair[2], rest)
            if pair and pair[0] != "mul" and others.count(factor) == 1:
                return _Term("+", *pair, rest)
    return f"it adds a product with {len(operands)} elements of arrays, and must add one with 2"


def _pair(nest: Nest, expr: Expr, dtype: DType) -> tuple[Combination, Load, Load] | None:
    """Two elements, and what an expression makes of them; None if it makes nothing that a microkernel does."""
    combine: Combination
    match expr:
        case FunctionCall("abs", (Binary("-", left, right),)):
            combine = "distance"
        case FunctionCall("min" | "max" as combine, (left, right)):
            pass
        case Binary("*", Binary("-", left, right) as one, other) if one == other:
            combine = "square"
        case Binary("*" | "+" | "-" as op, left, right):
            combine = COMBINED[op]
        case _:
            return None
    first, second = _element(nest, left, dtype), _element(nest, right, dtype)
    return (combine, first, second) if first and second else None


COMBINED: dict[str, Combination] = {"*": "mul", "+": "add", "-": "sub"}


def _element(nest: Nest, factor: Expr, dtype: DType) -> Load | None:
    """The element of an array that is a factor, of the output's type or converted to it; None for another factor."""
    is_converted = isinstance(factor, Cast) and factor.dtype == dtype
    load = factor.operand if isinstance(factor, Cast) and is_converted else factor
    if not (isinstance(load, Load) and load.indices):
        return None
    return load if is_converted or nest.array(load.array).dtype == dtype else None


def in_place(nest: Nest, statement: Statement) -> Contraction | None:
    """The statement as a contraction that replaces elements which it has read before, as in `B = L @ B`; else None.

    Its results must not be read by itself.
    """
    found = formed(nest, statement)
    if found is None or not any(load.array == statement.target.array for load in loads(statement.expr)):
        return None
    own = {d.kind for d in dependences(nest).binding if d.source == d.sink == statement.name}
    return found if own == {"anti"} else None


def feeds_itself(nest: Nest, statement: Statement, within: Iterable[isl.PwAff] = ()) -> bool:
    """Whether instances that agree in the functions `within` depend on each other beyond the reduction.

    A tile runs its instances in any order, so no two of them may.
    """
    if not any(load.array == statement.target.array for load in loads(statement.expr)):
        return False
    held = loop_values(statement.domain, within)
    together = held.apply_range(held.reverse())
    own = (d.relation for d in dependences(nest).binding if d.source == d.sink == statement.name)
    return any(not relation.intersect(together).is_empty() for relation in own)


def distinct(statement: Statement, apart: Iterable[isl.PwAff]) -> bool:
    """Whether any two iterations that agree in the functions `apart` write different elements.

    A tile accumulates each element of the output separately, so this must hold for its rows and columns, with all other
    loops fixed: `y[i + j] += a[i, k] * b[k, j]` has no tile of both i and j.
    """
    held = loop_values(statement.domain, apart)
    return bool(held.flat_range_product(statement.relation(statement.target)).is_injective())


def overlapping(statement: Statement, counted: Sequence[str]) -> tuple[str, ...]:
    """The output's loops that must stay outside tiles, so that the others reach different elements.

    Of the loops that an index adds, the first in `counted` stays inside: for `Y[p + r, k]` and (p, k, r) this leaves
    out r, like the taps of a convolution.
    """
    added = [index.names.intersection(statement.iterators) for index in statement.target.indices]
    if set().union(*(names for names in added if len(names) == 1)).issuperset(counted):
        return ()
    inside: list[str] = []
    for iterator in counted:
        taken = (*inside, iterator)
        if distinct(statement, _others(statement, taken)):
            inside.append(iterator)
    return tuple(iterator for iterator in counted if iterator not in inside)


def _others(statement: Statement, iterators: Collection[str]) -> list[isl.PwAff]:
    """The statement's other iterators, as functions."""
    return [c for name, c in coordinates(statement.domain, statement.iterators).items() if name not in iterators]


def terms(expr: Expr) -> list[Expr]:
    """The terms of a sum, in order; a number that is subtracted is a negated term."""
    match expr:
        case Binary("+", left, right):
            return [*terms(left), *terms(right)]
        case Binary("-", left, right):
            return [*terms(left), *(Unary("-", term) for term in terms(right))]
        case Unary("-", operand):
            return [Unary("-", term) for term in terms(operand)]
    return [expr]


def is_sum_of_products(nest: Nest, statement: Statement) -> bool:
    """Whether a statement adds several products, each of which alone would be a contraction with a reduction."""
    parts = terms(statement.expr)
    if len(parts) < 2 or any(load.array == statement.target.array for load in loads(statement.expr)):
        return False
    found = (_formed(nest, replace(statement, expr=part)) for part in parts)
    return all(isinstance(one, Contraction) and one.reduce for one in found)


def _factors(expr: Expr) -> list[Expr]:
    match expr:
        case Binary("*", left, right):
            return _factors(left) + _factors(right)
        case Unary("-", operand):
            return [Const(-1), *_factors(operand)]
    return [expr]


def _product(factors: list[Expr]) -> Expr:
    result: Expr = Const(1)
    for factor in factors:
        result = factor if result == Const(1) else Binary("*", result, factor)
    return result


def _is_scalar(nest: Nest, expr: Expr) -> bool:
    """Whether an expression has only constants and arguments passed by value."""
    leaves = [n for n in walk(expr) if not isinstance(n, Unary | Binary)]
    return all(isinstance(n, Const) or (isinstance(n, Load) and nest.array(n.array).kind == "scalar") for n in leaves)


def _with_roles(statement: Statement, left: Load, right: Load, factor: Expr) -> Contraction:
    def uses(access: Load, iterator: str) -> bool:
        return any(index.coefficient(iterator) for index in access.indices)

    roles: dict[str, list[str]] = {"rows": [], "columns": [], "reduce": [], "batch": []}
    for iterator in statement.iterators:
        in_left, in_right = uses(left, iterator), uses(right, iterator)
        if not uses(statement.target, iterator):
            roles["reduce"].append(iterator)
        elif in_left and in_right:
            roles["batch"].append(iterator)
        else:
            roles["columns" if in_right else "rows"].append(iterator)
    rows, columns, reduce, batch = (tuple(roles[role]) for role in ("rows", "columns", "reduce", "batch"))
    return Contraction(statement.name, statement.target, left, right, factor, rows, columns, reduce, batch)


def _oriented(nest: Nest, c: Contraction) -> Contraction:
    """The same with the output's contiguous loop among the columns; a loop of one iteration does not count."""
    output, statement = nest.array(c.output.array), nest.statement(c.statement)

    def contiguous(iterator: str) -> bool:
        return step(output, c.output, iterator).number == 1 and not _is_single(statement, iterator)

    return exchange(c) if any(contiguous(i) for i in c.rows) or (not c.columns and c.rows) else c


def _is_single(statement: Statement, iterator: str) -> bool:
    """Whether an iterator has a single value, for all sizes."""
    place = statement.iterators.index(iterator)
    ends = statement.domain.dim_min_val(place), statement.domain.dim_max_val(place)
    return bool(ends[0].eq(ends[1]) and ends[0].is_int())


def exchange(c: Contraction) -> Contraction:
    """The same with the operands, and thus rows and columns, exchanged."""
    left, right = c.elements
    turned = replace(c, left=c.right, right=c.left, rows=c.columns, columns=c.rows, elements=(right, left))
    return replace(turned, product=c.product.exchanged)
