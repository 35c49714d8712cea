"""Arithmetic as small C functions: integers that wrap around, Python's min and max, and the choice of a float.

Signed overflow is undefined in C. NumPy's integers wrap around, and so do these: the functions compute in unsigned
types. Compilers vectorise them as they do operators.

C has an operator for a choice, but `x > A[j] ? x : A[j]` leaves gcc 12 to choose where to load from, and it moves the
floats through general registers, or branches. A function's arguments are loaded before.
"""

from __future__ import annotations

from codegen.ir.promotion import limits
from codegen.macros import WRAPS
from microkernels.dtypes import DTYPES, DType, f16, f32, f64, i16, i32, i64, u16

OPERATIONS = {"+": "add", "-": "sub", "*": "mul"}
"""The functions that replace operators."""
WHOLE = {
    "//": "floordiv", "%": "mod", "<<": "shift_left", ">>": "shift_right", "&": "bit_and", "|": "bit_or",
    "^": "bit_xor",
}  # fmt: skip
"""Those of the operators that only integers have."""
EXACT = {f32: 24, f64: 53}
"""The bits of the integers that a type of floats has all of."""


def functions() -> dict[str, str]:
    """The C functions by name, each after those that it calls."""
    result: dict[str, str] = {}
    for dtype in DTYPES.values():
        c, name = dtype.c_name, dtype.name
        result[f"min_{name}"] = f"static inline {c} min_{name}({c} a, {c} b) {{ return b < a ? b : a; }}"
        result[f"max_{name}"] = f"static inline {c} max_{name}({c} a, {c} b) {{ return b > a ? b : a; }}"
        arguments = f"int test, {c} a, {c} b"
        result[f"choose_{name}"] = f"static inline {c} choose_{name}({arguments}) {{ return test ? a : b; }}"
        if dtype.is_float:
            result |= {} if dtype.is_stored or dtype == f16 else _of_divisors(dtype)
        else:
            result |= _of_integers(dtype)
    return {**result, **dict(map(_of_sums, (i16, u16, i32, i64))), **stored_floats()}


def unsigned(dtype: DType) -> str:
    """The unsigned integers of a type's size in C."""
    return f"uint{8 * dtype.size}_t"


def _of_sums(dtype: DType) -> tuple[str, str]:
    """The function that adds to an unsigned sum: in such ones, compilers find those of products and of distances."""
    name, c = f"sum_{dtype.name}", unsigned(dtype)
    result = "a + b" if dtype.size >= i32.size else f"({c})(a + b)"
    return name, f"{WRAPS} static inline {c} {name}({c} a, {c} b) {{ return {result}; }}"


def _of_divisors(dtype: DType) -> dict[str, str]:
    """The functions of `codegen.lanes.division`; the product is right if its rest is 0, or NaN as that of infinity."""
    c, name, end = dtype.c_name, dtype.name, "f" * (dtype == f32)
    return {
        f"is_divisor_{name}": f"static inline int is_divisor_{name}({c} b)\n{{\n    const {c} size = fabs{end}(b);\n"
        f"    return size >= 1.0{end} && size <= 1152921504606846976.0{end};\n}}",
        f"quotient_{name}": f"static inline {c} quotient_{name}({c} a, {c} b, {c} over)\n{{\n"
        f"    const {c} q = a * over, rest = __builtin_fma{end}(-q, b, a), near = __builtin_fma{end}(rest, over, q);\n"
        f"    const {c} result = __builtin_fma{end}(__builtin_fma{end}(-near, b, a), over, near);\n"
        f"    return __builtin_islessgreater(rest, 0.0{end}) ? result : q;\n}}",
    }


def stored_floats() -> dict[str, str]:
    """The conversions of the types that C only stores; to them, to the nearest, and of two as near to the even one.

    A NaN stays one. Of an f64, `odd_f32` makes the f32 next to it that is odd unless it is exact: rounding this one
    rounds the f64 (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008).
    """
    bits = "uint32_t bits; __builtin_memcpy(&bits, &x, sizeof bits);"
    made = "float x; __builtin_memcpy(&x, &bits, sizeof x); return x;"
    return {
        "odd_f32": "static inline float odd_f32(double y)\n{\n"
        f"    float x = (float)y; {bits}\n"
        "    if (x < y || x > y)\n"
        "        bits = (bits & 1) ? bits : fabs((double)x) < fabs(y) ? bits + 1 : bits - 1;\n"
        "    __builtin_memcpy(&x, &bits, sizeof x);\n    return x;\n}",
        "f32_of_bf16": "static inline float f32_of_bf16(uint16_t h)\n{\n"
        f"    const uint32_t bits = (uint32_t)h << 16;\n    {made}\n}}",
        "bf16_of_f32": f"{WRAPS} static inline uint16_t bf16_of_f32(float x)\n{{\n"
        f"    {bits}\n"
        "    const uint32_t near = bits + 0x7FFFu + (bits >> 16 & 1u);\n"
        "    return (uint16_t)((x != x ? bits | 0x400000u : near) >> 16);\n}",
        "f32_of_f16": "static inline float f32_of_f16(uint16_t h)\n{\n"
        "    uint32_t bits = (uint32_t)(h & 0x7FFF) << 13; float x; __builtin_memcpy(&x, &bits, sizeof x);\n"
        "    x *= 5192296858534827628530496329220096.0f;\n    __builtin_memcpy(&bits, &x, sizeof bits);\n"
        "    bits |= ((h & 0x7C00) == 0x7C00 ? 0x7F800000u : 0u) | (uint32_t)(h & 0x8000) << 16;\n"
        "    __builtin_memcpy(&x, &bits, sizeof x);\n    return x;\n}",
        "f16_of_f32": f"{WRAPS} static inline uint16_t f16_of_f32(float x)\n{{\n"
        f"    {bits}\n"
        "    const uint32_t sign = bits >> 16 & 0x8000u;\n    bits &= 0x7FFFFFFFu;\n"
        "    const uint32_t near = (bits + 0xFFFu + (bits >> 13 & 1u) - 0x38000000u) >> 13;\n"
        "    float least = (float)fabs(x) + 0.5f; uint32_t small; __builtin_memcpy(&small, &least, sizeof small);\n"
        "    const uint32_t large = x != x ? 0x7E00u | (bits >> 13 & 0x3FFu) : 0x7C00u;\n"
        "    const uint32_t finite = bits < 0x38800000u ? small - 0x3F000000u : near;\n"
        "    return (uint16_t)(sign | (bits >= 0x47800000u ? large : finite));\n}",
    }


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
    if dtype.size >= i32.size:  # of a number that isn't the least, whose opposite is no number of the type
        made[f"size_{name}"] = f"static inline {c} size_{name}({c} a) {{ return a < 0 ? -a : a; }}"
    made |= _of_whole(dtype, plain)
    for suffix, real in (("", f64), ("_of_f32", f32)):
        # two choices of floats, then one conversion: gcc gives lanes to no condition around a conversion to few bits
        end = "f" * (real == f32)
        whole, low = (c if dtype.size >= i32.size else i32.c_name), f"{limits(dtype)[0]}.0{end}"
        above, below = _inside(dtype, real)
        made[f"to_{name}{suffix}"] = (
            f"static inline {c} to_{name}{suffix}({real.c_name} x)\n{{\n"
            f"    const {real.c_name} y = {above} ? x : {low};\n"
            f"    return {f'({c})' * (whole != c)}({whole})({below} ? y : {low});\n}}"
        )
    if dtype.size < i32.size:  # gcc would narrow both sides of a choice first, and no longer see a minimum or maximum
        made[f"narrow_{name}"] = f"static inline {c} narrow_{name}(int64_t x) {{ return ({c})x; }}"
    return made


def _of_whole(dtype: DType, plain: str) -> dict[str, str]:
    """The functions of WHOLE, which have NumPy's values also where C's operators have none."""
    c, name, bits = dtype.c_name, dtype.name, 8 * dtype.size
    count = f"const {unsigned(dtype)} n = ({unsigned(dtype)})b;"
    bodies = {symbol: f"return ({c})(a {symbol} b);" for symbol in "&|^"}
    bodies["<<"] = f"{count} return ({c})(n < {bits} ? ({plain})a << n : 0u);"
    if dtype.is_unsigned:
        bodies |= {symbol: f"return ({c})(b ? a {symbol[0]} b : 0);" for symbol in ("//", "%")}
        bodies[">>"] = f"{count} return ({c})(n < {bits} ? ({plain})a >> n : 0u);"
    else:  # by -1 the least number has no quotient, and by 1 all have the same rest
        by = f"const {c} by = ({c})((b == 0) | (b == -1) ? 1 : b), rest = ({c})(a % by);"
        other = "((rest != 0) & ((rest < 0) != (by < 0)))"
        bodies["//"] = f"{by} return ({c})(b == 0 ? 0 : b == -1 ? neg_{name}(a) : a / by - {other});"
        bodies["%"] = f"{by} return ({c})(rest + ({other} ? by : 0));"
        bodies[">>"] = f"{count} return ({c})(a >> (n < {bits} ? n : {bits - 1}));"
    return {
        f"{word}_{name}": f"{WRAPS} static inline {c} {word}_{name}({c} a, {c} b)\n{{\n    {bodies[symbol]}\n}}"
        for symbol, word in WHOLE.items()
    }


def _inside(dtype: DType, real: DType) -> tuple[str, str]:
    """The conditions that x of a type of floats, truncated, is no less than the range's least number, and y no more
    than its greatest; f64 has no i64's minimum minus 1."""
    low, high = limits(dtype)
    end = "f" * (real == f32)
    exact = -low < 1 << EXACT[real]
    return f"x > {low - 1}.0{end}" if exact else f"x >= {low}.0{end}", f"y < {high + 1}.0{end}"


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
