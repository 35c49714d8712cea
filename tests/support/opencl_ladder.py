"""Check the CPU microkernels in OpenCL C against float64, with every operand next to an unreadable page.

`python opencl_ladder.py DEVICE ISA TYPE [CHECK …]` prints the number of calls checked; a read or write outside an
operand kills it. Buffers are NaN outside operands, and must stay so outside the result. Operands end at the page after
the buffer in odd checks, and start at the page before it in even ones. The device must be a CPU that works on the
host's arrays in place.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyopencl as cl

from codegen.opencl.devices import find
from codegen.opencl.dialect import TYPES
from microkernels.catalogue import gemm, gemv_source, pack_source, scatter_source
from microkernels.ctext import GLOBAL, KEYWORDS, Space, Spaces, suffix
from microkernels.dtypes import DTYPES, DType
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from microkernels.opencl_isa import OPENCL_ISAS
from microkernels.prune import pruned

TILES = {
    "opencl512": ((6, 4), (28, 1)),
    "opencl256": ((6, 2), (12, 1)),
    "opencl128": ((4, 3), (1, 1)),
}
PANELS: dict[str, tuple[tuple[int, Space], ...]] = {
    "opencl512": ((6, "local"), (14, "global"), (48, "global")),
    "opencl256": ((3, "local"), (24, "global")),
    "opencl128": ((1, "global"), (6, "local")),
}
"""Widths of panels, and their address spaces."""
SPACES: tuple[Spaces, ...] = (
    ("local", "global", "global"),
    ("local", "local", "global"),
    ("global", "global", "private"),
    ("global", "local", "private"),
)
"""The address spaces of operands other than `__global` memory."""
PLAIN = "#undef __AVX512F__\n#undef __AVX2__\n#undef __clang__\n"
"""Text that hides the compiler's masks and builtins."""
PRELUDE = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" + "".join(
    f"typedef {known} {name};\n" for name, known in TYPES.items()
)
PAGE, ROOM = mmap.PAGESIZE, 1 << 20
ROWS, COLUMNS = 32, 64
"""The number of row offsets in the table of a call's arguments, and the position of the other arguments."""


class Fence:
    """A buffer in the host's memory between two unreadable pages."""

    def __init__(self, context: cl.Context, dtype: DType) -> None:
        self._memory = mmap.mmap(-1, ROOM + 2 * PAGE)
        first = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for page in (first, first + PAGE + ROOM):
            if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(page), PAGE, 0):
                raise OSError(ctypes.get_errno(), "a page cannot be protected")
        self.data = np.frombuffer(self._memory, dtype.name.replace("f", "float"), ROOM // dtype.size, PAGE)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        self.buffer = cl.Buffer(context, flags, hostbuf=self.data)
        self.start = 0

    def fresh(self, count: int, at_end: bool) -> np.ndarray:
        """`count` elements of NaN that end, or start, at an unreadable page."""
        self.start = len(self.data) - count if at_end else 0
        part = self.data[self.start : self.start + count]
        part[:] = np.nan
        return part


@dataclass(frozen=True)
class Built:
    """A kernel that is ready, and whether it uses `__local` memory."""

    kernel: Any
    local: bool


class Ladder:
    """A device with three fenced buffers, and the calls checked so far."""

    def __init__(self, target: str, isa: ISA, dtype: DType) -> None:
        self.isa, self.dtype = isa, dtype
        self.context = cl.Context([find(target).handle])
        self.queue = cl.CommandQueue(self.context)
        self.a, self.b, self.c = (Fence(self.context, dtype) for _ in range(3))
        self.random = np.random.default_rng(1)
        self.checks = 0
        self.first = ""
        self.epsilon = float(np.finfo(self.a.data.dtype).eps)

    def build(self, text: str) -> Built:
        """The text's kernel `check`."""
        source = f"{self.first}{PRELUDE}{pruned(text, ['check'])}"
        program = cl.Program(self.context, source).build(options=["-cl-std=CL1.2"])
        return Built(cl.Kernel(program, "check"), "room[" in text)

    def run(self, built: Built, table: Sequence[int], alpha: float = 1, room: int = 0) -> None:
        """Call it on the three buffers, a table of integers and this many elements of `__local` memory."""
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        numbers = cl.Buffer(self.context, flags, hostbuf=np.array(table, "int64"))
        local = cl.LocalMemory((room if built.local and room else 1) * self.dtype.size)
        scale = self.a.data.dtype.type(alpha)
        buffers = (self.a.buffer, self.b.buffer, self.c.buffer)
        built.kernel(self.queue, (1,), (1,), *buffers, numbers, local, scale)
        self.queue.finish()
        self.checks += 1

    def numbers(self, *shape: int) -> np.ndarray:
        return self.random.uniform(-1, 1, shape).astype(self.a.data.dtype)

    def compare(self, got: np.ndarray, want: np.ndarray, bound: np.ndarray | float, what: str) -> None:
        """Raises AssertionError if an element differs more from the expected one than its bound."""
        wrong = ~(np.abs(got.astype("float64") - want) <= bound)
        assert not wrong.any(), f"{what}: at {np.argwhere(wrong)[:5].tolist()} got {got[wrong][:5]}"

    def head(self) -> str:
        c_type = self.dtype.c_name
        pointers = ", ".join(f"__global {c_type} *{name}" for name in "ABC")
        return f"__kernel void check({pointers}, __global const int64_t *at, __local {c_type} *room, {c_type} alpha)"


def gemm_text(ladder: Ladder, kernel: OuterProduct, source: str, spaces: Spaces) -> str:
    """A kernel that copies operands to their address spaces, and calls the microkernel with arguments from a table."""
    c_type, rows = kernel.dtype.c_name, kernel.rows
    bases: dict[Space, tuple[str, str, str]] = {
        "global": ("A", "B", "C"),
        "local": ("room", "room + at[12]", ""),
        "private": ("", "", "tile"),
    }
    a, b, c = (bases[space][operand] for operand, space in enumerate(spaces))
    a_word, _, c_word = (KEYWORDS[space] for space in spaces)
    copies = f"""
    for (int64_t i = 0; i < at[12]; i++) room[i] = A[i];
    for (int64_t i = 0; i < at[13]; i++) room[at[12] + i] = B[i];
    {c_type} tile[{rows * (kernel.columns + 2)}];
    for (int64_t i = 0; i < at[14]; i++) tile[i] = C[i];"""
    back = "for (int64_t i = 0; i < at[14]; i++) C[i] = tile[i];"
    return f"""{source}
{ladder.head()}
{{
    A += at[15]; B += at[16]; C += at[17];{copies if spaces != GLOBAL else ""}
    {a_word}const {c_type} *row_a[{rows}];
    {c_word}{c_type} *row_c[{rows}];
    for (int64_t i = 0; i < at[0]; i++) {{
        row_a[i] = {a} + at[{ROWS} + i];
        row_c[i] = {c} + at[{COLUMNS} + i];
    }}
    {kernel.function(spaces)}(at[0], at[1], row_a, {b}, row_c, at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9],
        at[10], alpha, (int)at[11]);
    {back if spaces[2] == "private" else ""}
}}
"""


def check_gemm(
    ladder: Ladder, run: Built, kernel: OuterProduct, m: int, n: int, depth: int, kind: int, add: int
) -> None:
    """One call. Kind 0: packed operands; 1: strided rows; 2: rows in any order, three levels of reduction."""
    levels = (depth, 2, 3) if kind == 2 else (depth, 1, 1)
    a0, b0 = ((kernel.rows, kernel.columns), (1, n + 3), (2, n + 3))[kind]
    a1, b1 = depth * a0 + 1, depth * b0
    a2, b2 = levels[1] * a1 + 2, levels[1] * b1 + 1
    row, pitch = 1 if kind == 0 else levels[2] * a2 + 1, n + kind
    alpha = 1 if kind == 1 else -0.75
    steps = list(product(*(range(count) for count in reversed(levels))))
    a_steps, b_steps = (
        np.array([k2 * s2 + k1 * s1 + k * s0 for k2, k1, k in steps], "int64")
        for s0, s1, s2 in ((a0, a1, a2), (b0, b1, b2))
    )
    order = np.arange(m)[:: -1 if kind == 2 else 1]
    last, at_end = max(depth - 1, 0), ladder.checks % 2 == 1
    a_count = (m - 1) * row + (levels[2] - 1) * a2 + (levels[1] - 1) * a1 + last * a0 + 1
    b_count = (levels[2] - 1) * b2 + (levels[1] - 1) * b1 + last * b0 + n
    a, b = ladder.a.fresh(a_count, at_end), ladder.b.fresh(b_count, at_end)
    c = ladder.c.fresh((m - 1) * pitch + n, at_end)
    a_at, b_at = (order * row)[:, None] + a_steps[None, :], b_steps[:, None] + np.arange(n)[None, :]
    c_at = (order * pitch)[:, None] + np.arange(n)[None, :]
    a[a_at], b[b_at] = ladder.numbers(*a_at.shape), ladder.numbers(*b_at.shape)
    old = ladder.numbers(m, n) if add else np.zeros((m, n))
    if add:
        c[c_at] = old
    left, right = a[a_at].astype("float64"), b[b_at].astype("float64")
    counts, starts = (a_count, b_count, len(c)), (ladder.a.start, ladder.b.start, ladder.c.start)
    table = [m, n, depth, a0, b0, levels[1], a1, b1, levels[2], a2, b2, add, *counts, *starts]
    table += [0] * (ROWS - len(table)) + list(order * row) + [0] * (COLUMNS - ROWS - m) + list(order * pitch)
    ladder.run(run, table, alpha, a_count + b_count)
    bound = (len(steps) + 3) * ladder.epsilon * (np.abs(left) @ np.abs(right) + np.abs(old))
    what = f"{kernel.name} m={m} n={n} K={depth} kind={kind} add={add}"
    ladder.compare(c[c_at], alpha * (left @ right) + old, bound, what)
    c[c_at] = np.nan
    assert np.isnan(c).all(), f"{what}: wrote outside of its rows and columns"


def climb_gemm(ladder: Ladder) -> None:
    """Every m and n of each tile; few at every depth, the others at some."""
    for rows, vectors in TILES[ladder.isa.name]:
        kernel = gemm(ladder.isa, ladder.dtype, rows, vectors)
        run = ladder.build(gemm_text(ladder, kernel, kernel.source(), GLOBAL))
        for m, n in product(range(1, rows + 1), range(1, kernel.columns + 1)):
            kind, add, some = (m + n) % 3, (m + n // 3) % 2, (0, 1, 2, 3, 7, 16, 33)
            check_gemm(ladder, run, kernel, m, n, some[(m + 2 * n) % len(some)], kind, add)
            every = m * n < 3 or (m == rows and n % 8 == 7)
            for depth, kind, add in product(some, range(3), range(2)) if every else ():
                check_gemm(ladder, run, kernel, m, n, depth, kind, add)


def climb_spaces(ladder: Ladder) -> None:
    """Operands in `__local` and private memory, with known sizes and unknown ones."""
    rows, vectors = TILES[ladder.isa.name][0]
    kernel = gemm(ladder.isa, ladder.dtype, rows, vectors)
    ms, ns = (rows, 2), (kernel.columns, kernel.columns - 1, 1)
    for spaces in SPACES[-1:] if ladder.first else (GLOBAL, *SPACES):
        run = ladder.build(gemm_text(ladder, kernel, kernel.source(ms, ns, spaces), spaces))
        for m, n, depth, kind, add in product(ms, ns, (0, 1, 7, 16), range(3), range(2)):
            check_gemm(ladder, run, kernel, m, n, depth, kind, add)


def pack_text(ladder: Ladder, width: int, to: Space) -> str:
    """A kernel that packs, with arguments from a table, into a panel in the address space `to`, and copies it out."""
    ends = suffix(ladder.isa, ladder.dtype, to)
    steps = ", ".join(f"at[{place}]" for place in range(3, 12))
    panel = "room" if to == "local" else "C"
    copy = "for (int64_t i = 0; i < at[14]; i++) {} = {};"
    before, after = (copy.format("room[i]", "C[i]"), copy.format("C[i]", "room[i]")) if to == "local" else ("", "")
    return f"""{pack_source(ladder.isa, ladder.dtype, to)}
{ladder.head()}
{{
    A += at[15]; C += at[17];
    int64_t offsets[{width}];
    for (int64_t l = 0; l < at[0]; l++) offsets[l] = at[{ROWS} + l];
    {before}
    if (at[12] == 0)
        pack_{ends}({panel}, {width}, at[0], A, at[2], {steps});
    else if (at[12] == 1)
        pack_gather_{ends}({panel}, {width}, at[0], A, offsets, {steps});
    else
        pack_turned_{ends}({panel}, at[1], at[13], {width}, at[0], A, at[2], at[12] == 2 ? 0 : offsets, {steps});
    {after}
}}
"""


def check_pack(ladder: Ladder, run: Built, width: int, lanes: int, depth: int, kind: int, turned: bool) -> None:
    """One call. Kind 0: lanes contiguous; 1: k contiguous; 2: neither; 3: runs of lanes; 4: lanes anywhere, k
    contiguous; 5: lanes anywhere; 6: contiguous from panel to panel; 7: the same, lanes anywhere. Where turned, the
    panel's outermost step is the source's innermost.
    """
    outer, panels = (2, 1 + depth % 2), depth if kind > 5 else 1
    s0 = (lanes + 3, 1, 3, lanes + 3, 1, 3, panels, panels)[kind]
    s1 = depth * s0 + 1
    s2 = outer[0] * s1 + 1
    apart = 1 if kind == 0 else outer[1] * s2 + 1
    every = np.arange(lanes)
    anywhere = every[::-1] * apart + every % 3
    offsets = every + every // 5 if kind == 3 else every * apart if kind in (0, 1, 2, 6) else anywhere
    p0, p1, p2 = (outer[0] * outer[1], outer[1], 1) if turned else (1, depth, outer[0] * depth)
    steps = list(product(range(outer[1]), range(outer[0]), range(depth)))
    s_at, p_at = (
        np.array([k2 * t2 + k1 * t1 + k * t0 for k2, k1, k in steps], "int64")
        for t0, t1, t2 in ((s0, s1, s2), (p0, p1, p2))
    )
    size, at_end = len(steps) * width, ladder.checks % 2 == 1
    reach = int(offsets.max()) + (outer[1] - 1) * s2 + (outer[0] - 1) * s1 + max(depth - 1, 0) * s0 + max(panels, 1)
    a, c = ladder.a.fresh(reach, at_end), ladder.c.fresh(size * panels, at_end)
    a[:] = ladder.numbers(reach)
    routine = 0 if kind < 3 else 1 if kind < 6 else kind - 4
    table = [lanes, size, apart, depth, s0, p0 * width, outer[0], s1, p1 * width, outer[1], s2, p2 * width]
    table += [routine, panels, len(c), ladder.a.start, 0, ladder.c.start]
    ladder.run(run, table + [0] * (ROWS - len(table)) + list(offsets), room=len(c))
    want = np.zeros((panels, len(steps), width))
    for panel in range(panels):
        want[panel][p_at, :lanes] = a[s_at[:, None] + offsets[None, :] + panel]
    what = f"pack width={width} lanes={lanes} K={depth} kind={kind} turned={turned}"
    ladder.compare(c.reshape(want.shape), want, 0, what)


def climb_pack(ladder: Ladder) -> None:
    """Every number of lanes of each panel; of the first one only if the compiler is plain, to save time."""
    panels = PANELS[ladder.isa.name]
    for width, to in panels[:1] if ladder.first else panels:
        run = ladder.build(pack_text(ladder, width, to))
        for lanes, kind, turned in product(range(1, width + 1), range(8), (False, True)):
            for depth in (0, 1, 8, 19) if lanes in (1, width) else (3 if lanes % 2 else 17,):
                check_pack(ladder, run, width, lanes, depth, kind, turned)


def gemv_text(ladder: Ladder) -> str:
    ends = suffix(ladder.isa, ladder.dtype)
    return f"""{gemv_source(ladder.isa, ladder.dtype)}
{ladder.head()}
{{
    A += at[15]; B += at[16]; C += at[17];
    if (at[0])
        gemvt_{ends}(at[1], at[2], A, at[3], B, C, at[5], alpha, (int)at[6]);
    else
        gemvn_{ends}(at[1], at[2], B, at[4], A, at[3], C, alpha, (int)at[6]);
}}
"""


def check_gemv(ladder: Ladder, run: Built, t_form: int, outer: int, inner: int, gap: int, add: int) -> None:
    """Both forms on a matrix of `outer` rows of `inner` columns: the n-form sums over rows, the t-form over columns."""
    pitch, count, depth = inner + gap, outer if t_form else inner, inner if t_form else outer
    xs, ys = (1, 1 + gap) if t_form else (1 + gap, 1)
    alpha, at_end = 1.5 if gap else 1, ladder.checks % 2 == 1
    a = ladder.a.fresh((outer - 1) * pitch + inner if outer else 0, at_end)
    b, c = ladder.b.fresh((depth - 1) * xs + 1 if depth else 0, at_end), ladder.c.fresh((count - 1) * ys + 1, at_end)
    a_at = np.arange(outer)[:, None] * pitch + np.arange(inner)[None, :]
    a[a_at], b[::xs] = ladder.numbers(outer, inner), ladder.numbers(len(b[::xs]))
    old = ladder.numbers(count) if add else np.zeros(count)
    if add:
        c[::ys] = old
    table = [t_form, count, depth, pitch, xs, ys, add] + [0] * 8 + [ladder.a.start, ladder.b.start, ladder.c.start]
    ladder.run(run, table, alpha)
    matrix = a[a_at].astype("float64") if t_form else a[a_at].astype("float64").T
    x = b[::xs].astype("float64")
    bound = (depth + 3) * ladder.epsilon * (2 * np.abs(matrix) @ np.abs(x) + np.abs(old))
    what = f"{'gemvt' if t_form else 'gemvn'} {outer}x{inner} gap={gap} add={add}"
    ladder.compare(c[::ys], alpha * (matrix @ x) + old, bound, what)
    c[::ys] = np.nan
    assert np.isnan(c).all(), f"{what}: wrote outside of y"


def climb_gemv(ladder: Ladder) -> None:
    some, run = (0, 1, 2, 3, 8, 9, 16, 17, 33, 67, 100), ladder.build(gemv_text(ladder))
    for t_form, outer, inner, gap, add in product(range(2), some, some, (0, 3), range(2)):
        if outer if t_form else inner:
            check_gemv(ladder, run, t_form, outer, inner, gap, add)


def climb_scatter(ladder: Ladder) -> None:
    """Runs of every length up to three vectors and one."""
    ends, c_type = suffix(ladder.isa, ladder.dtype), ladder.dtype.c_name
    most = 3 * ladder.isa.lanes(ladder.dtype) + 1
    run = ladder.build(f"""{scatter_source(ladder.isa, ladder.dtype)}
{ladder.head()}
{{
    {c_type} tile[{most}];
    for (int64_t j = 0; j < at[0]; j++) tile[j] = A[at[15] + j];
    store_run_{ends}(C + at[17], tile, at[0], (int)at[1]);
}}
""")
    for length, add in product(range(most + 1), range(2)):
        at_end = ladder.checks % 2 == 1
        a, c = ladder.a.fresh(length, at_end), ladder.c.fresh(length, at_end)
        a[:], old = ladder.numbers(length), ladder.numbers(length) if add else np.zeros(length)
        if add:
            c[:] = old
        ladder.run(run, [length, add] + [0] * 13 + [ladder.a.start, 0, ladder.c.start])
        want = a.astype("float64") + old
        ladder.compare(c, want, ladder.epsilon * np.abs(want), f"store_run length={length} add={add}")


def become_plain(ladder: Ladder) -> None:
    """Build all that follows as with a compiler that has nothing beyond OpenCL C."""
    ladder.first = PLAIN


def trespass(ladder: Ladder) -> None:
    """Read one element too many: the fence must kill this program."""
    run = ladder.build(f"{ladder.head()}\n{{\n    C[0] = A[at[0]];\n}}\n")
    ladder.run(run, [len(ladder.a.data)])


CHECKS: dict[str, Callable[[Ladder], None]] = {
    "gemm": climb_gemm,
    "spaces": climb_spaces,
    "pack": climb_pack,
    "gemv": climb_gemv,
    "scatter": climb_scatter,
    "plain": become_plain,
    "trespass": trespass,
}


def main(target: str, isa: str, dtype: str, *names: str) -> None:
    ladder = Ladder(target, OPENCL_ISAS[isa], DTYPES[dtype])
    for name in names:
        CHECKS[name](ladder)
    print(ladder.checks)


if __name__ == "__main__":
    main(*sys.argv[1:])
