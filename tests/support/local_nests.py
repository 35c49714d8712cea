"""Random nests with locals: scalars in the innermost loops, sums, rows, and arrays that live for some iterations.

Some write a row of an argument anew in each iteration, or parts of it, of which schedules may make a local.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st
from random_nests import steps

from poly import ScheduleError, f64, sizes
from poly.autoschedule.rules.substitution import without
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest
from poly.ir.tree import bands, statements
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Distribute, Fuse, Parallel, Privatize, ReorderStorage, Shift, Split, Step, Vectorize

N = sizes("N")
HEAD = "def nest(X: f64[N + 9, N + 9], Y: f64[N + 9, N + 9], z: f64):"


@dataclass(frozen=True)
class Local:
    """Lines with locals below the loops over i and j, or over i alone; `{}` is an element to start from."""

    lines: tuple[str, ...]
    loops: int


PARTS = (
    Local(("s = 2.0 * {}", "t = s + X[i, j + 1]", "Y[i, j] = s * t"), 2),
    Local(("s = {}", "Y[i, j] += s", "s = s + z", "Y[i, j + 1] += 0.5 * s"), 2),
    Local(("s = {}", "for k in range(3):", "    s += X[i + k, j]", "Y[i, j] = s"), 2),
    Local(("w: f64[3]", "for k in range(3):", "    w[k] = {} + X[i + k, j]", "Y[i, j] = w[0] + w[1] * w[2]"), 2),
    Local(("if j < 2:", "    s = {}", "    Y[i, j] = s + z", "Y[i, j + 2] += 1.0"), 2),
    Local(("m = {}", "for j in range(N):", "    m = max(m, X[i, j])", "for j in range(N):", "    Y[i, j] -= m"), 1),
    Local(("t = {}", "for j in range(N):", "    Y[i, j] += X[i, j] * t", "    t = X[i, j + 1] + z"), 1),
    Local(("u = z", "t = {}", "for j in range(N):", "    Y[i, j] = t - u", "    u = t", "    t = 2.0 * X[i, j]"), 1),
    Local(("t = {}", "for j in range(N):", "    Y[i, j + 2] = t * z", "    t = Y[i, j] - z"), 1),
    Local(("t = {}", "for j in range(N):", "    Y[i, 4] = X[i, j]", "    Y[i, j] += t", "    t = 0.5 * Y[i, 4]"), 1),
    *(
        Local(
            (
                f"for j in range({written}):",
                "    Y[2, j] = {} + X[i, j]",
                "    Y[2, j] += 0.5 * X[i + 1, j]",
                f"for j in range({read}):",
                f"    {target} = Y[2, {read} - 1 - j] + z",
            ),
            1,
        )
        for written, read, target in (
            ("N", "N", "X[i, j]"),
            ("i + 1", "i + 1", "X[i, j]"),
            ("N - i", "N - i", "Y[i + 4, j]"),
            ("i + 1", "N", "X[i, j]"),
        )
    ),
    Local(
        (
            "r: f64[N + 2]",
            "for j in range(N + 2):",
            "    r[j] = {} + X[i, j]",
            "for j in range(N):",
            "    Y[i, j] = r[j] + r[j + 2]",
        ),
        1,
    ),
    Local(
        (
            "p: f64[N, 2]",
            "for j in range(N):",
            "    p[j, 0] = {} + X[i, j]",
            "    p[j, 1] = X[i + 1, j]",
            "for j in range(N):",
            "    Y[i, j] += p[j, 0] * p[j, 1]",
        ),
        1,
    ),
)
BANDS = (
    ("f[i] = X[i, 0]", "Y[i, 0] = f[i] + f[i + {}]", ("N + 2",)),
    ("h[i, 0] = X[i, 0]", "Y[i, 0] = h[i, 0] * h[i + {}, 0]", ("N + 2", "1")),
)
"""A local that is written in one loop and read in the next, `{}` elements apart: some iterations if they are fused."""
ROWS = (
    "for j in range(N + 1):",
    "    g[i, j] = X[i, j] + z",
    "for j in range(N):",
    "    Y[i, j] = g[i, j] + g[i + {}, j + 1]",
)


@st.composite
def local_nests(draw: st.DrawFn) -> Nest:
    """A nest of one or two parts, in one loop over i or in one each; its size N is open."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        lines += draw(st.one_of(_within(), _apart(), _rows()))
    if draw(st.booleans()):
        lines = ["for q in range(2):", *("    " + line for line in lines)]
    text = "\n".join([HEAD, *("    " + line for line in lines)])
    return parse_text(Source(text, "random", 1), {"N": N, "f64": f64})


@st.composite
def _within(draw: st.DrawFn) -> list[str]:
    part = draw(st.sampled_from(PARTS))
    start = draw(st.sampled_from(["z", "X[i, 3]", "Y[i, 2]"]))
    body = [line.format(start) for line in part.lines]
    low = draw(st.sampled_from(["0", "2"]))
    if part.loops == 1:
        return [f"for i in range({low}, N):", *("    " + line for line in body)]
    inner = draw(st.sampled_from(["N", "i + 1", "3"]))
    return [f"for i in range({low}, N):", f"    for j in range({inner}):", *("        " + line for line in body)]


@st.composite
def _apart(draw: st.DrawFn) -> list[str]:
    write, read, shape = draw(st.sampled_from(BANDS))
    ahead = draw(st.sampled_from([0, 0, 1, 2]))
    first = ["for i in range(N + 2):", f"    {write}"]
    return [f"{write[0]}: f64[{', '.join(shape)}]", *first, "for i in range(N):", f"    {read.format(ahead)}"]


@st.composite
def _rows(draw: st.DrawFn) -> list[str]:
    ahead = draw(st.sampled_from([0, 0, 1, 2]))
    write, read = ROWS[:2], [line.format(ahead) for line in ROWS[2:]]
    lines = ["g: f64[N + 2, N + 1]"]
    for extent, part in (("N + 2", write), ("N", read)):
        lines += [f"for i in range({extent}):", *("    " + line for line in part)]
    return lines


@st.composite
def local_schedules(draw: st.DrawFn) -> Schedule:
    """A schedule of such a nest: loops that follow each other fused where a shift allows it, tiles, random steps."""
    made = schedule(draw(local_nests()))
    for name in draw(st.sampled_from([(), (), ("X",), ("Y",), ("X", "Y")])):
        made = tried(made, ReorderStorage(name, (1, 0)))
    if draw(st.booleans()):
        loops = draw(st.sampled_from([("i",), ("q", "i"), ("q",), ("i", "j"), ("i_2",)]))
        made = tried(made, Privatize(draw(st.sampled_from([array.name for array in made.nest.arrays])), loops))
    first = {band.name: statements(band)[0] for band in bands(made.tree) if band.name in ("i", "i_2", "i_3", "i_4")}
    for (loop, statement), (after, other) in pairwise(first.items()):
        by = draw(st.integers(0, 3))
        shifted = tried(made, Shift(after, by)) if by else made
        fused = tried(shifted, Fuse(statement, other, loop)) if draw(st.integers(0, 3)) else made
        made = made if fused is shifted else fused
    if draw(st.booleans()):
        loop = draw(st.sampled_from(["i", "j", *(band.name for band in bands(made.tree))]))
        made = tried(tried(made, Split(((loop, draw(st.integers(2, 3))),))), Distribute(loop))
    for _ in range(draw(st.integers(0, 3))):
        made = tried(made, draw(steps(made.tree)))
    for array in made.nest.arrays:
        if array.kind == "local" and draw(st.booleans()):
            made = without(made, array.name) or made
    for kind in draw(st.lists(st.sampled_from([Parallel, Vectorize]), max_size=2)):
        made = tried(made, kind(draw(st.sampled_from([band.name for band in bands(made.tree)]))))
    return made


def tried(made: Schedule, step: Step) -> Schedule:
    """The schedule with a step, or without it if that is refused."""
    try:
        return made.apply([step])
    except ScheduleError:
        return made
