"""Convolutions as plain loops, channel-first (NCHW) and channel-last (NHWC), on images without zeros around them.

The loops leave out the taps outside. In a `packed` case our weights are packed before the clock starts, as oneDNN's
always are; in the others each call of ours reads them as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from benchmarks.case import Case
from benchmarks.problems.convolution import Convolution, Layout
from benchmarks.workloads import convolution_nests
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

STEM = (3, 64, 224, 7, 2, 3)
"""The layer before them, on the pixels' three colours."""

FEW, BATCH = ("03", "07", "12", "15", "17"), 16
"""The layers whose gradients are measured, and which run on a batch as well; the number of its images."""

DEPTHWISE = (
    (32, 112, 1), (64, 112, 2), (128, 56, 1), (128, 56, 2), (256, 28, 1), (256, 28, 2), (512, 14, 1), (512, 14, 2),
    (1024, 7, 1),
)  # fmt: skip
"""The depthwise layers of MobileNet, 3x3: channels, h, stride."""

POINTWISE = ((32, 64, 112), (128, 128, 56), (256, 256, 28), (512, 512, 14), (1024, 1024, 7))
"""Some of its pointwise layers: c, k, h."""

GROUPED = ((128, 56), (256, 28), (512, 14), (1024, 7))
"""Layers of ResNeXt-50 with 32 groups, 3x3: channels, h."""

LINES = ((80, 384, 3000, 3, 1, 1), (384, 384, 3000, 3, 2, 1), (64, 64, 4096, 9, 1, 4))
"""Convolutions along one axis: c, k, h, r, stride, pad; the first two are those of Whisper."""

VOLUMES = ((64, 64, 28, 3, 1, 1), (128, 256, 14, 3, 2, 1))
"""The same along three."""

QUICK = {"03 NHWC", "07 NHWC packed", "07 NCHW packed", "14 NHWC", "17 NHWC dimage", "17 NCHW dweights"}

POWERS = {1: "", 2: "²", 3: "³"}

LAYOUTS: tuple[Layout, ...] = ("NHWC", "NCHW")


def cases(dtype: DType) -> Iterator[Case]:
    """The layers of ResNet-50, some of them with a batch and with their gradients, then those of other networks."""
    for name, shape in {"stem": STEM, **LAYERS}.items():
        yield from _both(name, Convolution(*shape), dtype)
        yield from _both(name, Convolution(*shape), dtype, packed=True)
    for number in FEW:
        yield from _both(number, Convolution(*LAYERS[number], n=BATCH), dtype)
        yield from _both(number, Convolution(*LAYERS[number], part="image"), dtype)
        yield from _both(number, Convolution(*LAYERS[number], part="image"), dtype, packed=True)
        yield from _both(number, Convolution(*LAYERS[number], part="weights"), dtype)
    for c, h, stride in DEPTHWISE:
        yield from _both("depthwise", Convolution(c, c, h, 3, stride, 1, groups=c), dtype)
    for c, k, h in POINTWISE:
        yield from _both("pointwise", Convolution(c, k, h, 1, 1, 0), dtype, packed=True)
    for c, h in GROUPED:
        yield from _both("32 groups", Convolution(c, c, h, 3, 1, 1, groups=32), dtype)
    for axes, shapes in ((1, LINES), (3, VOLUMES)):
        for shape in shapes:
            yield from _both(f"{axes}d", Convolution(*shape, axes=axes), dtype, packed=True)


def _both(name: str, problem: Convolution, dtype: DType, packed: bool = False) -> Iterator[Case]:
    """The case in both layouts."""
    kind = f" x{problem.n}" * (problem.n > 1) + f" d{problem.part}" * (problem.part != "results") + " packed" * packed
    taps = "x".join([str(problem.r)] * problem.axes)
    shape = f"{problem.c}→{problem.k} {problem.out}{POWERS[problem.axes]} {taps}"
    for layout in LAYOUTS:
        here = replace(problem, layout=layout)
        quick = dtype.name == "f32" and f"{name} {layout}{kind}" in QUICK
        nest = partial(convolution_nests.nest, here, dtype)
        packs = "W" if packed else None
        yield Case("conv2d", f"{name} {layout} {shape}{kind}", dtype, here, nest, quick=quick, packed=packs)
