"""The problems of the tables: those whose whole spaces are measured, and those of which random points are.

Whole spaces are those of ten matrix products and the 19 layers of ResNet-50, with the sizes of PolyDL's scripts
(Tavarageri et al., "PolyDL", ACM TACO 18(1), 2021): products as M x N x K, and convolutions of one image, channel-last.
The others are chosen for what a model may be wrong about: large and small products, rows 2 KB apart and 64 bytes more,
few rows, few steps, double precision, a result whose indices come in another order than the operands', and
convolutions in both layouts. All are on one thread, and in f32 where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import poly
from benchmarks.case import Case
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.convolution import Convolution, Layout
from benchmarks.problems.matmul import Matmul
from benchmarks.workloads import conv2d, nests
from microkernels.dtypes import DType, f32, f64
from poly.errors import SearchError

PRODUCTS = (
    (128, 2048, 4096),
    (320, 3072, 4096),
    (1632, 36548, 1024),
    (2048, 4096, 32),
    (1024, 16, 500000),
    (35, 8457, 2560),
    (31999, 1024, 84),
    (84, 1024, 4096),
    (2048, 1, 128),
    (256, 256, 2048),
)
"""Rows, columns, reduction."""

LAYERS: Mapping[str, tuple[int, int, int, int, int, int]] = conv2d.LAYERS
"""Layers by their number in ResNet-50: c, k, h, r, stride, pad."""

SAMPLED_PRODUCTS = (
    (64, 64, 64),
    (512, 512, 512),
    (512, 528, 512),
    (1024, 1024, 1024),
    (49, 512, 2048),
    (7, 333, 1001),
    (2048, 2048, 32),
    (35, 8457, 2560),
)
SAMPLED_DOUBLE = (720, 720, 720)
SAMPLED_LAYERS: tuple[tuple[str, Layout], ...] = (("07", "NHWC"), ("17", "NHWC"), ("03", "NCHW"), ("12", "NCHW"))
SAMPLED_EINSUMS = (
    ContractionProblem("acbd", "abe", "ecd", (("a", 40), ("b", 44), ("c", 48), ("d", 36), ("e", 60))),
    ContractionProblem("abcd", "aebf", "dfce", (("a", 28), ("b", 24), ("c", 30), ("d", 26), ("e", 24), ("f", 28))),
)


def whole() -> dict[str, Case]:
    """The problems whose whole spaces are measured, by name (`gemm 128x2048x4096`, `conv 03`)."""
    return _by_name(*(_product(sizes) for sizes in PRODUCTS), *(_layer(number) for number in sorted(LAYERS)))


def sampled() -> dict[str, Case]:
    """The problems of which random points are measured, by name."""
    return _by_name(
        *(_product(sizes) for sizes in SAMPLED_PRODUCTS),
        _product(SAMPLED_DOUBLE, f64),
        *(_layer(number, layout) for number, layout in SAMPLED_LAYERS),
        *(_einsum(problem) for problem in SAMPLED_EINSUMS),
    )


def chosen(names: Sequence[str], problems: Mapping[str, Case]) -> dict[str, Case]:
    """The problems with one of these names, or of a family that is named (`gemm`, `conv`); all if no name is given.

    Raises SearchError for a name that is neither.
    """
    for name in names:
        if not any(_is(problem, name) for problem in problems):
            families = dict.fromkeys(problem.partition(" ")[0] for problem in problems)
            raise SearchError(f"unknown problem {name!r}: there are {', '.join((*families, *problems))}.")
    return {name: case for name, case in problems.items() if not names or any(_is(name, asked) for asked in names)}


def _is(problem: str, asked: str) -> bool:
    return asked in (problem, problem.partition(" ")[0])


def _by_name(*cases: Case) -> dict[str, Case]:
    return {case.size: case for case in cases}


def _product(sizes: tuple[int, int, int], dtype: DType = f32) -> Case:
    name = f"gemm {'x'.join(map(str, sizes))}" + f" {dtype.name}" * (dtype is not f32)
    nest = partial(nests.make, "gemm_nn", dtype)
    return Case("gemm", name, dtype, Matmul(*sizes), nest, dict(zip("MNK", sizes, strict=True)))


def _layer(number: str, layout: Layout = "NHWC") -> Case:
    problem = Convolution(*LAYERS[number], layout=layout, zeros=True)
    name = f"conv {number}" + f" {layout}" * (layout != "NHWC")
    nest = partial(nests.make, f"conv2d_{layout.lower()}_{problem.stride}", f32)
    return Case("conv2d", name, f32, problem, nest, problem.sizes)


def _einsum(problem: ContractionProblem) -> Case:
    name = f"einsum {problem.first}-{problem.second}-{problem.output}"
    return Case("einsum", name, f32, problem, partial(_contraction, problem))


def _contraction(problem: ContractionProblem) -> Any:
    return poly.einsum(problem.subscripts, dtype=f32, reassociate=True, **dict(problem.extents))
