"""The plain loops of a convolution and its gradients, with the image's bounds as a condition, at fixed sizes.

for n in range(1): for p in range(56): …
    if 0 <= p + r - 1 < 56 and 0 <= q + s - 1 < 56:
        Y[n, p, q, k] += X[n, p + r - 1, q + s - 1, c] * W[r, s, c, k]
"""

from __future__ import annotations

import poly
from benchmarks.problems.convolution import Convolution
from microkernels.dtypes import DType

NAMES = ("X", "W", "Y")
"""The image, the weights and the results; in a nest for a gradient also the gradients of these."""


def nest(problem: Convolution, dtype: DType) -> poly.Nest:
    """The loops in the order of the layout; a gradient is scattered as the results are gathered."""
    return poly.parse(text(problem, dtype))


def text(problem: Convolution, dtype: DType) -> str:
    """The same as text."""
    pixels, taps = "opq"[-problem.axes :], "trs"[-problem.axes :]
    reached = [_reached(problem, at, tap) for at, tap in zip(pixels, taps, strict=True)]
    extents = {"n": problem.n} | dict.fromkeys(taps, problem.r) | dict.fromkeys(pixels, problem.out)
    seen, filters = "c", "k"
    if problem.groups == 1:
        extents |= {"c": problem.c, "k": problem.k}
    else:
        extents["g"] = problem.groups
        seen, filters = (
            _of_group(name, each // problem.groups, extents) for name, each in (("c", problem.c), ("k", problem.k))
        )
    places = [["n", seen, *reached], [filters, "c" if "c" in extents else "0", *taps], ["n", filters, *pixels]]
    shapes = [list(shape) for shape in problem.shapes]
    order = ["n", "g", "k", *pixels, "c", *taps]
    if problem.layout == "NHWC":
        order = ["n", *pixels, "g", "k", *taps, "c"]
        places = [[place[at] for at in problem.turn(which)] for which, place in enumerate(places)]
        shapes = [[shape[at] for at in problem.turn(which)] for which, shape in enumerate(shapes)]
    elements = [f"{NAMES[which]}[{', '.join(places[which])}]" for which in problem.operands]
    types = (f"{NAMES[which]}: '{dtype.name}{shapes[which]}'" for which in problem.operands)
    lines = [f"for {name} in range({extents[name]}):" for name in order if name in extents]
    if problem.beyond:
        lines.append(f"if {' and '.join(f'0 <= {pixel} < {problem.h}' for pixel in reached)}:")
    lines.append(f"{elements[2]} += {elements[0]} * {elements[1]}")
    head = f"def conv{problem.axes}d({', '.join(types)}):"
    return "\n".join([head, *("    " * depth + line for depth, line in enumerate(lines, 1))])


def _of_group(name: str, each: int, extents: dict[str, int]) -> str:
    """The channel among all; the loop over those of a group is added unless it has one."""
    if each == 1:
        return "g"
    extents[name] = each
    return f"{each} * g + {name}"


def _reached(problem: Convolution, at: str, tap: str) -> str:
    """The pixel that a tap of a result reaches."""
    moved = at if problem.stride == 1 else f"{problem.stride} * {at}"
    apart = tap if problem.dilation == 1 else f"{problem.dilation} * {tap}"
    return f"{moved} + {apart} - {problem.beyond}" if problem.beyond else f"{moved} + {apart}"
