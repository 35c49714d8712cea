"""Two-operand contractions as in coupled-cluster codes: 3 to 7 indices in awkward orders, 4e8 to 7e8 flop each.

The strings are like those of the tensor contraction benchmark TCCG (Springer and Bientinesi, "Design of a
high-performance GEMM-like tensor-tensor multiplication", 2018): output, first and second operand. The extents are ours,
and are mostly not multiples of a vector's lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import poly
from benchmarks.case import Case
from benchmarks.problems.contraction import ContractionProblem
from microkernels.dtypes import DType

EXTENTS = {
    3: (600, 610, 590),
    4: (128, 120, 136, 124),
    5: (48, 46, 52, 44, 50),
    6: (28, 24, 30, 26, 24, 28),
    7: (18, 16, 15, 17, 16, 14, 20),
}
"""The extents of the indices a, b, c, … by the number of indices: 2e8 to 3e8 points."""

CONTRACTIONS = (
    "ab-ac-cb",
    "ab-ca-bc",
    "ab-acd-dbc",
    "ab-cad-dcb",
    "abc-acd-db",
    "abc-bda-dc",
    "abc-ad-bdc",
    "abc-adc-bd",
    "abc-dca-bd",
    "abcd-dbea-ec",
    "abcd-ea-ebcd",
    "abcd-eb-aecd",
    "abcd-ebad-ce",
    "abc-acde-deb",
    "abcd-aebf-dfce",
    "abcd-aebf-fdec",
    "abcd-aecf-bfde",
    "abcd-aecf-fbed",
    "abcd-aedf-bfce",
    "abcd-aefb-fdce",
    "abcd-eafb-fdec",
    "abcd-eafc-bfde",
    "abcdef-dfgb-geac",
    "abcdef-gdab-efgc",
    "abcdef-degc-gfab",
)
"""Output, first operand, second operand."""

QUICK = {"abc-bda-dc", "abcd-dbea-ec", "abcd-aebf-dfce", "abcd-eafc-bfde", "abcdef-dfgb-geac"}


def cases(dtype: DType) -> Iterator[Case]:
    """Every contraction of the list."""
    for text in CONTRACTIONS:
        problem = contraction(text)
        quick = dtype.name == "f32" and text in QUICK
        yield Case("einsum", text, dtype, problem, partial(_nest, problem, dtype), quick=quick)


def contraction(text: str) -> ContractionProblem:
    """`abcd-aebf-dfce` with the extents for its number of indices."""
    output, first, second = text.split("-")
    indices = sorted(set(first + second))
    return ContractionProblem(output, first, second, tuple(zip(indices, EXTENTS[len(indices)], strict=True)))


def _nest(problem: ContractionProblem, dtype: DType) -> Any:
    return poly.einsum(problem.subscripts, dtype=dtype, reassociate=True, **dict(problem.extents))
