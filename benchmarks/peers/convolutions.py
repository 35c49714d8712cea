"""What PyTorch and oneDNN run for a convolution and for its gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.arrays import Array
from benchmarks.problems.convolution import IMAGE, RESULTS, WEIGHTS, Convolution

Work = Callable[[], Any]


def tensors(torch: Any, problem: Convolution, arrays: tuple[Array, ...], device: str = "cpu") -> dict[int, Any]:
    """The arrays as channel-first tensors, stored as PyTorch stores such in this layout, on a device.

    An image comes without the zeros around it: PyTorch pads it, and may skip the taps on the padding.
    """
    found = problem.channel_first(arrays)
    bare = found | {IMAGE: problem.inner(found[IMAGE])}
    return {which: stored(torch, problem, torch.from_numpy(a)).to(device) for which, a in bare.items()}


def stored(torch: Any, problem: Convolution, tensor: Any) -> Any:
    """A tensor as PyTorch stores it in this layout; it knows no channel-last one for a single axis."""
    last = {2: torch.channels_last, 3: torch.channels_last_3d}
    known = problem.layout == "NHWC" and problem.axes in last
    return tensor.contiguous(memory_format=last[problem.axes] if known else torch.contiguous_format)


def layout_name(problem: Convolution) -> str:
    """What PyTorch calls the layout of its tensors."""
    return "channels_last" if problem.layout == "NHWC" and problem.axes > 1 else "contiguous"


def by_torch(torch: Any, problem: Convolution, arrays: tuple[Array, ...], device: str = "cpu") -> Work:
    """`conv2d` or its like, or what autograd calls for its gradients; the weights are plain tensors."""
    found = tensors(torch, problem, arrays, device)
    stride, pad, apart, none = ([each] * problem.axes for each in (problem.stride, problem.pad, problem.dilation, 0))
    if problem.part == "results":
        convolve = getattr(torch.nn.functional, f"conv{problem.axes}d")
        options = {"stride": stride, "padding": pad, "dilation": apart, "groups": problem.groups}
        return functools.partial(convolve, found[IMAGE], found[WEIGHTS], **options)
    place = 0 if problem.part == "image" else 1
    backward = functools.partial(
        torch.ops.aten.convolution_backward, found[RESULTS], found[IMAGE], found[WEIGHTS],
        None, stride, pad, apart, False, none, problem.groups, [place == 0, place == 1, False],
    )  # fmt: skip
    return lambda: backward()[place]


def by_onednn(torch: Any, problem: Convolution, arrays: tuple[Array, ...]) -> Work | None:
    """The same with weights packed before the clock starts; None if PyTorch has no entry point for that.

    It has none for gradients of the weights. That of the image is a transposed convolution, of two axes alone. A single
    axis is given as the second of two.
    """
    found = tensors(torch, problem, arrays)
    stride, pad, apart = ([each] * problem.axes for each in (problem.stride, problem.pad, problem.dilation))
    groups = problem.groups
    if problem.axes == 1 and problem.part == "results":
        found = {which: tensor.unsqueeze(2) for which, tensor in found.items()}
        stride, pad, apart = [1, *stride], [0, *pad], [1, *apart]
    match problem.part:
        case "results":
            reorder = getattr(torch._C._nn, f"mkldnn_reorder_conv{max(problem.axes, 2)}d_weight")
            plain = found[WEIGHTS].contiguous().to_mkldnn()
            packed = reorder(plain, pad, stride, apart, groups, list(found[IMAGE].shape))
            convolve = functools.partial(
                torch.ops.mkldnn._convolution_pointwise, found[IMAGE], packed, None, pad, stride, apart, groups,
                "none", [], "",
            )  # fmt: skip
            return (lambda: convolve().squeeze(2)) if problem.axes == 1 else convolve
        case "image" if problem.axes == 2:
            over = [problem.h - (problem.padded - 2 * problem.pad)] * 2
            reorder = torch.ops.mkldnn._reorder_convolution_transpose_weight
            packed = reorder(found[WEIGHTS], pad, over, stride, apart, groups, list(found[RESULTS].shape))
            return functools.partial(
                torch.ops.mkldnn._convolution_transpose_pointwise, found[RESULTS], packed, None, pad, over, stride,
                apart, groups, "none", [], "",
            )  # fmt: skip
    return None


def result(problem: Convolution, arrays: tuple[Array, ...], work: Work) -> Callable[[], Array]:
    """The result as the loops compute it: PyTorch assigns the output, while the loops add to it."""

    def added() -> Array:
        output: Array = work().cpu().numpy()
        return np.add(arrays[2], problem.turned(output))

    return added
