"""Convolutions of ResNet-50, one image, as seven plain loops: channel-first (NCHW) and channel-last (NHWC)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.case import Case
from benchmarks.problems.convolution import Convolution
from benchmarks.workloads import nests
from microkernels.dtypes import DType

LAYERS = {
    "01": (64, 256, 56, 1, 1, 0),
    "03": (64, 64, 56, 3, 1, 1),
    "05": (256, 512, 56, 1, 2, 0),
    "07": (128, 128, 28, 3, 1, 1),
    "08": (128, 512, 28, 1, 1, 0),
    "12": (256, 256, 14, 3, 1, 1),
    "14": (1024, 256, 14, 1, 1, 0),
    "15": (1024, 2048, 14, 1, 2, 0),
    "17": (512, 512, 7, 3, 1, 1),
    "19": (2048, 512, 7, 1, 1, 0),
}
"""Layers by their number in ResNet-50: c, k, h, r, stride, pad."""

QUICK = {"03 NHWC", "07 NHWC", "07 NCHW", "14 NHWC"}


def cases(dtype: DType) -> Iterator[Case]:
    """Every layer in both layouts."""
    for number, layer in LAYERS.items():
        for layout in ("NHWC", "NCHW"):
            problem = Convolution(*layer, layout=layout)
            name = f"conv2d_{layout.lower()}_{problem.stride}"
            size = f"{number} {layout} {problem.c}→{problem.k} {problem.out}² {problem.r}x{problem.r}"
            quick = dtype.name == "f32" and f"{number} {layout}" in QUICK
            yield Case("conv2d", size, dtype, problem, partial(nests.make, name, dtype), problem.sizes, quick)
