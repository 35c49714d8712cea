"""What PyTorch and oneDNN run for a layer and for its gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.arrays import Array
from benchmarks.problems.layer import IMAGE, RESULTS, WEIGHTS, Layer

Work = Callable[[], Any]


def tensors(torch: Any, layer: Layer, arrays: tuple[Array, ...]) -> dict[int, Any]:
    """The arrays as channel-first tensors, stored as PyTorch stores such in this layout."""
    stored = torch.channels_last if layer.layout == "NHWC" else torch.contiguous_format
    found = layer.channel_first(arrays)
    return {which: torch.from_numpy(a).contiguous(memory_format=stored) for which, a in found.items()}


def by_torch(torch: Any, layer: Layer, arrays: tuple[Array, ...]) -> Work:
    """`conv2d`, or what autograd calls for its gradients; the weights are plain tensors."""
    found = tensors(torch, layer, arrays)
    stride, pad = [layer.stride] * 2, [layer.pad] * 2
    if layer.part == "results":
        conv2d = torch.nn.functional.conv2d
        return functools.partial(conv2d, found[IMAGE], found[WEIGHTS], stride=stride, padding=pad)
    place = 0 if layer.part == "image" else 1
    backward = functools.partial(
        torch.ops.aten.convolution_backward, found[RESULTS], found[IMAGE], found[WEIGHTS],
        None, stride, pad, [1, 1], False, [0, 0], 1, [place == 0, place == 1, False],
    )  # fmt: skip
    return lambda: backward()[place]


def by_onednn(torch: Any, layer: Layer, arrays: tuple[Array, ...]) -> Work | None:
    """The same with weights packed before the clock starts; None for the gradient of the weights, which has none.

    That of the image is a transposed convolution.
    """
    found = tensors(torch, layer, arrays)
    stride, pad, one = [layer.stride] * 2, [layer.pad] * 2, [1, 1]
    match layer.part:
        case "results":
            reorder = torch._C._nn.mkldnn_reorder_conv2d_weight
            plain = found[WEIGHTS].contiguous().to_mkldnn()
            packed = reorder(plain, pad, stride, one, 1, list(found[IMAGE].shape))
            convolve = torch.ops.mkldnn._convolution_pointwise
            return functools.partial(convolve, found[IMAGE], packed, None, pad, stride, one, 1, "none", [], "")
        case "image":
            over = [layer.h - (layer.stride * (layer.out - 1) - 2 * layer.pad + layer.r)] * 2
            reorder = torch.ops.mkldnn._reorder_convolution_transpose_weight
            packed = reorder(found[WEIGHTS], pad, over, stride, one, 1, list(found[RESULTS].shape))
            transposed = torch.ops.mkldnn._convolution_transpose_pointwise
            return functools.partial(
                transposed, found[RESULTS], packed, None, pad, over, stride, one, 1, "none", [], ""
            )
    return None


def result(layer: Layer, arrays: tuple[Array, ...], work: Work) -> Callable[[], Array]:
    """The result as the loops compute it: PyTorch assigns the output, while the loops add to it."""

    def added() -> Array:
        output: Array = work().numpy()
        return np.add(arrays[2], layer.turned(output))

    return added
