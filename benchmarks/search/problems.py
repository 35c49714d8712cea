"""The problems of the small spaces: ten matrix products and the 19 layers of ResNet-50, as in PolyDL's evaluation.

The sizes are those of PolyDL's scripts (Tavarageri et al., "PolyDL", ACM TACO 18(1), 2021): products as M x N x K, and
convolutions of one image, channel-last. All are in f32 on one thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from benchmarks.case import Case
from benchmarks.problems.convolution import Convolution
from benchmarks.problems.matmul import Matmul
from benchmarks.workloads import conv2d, nests
from microkernels.dtypes import DTYPES
from poly.errors import SearchError

DTYPE = DTYPES["f32"]
LAYOUT = "NHWC"

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

LAYERS: Mapping[str, tuple[int, int, int, int, int, int]] = {
    **conv2d.LAYERS,
    "02": (64, 64, 56, 1, 1, 0),
    "04": (256, 64, 56, 1, 1, 0),
    "06": (256, 128, 56, 1, 2, 0),
    "09": (512, 128, 28, 1, 1, 0),
    "10": (512, 1024, 28, 1, 2, 0),
    "11": (512, 256, 28, 1, 2, 0),
    "13": (256, 1024, 14, 1, 1, 0),
    "16": (1024, 512, 14, 1, 2, 0),
    "18": (512, 2048, 7, 1, 1, 0),
}
"""Layers by their number in ResNet-50: c, k, h, r, stride, pad."""


def all_problems() -> dict[str, Case]:
    """Every problem by its name (`gemm 128x2048x4096`, `conv 03`), products first."""
    return {case.size: case for case in (*_products(), *_layers())}


def chosen(names: Sequence[str]) -> dict[str, Case]:
    """The problems with one of these names, or of a family that is named (`gemm`, `conv`); all if no name is given.

    Raises SearchError for a name that is neither.
    """
    problems = all_problems()
    for name in names:
        if not any(_is(problem, name) for problem in problems):
            raise SearchError(f"unknown problem {name!r}: there are gemm, conv, {', '.join(problems)}.")
    return {name: case for name, case in problems.items() if not names or any(_is(name, asked) for asked in names)}


def _is(problem: str, asked: str) -> bool:
    return asked in (problem, problem.partition(" ")[0])


def _products() -> Iterator[Case]:
    for m, n, k in PRODUCTS:
        sizes = {"M": m, "N": n, "K": k}
        yield Case("gemm", f"gemm {m}x{n}x{k}", DTYPE, Matmul(m, n, k), partial(nests.make, "gemm_nn", DTYPE), sizes)


def _layers() -> Iterator[Case]:
    for number, layer in sorted(LAYERS.items()):
        problem = Convolution(*layer, layout=LAYOUT)
        nest = partial(nests.make, f"conv2d_{LAYOUT.lower()}_{problem.stride}", DTYPE)
        yield Case("conv2d", f"conv {number}", DTYPE, problem, nest, problem.sizes)
