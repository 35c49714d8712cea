"""Whatever nest it is given, the compiled kernel does what the loops as written do, and touches nothing else."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_programs import ONES, STRIDES, Product, bodies, check_contraction, check_nest, products

import poly
from poly import f32, f64


@settings(max_examples=16)
@example(ONES, f32, True)
@given(products(), st.sampled_from([f32, f64]), st.booleans())
def test_any_contraction(product: Product, dtype: poly.DType, known: bool) -> None:
    check_contraction(product, dtype, known, poly.compile)


@settings(max_examples=20)
@example(STRIDES, 5, 0, False)
@given(bodies(), st.integers(0, 9), st.sampled_from([0, 1, 2, 5, 9, 17, 21]), st.booleans())
def test_any_nest(lines: list[str], m: int, n: int, known: bool) -> None:
    check_nest(lines, m, n, known, poly.compile)
