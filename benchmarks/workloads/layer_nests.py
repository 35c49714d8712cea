"""The plain loops of a layer and its gradients, with the image's bounds as a condition, at fixed sizes.

for n in range(1): for p in range(56): …
    if 0 <= p + r - 1 < 56 and 0 <= q + s - 1 < 56:
        Y[n, p, q, k] += X[n, p + r - 1, q + s - 1, c] * W[r, s, c, k]
"""

from __future__ import annotations

import poly
from benchmarks.problems.layer import TURNS, Layer
from microkernels.dtypes import DType

NAMES = ("X", "W", "Y")
"""The image, the weights and the results; in a nest for a gradient also the gradients of these."""


def nest(layer: Layer, dtype: DType) -> poly.Nest:
    """The layer's seven loops, in the order of its layout; a gradient is scattered as the results are gathered."""
    return poly.parse(text(layer, dtype))


def text(layer: Layer, dtype: DType) -> str:
    """The same as text."""
    y, x = (_reached(layer, at, tap) for at, tap in (("p", "r"), ("q", "s")))
    places = [["n", "c", y, x], ["k", "c", "r", "s"], ["n", "k", "p", "q"]]
    shapes = [list(shape) for shape in layer.shapes]
    order = "nkpqcrs"
    if layer.layout == "NHWC":
        order = "npqkrsc"
        places = [[place[at] for at in turn] for place, turn in zip(places, TURNS, strict=True)]
        shapes = [[shape[at] for at in turn] for shape, turn in zip(shapes, TURNS, strict=True)]
    elements = [f"{NAMES[which]}[{', '.join(places[which])}]" for which in layer.operands]
    channels, taps = {"n": layer.n, "k": layer.k, "c": layer.c}, {"r": layer.r, "s": layer.r}
    extents = channels | taps | {"p": layer.out, "q": layer.out}
    types = (f"{NAMES[which]}: '{dtype.name}{shapes[which]}'" for which in layer.operands)
    lines = [f"for {name} in range({extents[name]}):" for name in order]
    if layer.pad:
        lines.append(f"if 0 <= {y} < {layer.h} and 0 <= {x} < {layer.h}:")
    lines.append(f"{elements[2]} += {elements[0]} * {elements[1]}")
    head = f"def conv2d({', '.join(types)}):"
    return "\n".join([head, *("    " * depth + line for depth, line in enumerate(lines, 1))])


def _reached(layer: Layer, at: str, tap: str) -> str:
    """The pixel that a tap of a result reaches."""
    moved = at if layer.stride == 1 else f"{layer.stride} * {at}"
    return f"{moved} + {tap} - {layer.pad}" if layer.pad else f"{moved} + {tap}"
