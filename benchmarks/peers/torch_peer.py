"""PyTorch as it is usually called: `addmm`, `einsum` and `conv2d`, in eager mode, with nothing prepacked."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from benchmarks.arrays import Array
from benchmarks.case import Problem
from benchmarks.clock import python_timed
from benchmarks.contender import Contender, NotInstalled
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.convolution import Convolution
from benchmarks.problems.matmul import Matmul


class Torch:
    """Products by MKL inside PyTorch, contractions by `torch.einsum`, convolutions by oneDNN with plain weights."""

    name = "torch"

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        torch = loaded()
        torch.set_num_threads(threads)
        match problem:
            case Matmul():
                a, b, c = (torch.from_numpy(x) for x in problem.operands(arrays))
                product = torch.baddbmm if problem.batch > 1 else torch.addmm
                run = python_timed(lambda: product(c, a, b, out=c))
                return Contender(
                    self.name, torch.__version__, f"{product.__name__}(out=)", run, lambda: arrays[2], False
                )
            case ContractionProblem():
                tensors = [torch.from_numpy(x) for x in arrays[:2]]
                einsum = functools.partial(torch.einsum, problem.subscripts, *tensors)
                config = "einsum"
                return Contender(
                    self.name, torch.__version__, config, python_timed(einsum), lambda: einsum().numpy(), False
                )
            case Convolution():
                image, weights = (
                    image_tensor(torch, problem, arrays),
                    torch.from_numpy(problem.channel_first(arrays)[1]),
                )
                weights = weights.contiguous(memory_format=layout(torch, problem))
                convolve = functools.partial(
                    torch.nn.functional.conv2d, image, weights, stride=problem.stride, padding=problem.pad
                )
                config = f"conv2d, {'channels_last' if problem.layout == 'NHWC' else 'contiguous'}"
                result = convolution_result(problem, arrays, convolve)
                return Contender(self.name, torch.__version__, config, python_timed(convolve), result, False)
        return None


@functools.cache
def loaded() -> Any:
    """The package. Raises NotInstalled."""
    try:
        import torch
    except ImportError as error:
        raise NotInstalled("the PyPI package torch") from error
    torch.set_grad_enabled(False)
    return torch


def layout(torch: Any, problem: Convolution) -> Any:
    return torch.channels_last if problem.layout == "NHWC" else torch.contiguous_format


def image_tensor(torch: Any, problem: Convolution, arrays: tuple[Array, ...]) -> Any:
    """The image without its border, in the problem's layout: PyTorch pads it, and may skip the taps on the padding."""
    image = torch.from_numpy(problem.channel_first(arrays)[0])
    inner = slice(problem.pad, min(problem.pad + problem.h, problem.padded))
    return image[:, :, inner, inner].contiguous(memory_format=layout(torch, problem))


def convolution_result(problem: Convolution, arrays: tuple[Array, ...], convolve: Any) -> Any:
    """The result as the loops compute it: PyTorch assigns the output, while the loops add to it."""

    def result() -> Array:
        output: Array = convolve().numpy()
        product = output if problem.layout == "NCHW" else output.transpose(0, 2, 3, 1)
        return np.add(arrays[2], product)

    return result
