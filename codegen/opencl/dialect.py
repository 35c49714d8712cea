"""What OpenCL C spells differently from C: types, helper functions and names."""

from __future__ import annotations

import re
from functools import cache

from codegen import arithmetic
from codegen.called import with_called
from codegen.elementary import functions as elementary
from codegen.ir import integer
from codegen.lanes import vectors
from codegen.macros import CLANG_LANE, CLANG_VECTOR, EACH_LANE, EACH_VECTOR, ROOTS, WRAPS
from microkernels.prune import NO_CODE

TYPES = {
    "int8_t": "char",
    "int16_t": "short",
    "int32_t": "int",
    "int64_t": "long",
    "uint8_t": "uchar",
    "uint16_t": "ushort",
    "uint32_t": "uint",
    "uint64_t": "ulong",
}
"""The integer types of generated C, and their names in OpenCL C."""

NAMES = {
    "fabsf": "fabs",
    **{f"{name}f": name for name in elementary.OF_LIBRARY},
    "INT8_MAX": "CHAR_MAX",
    "INT8_MIN": "CHAR_MIN",
    "UINT8_MAX": "UCHAR_MAX",
    "UINT16_MAX": "USHRT_MAX",
    "INT16_MAX": "SHRT_MAX",
    "INT16_MIN": "SHRT_MIN",
    "INT32_MAX": "INT_MAX",
    "INT32_MIN": "INT_MIN",
    "INT64_MAX": "LONG_MAX",
    "INT64_MIN": "LONG_MIN",
    **dict.fromkeys(ROOTS.values(), "sqrt"),
}
"""Functions and constants of generated C that have another name in OpenCL C."""

BITS = {"f32": ("uint32_t", "as_uint", "float", "as_float"), "f64": ("uint64_t", "as_ulong", "double", "as_double")}
"""For a scalar type: the integer type of its size, and the functions that reinterpret its bits."""


OF_DEVICE = {
    **{f"{name}_f16": f"static inline half {name}_f16(half x) {{ return {name}(x); }}" for name in elementary.NAMES},
    **{
        f"{name}_f16": f"static inline half {name}_f16(half x, half y) {{ return {name}(x, y); }}"
        for name in elementary.OF_TWO
    },
    "pow_f32": "static inline float pow_f32(float x, float y) { return pow(x, y); }",
}
"""Functions of halves, and powers of floats, which call the device's own: ours compute in double."""


def helpers(code: str) -> str:
    """The small functions that the code calls, each after those that it calls itself."""
    text = with_called(_every_helper(), code, vectors.helpers(code, None))
    return text.replace(f"{WRAPS} ", "").rstrip("\n")


@cache
def _every_helper() -> dict[str, str]:
    """The helper functions by name, each after those that it calls."""
    return {**integer.HELPERS, **arithmetic.functions(), **elementary.functions(), **_bit_functions(), **OF_DEVICE}


def prelude(code: str, lanes: int) -> str:
    """Extensions, types, names and macros that the code needs; vectors have `lanes` lanes."""
    words = frozenset(re.findall(r"\w+", NO_CODE.sub(" ", code)))
    lines = ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] * any(w.startswith("double") for w in words)
    lines += ["#pragma OPENCL EXTENSION cl_khr_fp16 : enable"] * any(re.fullmatch(r"half\d*", w) for w in words)
    lines += [f"typedef {known} {name};" for name, known in TYPES.items() if name in words]
    lines += [f"#define {name} {known}" for name, known in NAMES.items() if name in words]
    lines += [_loops(lanes)] * bool({EACH_VECTOR, EACH_LANE} & words)
    return "\n".join(lines)


def _loops(lanes: int) -> str:
    """The macros before loops to vectorise, with the width: clang prefers narrower vectors than a CPU may have."""
    width = f"vectorize_width({lanes})"
    return f"""#if defined(__clang__)
#define {EACH_VECTOR} _Pragma("{CLANG_VECTOR} {width}")
#define {EACH_LANE} _Pragma("{CLANG_LANE} {width}")
#else
#define {EACH_VECTOR}
#define {EACH_LANE}
#endif"""


def _bit_functions() -> dict[str, str]:
    """The functions from a number's bits to an integer, and back."""
    made = {}
    for name, (bits, as_bits, c_type, as_type) in BITS.items():
        made[f"bits_of_{name}"] = f"static inline {bits} bits_of_{name}({c_type} x) {{ return {as_bits}(x); }}"
        made[f"of_bits_{name}"] = f"static inline {c_type} of_bits_{name}({bits} bits) {{ return {as_type}(bits); }}"
    return made
