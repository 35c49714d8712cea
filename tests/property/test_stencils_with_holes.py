"""Neighbourhoods without some of their points, whose sums of small integers reach the limits of 16 bits."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import poly
from poly import i32

H, W = poly.sizes("H W")
HOLES = ["a != 0 or b != 0", "a == 0 or b == 0", "a != b", "not (a == -1 and b >= 0)"]
"""The conditions under which a neighbour counts, of its row and column from -1 to 1."""
PLACES = {"inside": "X[i + a + 1, j + b + 1]", "wrapped": "X[(i + a + H + 2) % (H + 2), (j + b + W + 2) % (W + 2)]"}


def around(kind: str, hole: str, place: str, factor: int, start: int) -> poly.Function:
    text = f"""def around(X: "{kind}[H + 2, W + 2]", Y: "i32[H, W]"):
        for i in range(H):
            for j in range(W):
                s: i32 = {start}
                for a in range(-1, 2):
                    for b in range(-1, 2):
                        if {hole}:
                            s += {factor} * i32({PLACES[place]})
                        else:
                            s -= i32({PLACES[place]})
                Y[i, j] = s"""
    return poly.parse(text, {"H": H, "W": W, "i32": i32})


@settings(max_examples=2, deadline=None)
@given(
    kind=st.sampled_from(["u8", "i8", "i16", "u16"]),
    hole=st.sampled_from(HOLES),
    place=st.just("inside"),
    factor=st.sampled_from([1, -1, 3, 16]),
    start=st.sampled_from([0, 30488, 30600, -32768]),
    sizes=st.sampled_from([{}, {"H": 6, "W": 35}]),
)
@example(kind="u8", hole=HOLES[0], place="inside", factor=16, start=30600, sizes={})
@example(kind="u8", hole=HOLES[0], place="wrapped", factor=1, start=30488, sizes={"H": 6, "W": 35})
@pytest.mark.filterwarnings("ignore::poly.CostWarning")  # each point that is wrapped is a part of its own
def test_sums_around_a_hole(kind, hole, place, factor, start, sizes):
    kernel = poly.compile(around(kind, hole, place, factor, start), **sizes, threads=1)
    limits, test = np.iinfo({"u8": "u1", "i8": "i1", "i16": "i2", "u16": "u2"}[kind]), compile(hole, "", "eval")
    for h, w in [(sizes["H"], sizes["W"])] if sizes else [(1, 1), (2, 40), (9, 17)]:
        x = np.random.default_rng(h).choice([limits.min, limits.max], (h + 2, w + 2)).astype(limits.dtype)
        y = np.full((h, w), -7, np.int32)
        kernel(x, y)
        first = 1 if place == "inside" else 0
        wanted = np.full((h, w), start, np.int64)
        for a in (-1, 0, 1):
            for b in (-1, 0, 1):
                moved = np.roll(x.astype(np.int64), (-a - first, -b - first), (0, 1))[:h, :w]
                wanted += moved * (factor if eval(test, {"a": a, "b": b}) else -1)
        np.testing.assert_array_equal(y, wanted)
