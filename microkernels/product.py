"""What an outer product does with two elements, and with the results of all steps: multiply-adds, min-plus, distances.

C[i, j] += A[i, k] * B[k, j]                         gemm, the sum of products
C[i, j] = min(C[i, j], A[i, k] + B[k, j])            min_add, the product of matrices over the tropical semiring
D[i, j] += (X[i, k] - Y[j, k]) ** 2                  sum_square

Each pair of operations is a family of microkernels, with the register tiles, panels and edges of `gemm`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, TypeAlias

from microkernels.dot import DotProduct

Reduction = Literal["+", "min", "max"]
Combination = Literal["mul", "add", "sub", "rsub", "min", "rmin", "max", "rmax", "distance", "square"]
"""What is made of a left element a and a right element b. `rsub` is b - a; `rmin` is min(b, a), which differs from
min(a, b) if one of them is NaN, or if they are zeros of different sign."""

FORMS: dict[Combination, str] = {
    "mul": "{a} * {b}", "add": "{a} + {b}", "sub": "{a} - {b}", "rsub": "{b} - {a}",
    "min": "min({a}, {b})", "rmin": "min({b}, {a})", "max": "max({a}, {b})", "rmax": "max({b}, {a})",
    "distance": "abs({a} - {b})", "square": "({a} - {b}) ** 2",
}  # fmt: skip
"""The combinations as a nest writes them."""

IN_C: dict[Combination, str] = {
    **{name: form for name, form in FORMS.items() if name in ("mul", "add", "sub", "rsub")},
    "min": "min_T({a}, {b})", "rmin": "min_T({b}, {a})", "max": "max_T({a}, {b})", "rmax": "max_T({b}, {a})",
    "distance": "abs_T({a} - {b})",
}  # fmt: skip
"""The combinations of vectors in C, but for those that a multiply-add joins to the sum."""

TURNED: dict[Combination, Combination] = {
    "sub": "rsub", "rsub": "sub", "min": "rmin", "rmin": "min", "max": "rmax", "rmax": "max",
}  # fmt: skip
"""The combinations of exchanged operands, where they are others."""

WORDS: dict[Reduction, str] = {"+": "sum", "min": "min", "max": "max"}


@dataclass(frozen=True)
class OperationPair:
    """`C = reduce(C, combine(A, B))`."""

    reduce: Reduction
    combine: Combination

    @property
    def family(self) -> str:
        """The family of its microkernels: `gemm`, `min_add`, `sum_distance`."""
        return "gemm" if self == MULTIPLY_ADD else f"{WORDS[self.reduce]}_{self.combine}"

    @property
    def is_sum(self) -> bool:
        """Whether its results depend on the order of the steps, by rounding, and may have a factor."""
        return self.reduce == "+"

    @property
    def exchanged(self) -> OperationPair:
        """The same with left and right operand exchanged."""
        return replace(self, combine=TURNED.get(self.combine, self.combine))

    @property
    def operations(self) -> int:
        """The vector operations of a step; a multiply-add is one."""
        if self.is_sum and self.combine in ("mul", "square"):
            return 1 + (self.combine == "square")
        return 3 if self.combine in ("distance", "square") else 2

    @property
    def registers(self) -> int:
        """The vector registers beside sums and operands: what is combined, and the bits of a magnitude."""
        return 0 if self == MULTIPLY_ADD else 1 + (self.combine == "distance")

    def text(self, output: str, left: str, right: str) -> str:
        """The update of an element: `C[i, j] = min(C[i, j], A[i, k] + B[k, j])`."""
        term = FORMS[self.combine].format(a=left, b=right)
        return f"{output} += {term}" if self.is_sum else f"{output} = {self.reduce}({output}, {term})"


MULTIPLY_ADD = OperationPair("+", "mul")

StepOperation: TypeAlias = OperationPair | DotProduct
"""What a microkernel does in a step: with two elements, or with two words of elements."""

PRODUCTS = {made.family: made for made in (OperationPair(r, c) for r, c in product(WORDS, FORMS))}
"""All pairs of operations by family."""


def words(made: OperationPair) -> dict[str, str]:
    """What `c/gemm.h` calls for a pair of operations: to start a result, for a step, and to join it with C."""
    if made == MULTIPLY_ADD:
        return {"START_T": "zero_T", "UPDATE_T": "multiply_add_D", "JOIN_T": "fma_T"}
    own = {"START_T": "start", "UPDATE_T": "update", "JOIN_T": "join"}
    shared = {"START_T": "zero_T", "JOIN_T": "fma_T"} if made.is_sum else {}
    return {word: f"{made.family}_{name}_T" for word, name in own.items()} | shared


def operations(made: OperationPair) -> str:
    """C text of these functions, before it is specialised; empty for multiply-adds."""
    if made == MULTIPLY_ADD:
        return ""
    vectors = f"INLINE vec_T {made.family}"
    if made.is_sum and made.combine == "square":
        return f"{vectors}_update_T(vec_T a, vec_T b, vec_T c) {{ return fma_T(a - b, a - b, c); }}"
    square = "(a - b) * (a - b)" if made.combine == "square" else IN_C[made.combine].format(a="a", b="b")
    joined = f"c + {square}" if made.is_sum else f"{made.reduce}_T(c, {square})"
    update = f"{vectors}_update_T(vec_T a, vec_T b, vec_T c) {{ return {joined}; }}"
    if made.is_sum:
        return update
    first = "__builtin_inf()" if made.reduce == "min" else "-__builtin_inf()"
    return f"""{vectors}_start_T(void) {{ return broadcast_T((T){first}); }}
{update}
{vectors}_join_T(vec_T scale, vec_T x, vec_T c)
{{
    (void)scale; /* 1 */
    return {made.reduce}_T(c, x);
}}"""
