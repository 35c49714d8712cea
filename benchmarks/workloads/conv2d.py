"""Convolutions of ResNet-50 as seven plain loops: channel-first (NCHW) and channel-last (NHWC).

The images are as they are, without zeros around them: the loops leave out taps outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.case import Case
from benchmarks.problems.layer import Layer, Part
from benchmarks.workloads import layer_nests
from microkernels.dtypes import DType

LAYERS = {
    "01": (64, 256, 56, 1, 1, 0),
    "02": (64, 64, 56, 1, 1, 0),
    "03": (64, 64, 56, 3, 1, 1),
    "04": (256, 64, 56, 1, 1, 0),
    "05": (256, 512, 56, 1, 2, 0),
    "06": (256, 128, 56, 1, 2, 0),
    "07": (128, 128, 28, 3, 1, 1),
    "08": (128, 512, 28, 1, 1, 0),
    "09": (512, 128, 28, 1, 1, 0),
    "10": (512, 1024, 28, 1, 2, 0),
    "11": (512, 256, 28, 1, 2, 0),
    "12": (256, 256, 14, 3, 1, 1),
    "13": (256, 1024, 14, 1, 1, 0),
    "14": (1024, 256, 14, 1, 1, 0),
    "15": (1024, 2048, 14, 1, 2, 0),
    "16": (1024, 512, 14, 1, 2, 0),
    "17": (512, 512, 7, 3, 1, 1),
    "18": (512, 2048, 7, 1, 1, 0),
    "19": (2048, 512, 7, 1, 1, 0),
}
"""Layers by their number in ResNet-50: c, k, h, r, stride, pad."""

FEW, BATCH = ("03", "07", "12", "15", "17"), 16
"""The layers whose gradients are measured, and which run on a batch as well; the number of its images."""

QUICK = {"03 NHWC", "07 NHWC", "07 NCHW", "14 NHWC", "17 NHWC dimage", "17 NCHW dweights"}


def cases(dtype: DType) -> Iterator[Case]:
    """Every layer in both layouts, some of them with a batch, and the gradients of those."""
    for number in LAYERS:
        yield from _both(number, dtype)
    for number in FEW:
        yield from _both(number, dtype, n=BATCH)
        yield from _both(number, dtype, part="image")
        yield from _both(number, dtype, part="weights")


def _both(number: str, dtype: DType, n: int = 1, part: Part = "results") -> Iterator[Case]:
    for layout in ("NHWC", "NCHW"):
        layer = Layer(*LAYERS[number], layout=layout, n=n, part=part)
        kind = f" x{n}" * (n > 1) + f" d{part}" * (part != "results")
        size = f"{number} {layout} {layer.c}→{layer.k} {layer.out}² {layer.r}x{layer.r}{kind}"
        quick = dtype.name == "f32" and f"{number} {layout}{kind}" in QUICK
        yield Case("conv2d", size, dtype, layer, partial(layer_nests.nest, layer, dtype), quick=quick)
