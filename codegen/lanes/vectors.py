"""Vector types, and the functions of vectors that loops in lanes call, found by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from codegen.arithmetic import update
from codegen.elementary import vector_functions
from codegen.lanes.simd import neutral
from codegen.macros import EACH_LANE, SHUFFLE
from microkernels.ctext import INLINE
from microkernels.dtypes import DTYPES, DType, f32, f64, i16, i32

VECTOR = re.compile(r"\b(\w+?)_((?:f|i|u)\d+)x(\d+)\(")


def helpers(code: str, register: int | None) -> str:
    """The vector types, and the functions on them, that `code` uses.

    They are in C for registers of so many bytes, or without in OpenCL C.
    """
    opencl = register is None
    uses = sorted({(dtype, int(lanes), name) for name, dtype, lanes in VECTOR.findall(code)})
    moved = () if opencl else SHUFFLES
    masks = [(_places(DTYPES[dtype]).name, lanes) for dtype, lanes, name in uses if name.endswith(moved)]
    known = dict.fromkeys([*((dtype, lanes) for dtype, lanes, _ in uses), *masks])
    texts = [_types(DTYPES[dtype], lanes, opencl) for dtype, lanes in known]
    for dtype, lanes, name in uses:
        operation, _, of = name.partition("_")
        if not of:
            texts.append(_fill(operation, DTYPES[dtype], lanes, opencl))
        else:
            fits = register is not None and lanes * DTYPES[dtype].size <= register
            folded = _shuffled if fits else _halved
            make = MAKERS.get(of, folded)
            texts.append(make(operation, DTYPES[dtype], lanes))
    return "\n".join(texts)


SHUFFLES = ("_lanes", "_scan", "_shift", "_behind", "_part")
"""The endings of functions that move lanes."""

WHOLE = "whole"
"""The word in the names of those that load or store all lanes at once: gcc 12 copies arrays of lanes in halves."""
PART = "part"
"""The word in the names of functions that load some lanes: `load_part_f32x16`, `second_part_f32x16`."""

OPENCL_VECTORS = {"u8": "uchar", "u16": "ushort", "i8": "char", "i16": "short", "i32": "int", "i64": "long"}
"""The names in OpenCL's vector types that are not those of the scalar types in C."""


def _types(dtype: DType, lanes: int, opencl: bool) -> str:
    name, c = f"{dtype.name}x{lanes}", dtype.c_name
    if opencl:
        own = f"{OPENCL_VECTORS.get(dtype.name, c)}{lanes if lanes > 1 else ''}"
        vector = f"typedef {own} {name};"
    else:
        vector = f"typedef {c} {name} __attribute__((vector_size({lanes * dtype.size})));"
    return f"{vector}\ntypedef union {{ {name} all; {c} lane[{lanes}]; }} {name}_lanes;"


def _fill(operation: str, dtype: DType, lanes: int, opencl: bool) -> str:
    name = f"{dtype.name}x{lanes}"
    every = f"({name})(value)" if opencl else f"{{{', '.join(['value'] * lanes)}}}"
    return f"""{INLINE} void {operation}_{name}({name} *x, int vectors, {dtype.c_name} value)
{{
    const {name} all = {every};
    for (int v = 0; v < vectors; v += 1)
        x[v] = all;
}}"""


def _into(operation: str, dtype: DType, lanes: int) -> str:
    """The function that combines a vector with another one."""
    name = f"{dtype.name}x{lanes}"
    return f"""{INLINE} void {operation}_into_{name}({name} *x, const {name} *y)
{{
    {name}_lanes all = {{*x}};
    const {name}_lanes next = {{*y}};
    {EACH_LANE}
    for (int lane = 0; lane < {lanes}; lane += 1)
        {_update(operation, dtype, "all.lane[lane]", "next.lane[lane]")}
    *x = all.all;
}}"""


def _shuffled(operation: str, dtype: DType, lanes: int) -> str:
    """The function that combines a vector's lanes, as whole vectors: gcc makes scalars of their parts."""

    def fold(half: int) -> str:
        places = ", ".join(str(lane ^ half) for lane in range(lanes))
        return f"""    {{
        {name}_lanes next;
        {SHUFFLE}(next.all, all.all, all.all, {_places(dtype).name}x{lanes}, {places})
        {EACH_LANE}
        for (int lane = 0; lane < {lanes}; lane += 1)
            {_update(operation, dtype, "all.lane[lane]", "next.lane[lane]")}
    }}
"""

    name = f"{dtype.name}x{lanes}"
    return _of_lanes(operation, dtype, lanes, fold)


def _halved(operation: str, dtype: DType, lanes: int) -> str:
    """The same for vectors longer than a register, and in OpenCL C."""

    def fold(half: int) -> str:
        line = _update(operation, dtype, "all.lane[lane]", f"all.lane[lane + {half}]")
        return f"    for (int lane = 0; lane < {half}; lane += 1)\n        {line}\n"

    return _of_lanes(operation, dtype, lanes, fold)


def _of_lanes(operation: str, dtype: DType, lanes: int, fold: Callable[[int], str]) -> str:
    """The function that folds a vector's lanes in two halves until one lane is left."""
    name = f"{dtype.name}x{lanes}"
    halves = "".join(fold(lanes >> shift) for shift in range(1, lanes.bit_length()))
    return f"""{INLINE} {dtype.c_name} {operation}_lanes_{name}(const {name} *x)
{{
    {name}_lanes all = {{x[0]}};
{halves}    return all.lane[0];
}}"""


def _places(dtype: DType) -> DType:
    """Integers of a type's size, which number lanes."""
    return DTYPES[f"i{8 * dtype.size}"]


def _scan(operation: str, dtype: DType, lanes: int) -> str:
    """The function after which each lane has combined all lanes up to it."""
    name = f"{dtype.name}x{lanes}"
    return f"""{INLINE} void {operation}_scan_{name}({name} *x)
{{
    const {name} none = {_every(_neutral(operation, dtype), lanes)};
    {name} before = none;
{"".join(_scan_step(operation, dtype, lanes, 1 << step) for step in range(lanes.bit_length() - 1))}}}"""


def _scan_step(operation: str, dtype: DType, lanes: int, by: int) -> str:
    name = f"{dtype.name}x{lanes}"
    later = (
        "all.lane[lane]"
        if operation in ("sum", "product")
        else f"{operation}_{dtype.name}(next.lane[lane], all.lane[lane])"
    )
    combine = (
        f"all.lane[lane] = {later};"
        if operation in ("min", "max")
        else _update(operation, dtype, later, "next.lane[lane]")
    )
    return f"""    {_moved("before", "*x", dtype, lanes, by)}
    {{
        {name}_lanes all = {{*x}}, next = {{before}};
        {EACH_LANE}
        for (int lane = 0; lane < {lanes}; lane += 1)
            {combine}
        *x = all.all;
    }}
"""


def _shift(operation: str, dtype: DType, lanes: int) -> str:
    """The function that gives each lane what the lane before has, and the first one the neutral element."""
    name = f"{dtype.name}x{lanes}"
    return f"""{INLINE} void {operation}_shift_{name}({name} *x)
{{
    const {name} none = {_every(_neutral(operation, dtype), lanes)};
    {_moved("*x", "*x", dtype, lanes, 1)}
}}"""


def _behind(operation: str, dtype: DType, lanes: int) -> str:
    """The function that makes a vector of those that begin some elements further on, and a vector before that."""
    name, by = f"{dtype.name}x{lanes}", int(operation.removeprefix("by"))
    places = ", ".join(str(lane + lanes - by) for lane in range(lanes))
    return f"""{INLINE} void {operation}_behind_{name}({name} *x, const {name} *last, const {name} *next)
{{
    {SHUFFLE}(*x, *last, *next, {_places(dtype).name}x{lanes}, {places})
}}"""


def _part(operation: str, dtype: DType, lanes: int) -> str:
    """The function that loads elements into some lanes, and 0 into the others, on AVX-512: neighbours, or every second.

    Where masked loads come out of loops over lanes, gcc 12 keeps the other lanes in memory before it chooses zeros.
    """
    name, bits = f"{dtype.name}x{lanes}", 8 * dtype.size
    load = f"({name})_mm512_maskz_loadu_{ {f32: 'ps', f64: 'pd'}.get(dtype, f'epi{bits}') }((__mmask{lanes})"
    head = f"{INLINE} void {operation}_{PART}_{name}({name} *x, const {dtype.c_name} *from, int first, int past)"
    if operation != "second":
        return f"{head}\n{{\n    *x = {load}(((1u << past) - 1u) & ~((1u << first) - 1u)), from);\n}}"
    mask = "(((uint64_t)1 << 2 * past) - 1u) >> 1 & ~(((uint64_t)1 << 2 * first) - 1u)"
    places = ", ".join(str(2 * lane) for lane in range(lanes))
    return f"""{head}
{{
    const uint64_t mask = {mask};
    const {name} low = {load}mask, from);
    const {name} high = {load}(mask >> {lanes}), from + {lanes});
    {SHUFFLE}(*x, low, high, {_places(dtype).name}x{lanes}, {places})
}}"""


def _moved(to: str, x: str, dtype: DType, lanes: int, by: int) -> str:
    """A vector's lanes moved up by some, with those of `none` below."""
    places = ", ".join(str(lane if lane < by else lanes + lane - by) for lane in range(lanes))
    return f"{SHUFFLE}({to}, none, {x}, {_places(dtype).name}x{lanes}, {places})"


def _every(value: str, lanes: int) -> str:
    return f"{{{', '.join([value] * lanes)}}}"


def _neutral(operation: str, dtype: DType) -> str:
    return neutral({"sum": "+", "product": "*"}.get(operation, operation), dtype)


def _update(operation: str, dtype: DType, target: str, value: str) -> str:
    return update({"sum": "+", "product": "*"}.get(operation, operation), dtype, target, value)


def _whole(operation: str, dtype: DType, lanes: int) -> str:
    """The function that loads or stores a vector, which begins at any element."""
    name = f"{dtype.name}x{lanes}"
    size = lanes * dtype.size
    kind = f"typedef {dtype.c_name} unaligned __attribute__((vector_size({size}), aligned({dtype.size}), may_alias));"
    loads = operation == "load"
    parameters = f"{name} *x, const {dtype.c_name} *from" if loads else f"{dtype.c_name} *to, const {name} *x"
    copy = "*x = *(const unaligned *)from;" if loads else "*(unaligned *)to = *x;"
    return f"{INLINE} void {operation}_{WHOLE}_{name}({parameters})\n{{\n    {kind}\n    {copy}\n}}"


WIDENED = "widened"
"""The word in the names of functions that load elements of a smaller type: `u8_widened_f32x8`."""
BUILTINS = "#if defined(__AVX2__) && defined(__GNUC__) && !defined(__clang__)"
"""Where gcc has instructions that it doesn't find by itself, as clang does."""
WORDS = {4: ("int", "{bits, 0, 0, 0}"), 8: ("long long", "{bits, 0}")}
"""The integers of a part of 16 bytes, and the vector of them with one first."""


def _widened(operation: str, dtype: DType, lanes: int) -> str:
    """The function that loads elements of a smaller type, and converts them.

    They are widened by two at a time: to widen by four, compilers take lanes apart.
    """
    name, source = f"{dtype.name}x{lanes}", DTYPES[operation]
    steps = [one for one in (i16, i32) if not source.is_float and source.size < one.size <= dtype.size]
    value, lines = "few", [_typedef(source.c_name, lanes * source.size, "part")]
    for one in steps:
        lines.append(_typedef(one.c_name, lanes * one.size, f"{one.name}_part"))
        value = f"__builtin_convertvector({value}, {one.name}_part)"
    lines += ["part few;", "__builtin_memcpy(&few, from, sizeof few);"]
    lines.append(f"*x = __builtin_convertvector({value}, {name});")
    if lanes * dtype.size == BUILTIN_BYTES:
        lines = [BUILTINS, *_by_builtins(source, dtype, lanes), "#else", *lines, "#endif"]
    text = "\n".join(line if line.startswith("#") else f"    {line}" for line in lines)
    return f"{INLINE} void {operation}_{WIDENED}_{name}({name} *x, const {source.c_name} *from)\n{{\n{text}\n}}"


BUILTIN_BYTES = 32
"""The bytes of the vectors that the instructions make."""


def _by_builtins(source: DType, dtype: DType, lanes: int) -> list[str]:
    """The same by gcc's names of AVX2's instructions."""
    size, kind = lanes * source.size, {1: "char", 2: "short"}.get(source.size, source.c_name)
    lines, value = [_typedef(kind, 16, "part")], "few"
    if size in WORDS:
        word, first = WORDS[size]
        lines += [_typedef(word, 16, "words"), f"{word} bits;", "__builtin_memcpy(&bits, from, sizeof bits);"]
        value = f"(part)(words){first}"
    else:
        lines += ["part few;", "__builtin_memcpy(&few, from, sizeof few);"]
    if source.size < i32.size:
        extend = f"pmov{'z' if source.name.startswith('u') else 's'}x{'b' if source.size == 1 else 'w'}d"
        value = f"__builtin_ia32_{extend}{lanes * i32.size * 8}({value})"
    if dtype == f64:
        value = f"__builtin_ia32_cvt{'ps' if source.is_float else 'dq'}2pd256({value})"
    return [*lines, f"*x = __builtin_convertvector({value}, {dtype.name}x{lanes});"]


def _typedef(kind: str, bytes: int, name: str) -> str:
    return f"typedef {kind} {name} __attribute__((vector_size({bytes})));"


MAKERS: Mapping[str, Callable[[str, DType, int], str]] = {
    "into": _into,
    "scan": _scan,
    "shift": _shift,
    "behind": _behind,
    PART: _part,
    WIDENED: _widened,
    WHOLE: _whole,
    vector_functions.OF_VECTOR: vector_functions.text,
}
"""The makers of functions by the word behind their operation; those of `lanes` depend on the register."""
