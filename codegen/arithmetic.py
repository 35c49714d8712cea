"""Arithmetic as small C functions: integers that wrap around, Python's min and max, and the choice of a float.

Signed overflow is undefined in C. NumPy's integers wrap around, and so do these: the functions compute in unsigned
types. Compilers vectorise them as they do operators.

C has an operator for a choice, but `x > A[j] ? x : A[j]` leaves gcc 12 to choose where to load from, and it moves the
floats through general registers. A function's arguments are loaded before.
"""

from __future__ import annotations

from codegen.macros import WRAPS
from codegen.promotion import limits
from microkernels.dtypes import DTYPES, DType, i32

OPERATIONS = {"+": "add", "-": "sub", "*": "mul"}
"""The functions that replace operators."""


def functions() -> dict[str, str]:
    """The C functions by name, each after those that it calls."""
    result: dict[str, str] = {}
    for dtype in DTYPES.values():
        c, name = dtype.c_name, dtype.name
        result[f"min_{name}"] = f"static inline {c} min_{name}({c} a, {c} b) {{ return b < a ? b : a; }}"
        result[f"max_{name}"] = f"static inline {c} max_{name}({c} a, {c} b) {{ return b > a ? b : a; }}"
        if dtype.is_float:
            arguments = f"int test, {c} a, {c} b"
            result[f"choose_{name}"] = f"static inline {c} choose_{name}({arguments}) {{ return test ? a : b; }}"
        else:
            result |= _of_integers(dtype)
    return result


def _of_integers(dtype: DType) -> dict[str, str]:
    c, name, plain = dtype.c_name, dtype.name, f"uint{8 * max(dtype.size, i32.size)}_t"
    made = {
        f"{word}_{name}": f"{WRAPS} static inline {c} {word}_{name}({c} a, {c} b)"
        f" {{ return ({c})(({plain})a {symbol} ({plain})b); }}"
        for symbol, word in OPERATIONS.items()
    }
    made[f"neg_{name}"] = f"{WRAPS} static inline {c} neg_{name}({c} a) {{ return ({c})(0u - ({plain})a); }}"
    positive = "a" if dtype.is_unsigned else f"a < 0 ? neg_{name}(a) : a"
    made[f"abs_{name}"] = f"static inline {c} abs_{name}({c} a) {{ return {positive}; }}"
    whole = f"{_inside(dtype)} ? ({c if dtype.size >= i32.size else i32.c_name})x : {least(dtype)}"
    narrow = f"({c})({whole})" if dtype.size < i32.size else whole
    made[f"to_{name}"] = f"static inline {c} to_{name}(double x) {{ return {narrow}; }}"
    return made


def _inside(dtype: DType) -> str:
    """The condition that x, truncated, is in the type's range; f64 cannot represent i64's minimum minus 1."""
    low, high = limits(dtype)
    below = f"x > {low - 1}.0" if float(low - 1) < float(low) else f"x >= {low}.0"
    return f"{below} && x < {high + 1}.0"


def least(dtype: DType) -> str:
    """The type's minimum, which C cannot write as a literal."""
    return "0" if dtype.is_unsigned else f"INT{8 * dtype.size}_MIN"


def most(dtype: DType) -> str:
    """The type's maximum."""
    return f"{'U' * dtype.is_unsigned}INT{8 * dtype.size}_MAX"


def update(op: str, dtype: DType, target: str, value: str) -> str:
    """The C statement `target op= value;` for one of `+ - * min max` and a value of the target's type."""
    if op in ("min", "max"):
        return f"{target} = {op}_{dtype.name}({target}, {value});"
    if dtype.is_float:
        return f"{target} {op}= {value};"
    return f"{target} = {OPERATIONS[op]}_{dtype.name}({target}, {value});"
