"""cuBLAS and cuDNN through PyTorch on a CUDA GPU: true f32, without TF32, timed by CUDA's events."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.arrays import Array
from benchmarks.case import Case, Problem
from benchmarks.contender import Contender, NotInstalled
from benchmarks.peers import convolutions
from benchmarks.peers.torch_peer import loaded as torch_loaded
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.convolution import Convolution
from benchmarks.problems.matmul import Matmul
from benchmarks.problems.softmax import Softmax
from codegen.calls.clock import Timed

Run = tuple[Callable[[], Any], Callable[[], Array]]
"""The call to time, and the result after one call, in the form that the loops compute."""


@dataclass(frozen=True)
class Cuda:
    """Products by cuBLAS, convolutions by cuDNN, the rest by PyTorch's own kernels."""

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        """The case on the GPU. Raises NotInstalled if there is no GPU or no PyTorch."""
        torch = loaded()
        made = work(torch, case.problem, arrays, "cuda")
        if made is None:
            return None
        call, outcome = made
        call()
        result = outcome()
        version = f"{torch.__version__}, CUDA {torch.version.cuda}"
        config = f"{torch.cuda.get_device_name()}, no TF32"
        return Contender("cuda", version, config, timed(torch, call), lambda: result, pinned=False)


@functools.cache
def loaded() -> Any:
    """PyTorch with a CUDA device, TF32 off. Raises NotInstalled."""
    torch = torch_loaded()
    if not torch.cuda.is_available():
        raise NotInstalled("no CUDA device")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    return torch


def timed(torch: Any, call: Callable[[], Any]) -> Timed:
    """The device's seconds between two events around the calls."""

    def run(times: int) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        call()
        start.record()
        for _ in range(times):
            call()
        end.record()
        end.synchronize()
        return 1e-3 * float(start.elapsed_time(end))

    return run


def work(torch: Any, problem: Problem, arrays: tuple[Array, ...], device: str) -> Run | None:
    """The problem on a device of PyTorch; None if it has no operation for it."""
    match problem:
        case Matmul():
            a, b, c = (torch.from_numpy(x).to(device) for x in problem.operands(arrays))
            product = torch.baddbmm if problem.batch > 1 else torch.addmm
            return lambda: product(c, a, b, out=c), lambda: c.cpu().numpy()
        case ContractionProblem():
            first, second, output = (torch.from_numpy(x).to(device) for x in arrays)
            contract = functools.partial(torch.einsum, problem.subscripts, first, second)
            return contract, lambda: (output + contract()).cpu().numpy()
        case Convolution():
            convolve = convolutions.by_torch(torch, problem, arrays, device)
            return convolve, convolutions.result(problem, arrays, convolve)
        case Softmax():
            x = torch.from_numpy(arrays[0]).to(device)
            return lambda: torch.softmax(x, 1), lambda: torch.softmax(x, 1).cpu().numpy()
    return None
