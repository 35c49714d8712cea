"""Neighbourhoods at the borders of images whose sizes are open, against NumPy's padding: the middle has lanes."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from poly import f32, f64

H, W = poly.sizes("H W")
PLACES = {
    "constant": "{i}",
    "edge": "min(max({i}, 0), {n} - 1)",
    "reflect": "min(abs({i}), 2*({n} - 1) - abs({i}))",
    "wrap": "({i}) % {n}",
}
"""The subscript that pads as `np.pad` does, of a place that may be outside of the array."""


def neighbourhood(mode: str, taps: tuple[int, int], dtype: poly.DType) -> poly.Function:
    i, j = (f"{name} + {tap} - {size // 2}" for name, tap, size in zip("ij", "ab", taps, strict=True))
    x = f"X[{PLACES[mode].format(i=i, n='(H + 4)')}, {PLACES[mode].format(i=j, n='(W + 4)')}]"
    inside = f"if 0 <= {i} < H + 4 and 0 <= {j} < W + 4: " if mode == "constant" else ""
    text = f"""def around(X: "{dtype}[H + 4, W + 4]", F: "{dtype}[{taps[0]}, {taps[1]}]", Y: "{dtype}[H + 4, W + 4]"):
        for i in range(H + 4):
            for j in range(W + 4):
                Y[i, j] = 0.0
                for a in range({taps[0]}):
                    for b in range({taps[1]}):
                        {inside}Y[i, j] += {x} * F[a, b]"""
    return poly.parse(text, {"H": H, "W": W})


@settings(max_examples=3, deadline=None)
@given(
    mode=st.sampled_from(list(PLACES)),
    taps=st.sampled_from([(3, 3), (1, 3), (5, 1)]),
    dtype=st.sampled_from([f32, f64]),
    isa=st.sampled_from(["c", "c:avx2", "c:portable"]),
    threads=st.sampled_from([1, 2]),
)
@pytest.mark.filterwarnings("ignore::poly.CostWarning")  # two reflections in one subscript take isl long
def test_borders_of_open_sizes(mode, taps, dtype, isa, threads):
    kernel = poly.compile(neighbourhood(mode, taps, dtype), target=isa, threads=threads)
    random, numpy = np.random.default_rng(0), np.float32 if dtype == f32 else np.float64
    around = tuple((size // 2, size // 2) for size in taps)
    for shape in ((4, 4), (4, 5), (5, 9), (7, 17), (6, 40), (33, 4)):
        x, weights = random.standard_normal(shape).astype(numpy), random.standard_normal(taps).astype(numpy)
        y = np.full(shape, np.nan, numpy)
        kernel(x, weights, y)
        padded = np.pad(x.astype(np.float64), around, mode)
        wanted = sum(
            padded[a : a + shape[0], b : b + shape[1]] * np.float64(weights[a, b])
            for a in range(taps[0])
            for b in range(taps[1])
        )
        np.testing.assert_allclose(y, wanted, rtol=0, atol=64 * np.finfo(numpy).eps * np.abs(wanted).max())


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_vectors_in_the_middle_have_no_conditions(mode):
    source = poly.compile(neighbourhood(mode, (3, 3), f32), target="c:avx2", threads=1).source
    middle = re.search(r"POLY_SIMD\n\s*for \(int64_t j = \w+; j < W \+ 3; j \+= 1\) \{\n((.*;\n)+)\s*\}\n", source)
    assert middle is not None, "a loop over assignments alone"
    assert middle[1].count("* F[") % 9 == 0
