"""PyTorch as it is usually called: `addmm`, `einsum` and `conv2d`, in eager mode, with nothing prepacked."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from benchmarks.arrays import Array
from benchmarks.case import Problem
from benchmarks.contender import Contender, NotInstalled
from benchmarks.peers import convolutions
from benchmarks.peers.package import Package, Packaged
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.convolution import Convolution
from benchmarks.problems.fused import FusedProblem
from benchmarks.problems.matmul import Matmul
from benchmarks.problems.mixed import MixedMatmul
from benchmarks.problems.reductions import ReductionProblem
from poly.timing.benchmark import python_timed

MKL_HEAD = re.compile(
    r"^MKL_VERBOSE oneMKL (?P<version>\S+).* for Intel\(R\) 64 architecture (?P<kernels>[^,]+),", re.M
)
"""What MKL prints first: its version, and the CPUs that its kernels are for."""

ONEDNN_LINE = re.compile(r"^onednn_verbose,v\d,primitive,exec,cpu,(?P<kernel>[^,]+,[^,]+),", re.M)
"""What oneDNN prints of each primitive that it executes: its kind, and its implementation."""

PACKAGE = Package("pip", "torch==2.13.0")
"""A version that is built for CPUs alone: the newest one may bring gigabytes for GPUs."""


class Torch(Packaged):
    """Products by MKL inside PyTorch, contractions by `torch.einsum`, convolutions by oneDNN with plain weights."""

    name = "torch"
    package = PACKAGE

    def find(self) -> object:
        return found()

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        torch = loaded()
        torch.set_num_threads(threads)
        match problem:
            case Matmul():
                a, b, c = (torch.from_numpy(x) for x in problem.operands(arrays))
                product = torch.baddbmm if problem.batch > 1 else torch.addmm
                run = python_timed(lambda: product(c, a, b, out=c))
                config = f"{product.__name__}(out=), {mkl_kernels()}"
                return Contender(self.name, torch.__version__, config, run, lambda: arrays[2], False)
            case MixedMatmul():
                return self._mixed(problem, arrays)
            case ContractionProblem():
                tensors = [torch.from_numpy(x) for x in arrays[:2]]
                einsum = functools.partial(torch.einsum, problem.subscripts, *tensors)
                config = f"einsum, {mkl_kernels()}"
                return Contender(
                    self.name, torch.__version__, config, python_timed(einsum), lambda: einsum().numpy(), False
                )
            case Convolution():
                convolve = convolutions.by_torch(torch, problem, arrays)
                config = f"{problem.part}, {convolutions.layout_name(problem)}, {onednn_kernels(convolve)}"
                result = convolutions.result(problem, arrays, convolve)
                return Contender(self.name, torch.__version__, config, python_timed(convolve), result, False)
            case ReductionProblem() | FusedProblem():
                operands = [torch.from_numpy(x) for x in arrays[: problem.written[0]]]
                work = functools.partial(problem.by_torch(torch), *operands)
                run, version = python_timed(work), torch.__version__
                return Contender(self.name, version, problem.name, run, lambda: work().numpy(), False)
        return None

    def _mixed(self, problem: MixedMatmul, arrays: tuple[Array, ...]) -> Contender:
        """`_int_mm` of bytes; of bf16 `mm`, whose result is rounded to bf16. Both assign, which is less work."""
        torch = loaded()
        if problem.operands.is_float:
            a, b = (torch.from_numpy(x.view("int16")).view(torch.bfloat16) for x in arrays[:2])
            multiply = functools.partial(torch.mm, a, b)
        else:
            multiply = functools.partial(torch._int_mm, *map(torch.from_numpy, arrays[:2]))
        config = f"{multiply.func.__name__}, {onednn_kernels(multiply)}"
        return Contender(
            self.name, torch.__version__, config, python_timed(multiply), lambda: multiply().float().numpy(), False
        )


def found() -> object:
    """Where the package is. Raises NotInstalled."""
    spec = find_spec("torch")
    if spec is None:
        raise NotInstalled("the PyPI package torch")
    return spec


@functools.cache
def loaded() -> Any:
    """The package. Raises NotInstalled."""
    found()
    try:
        import torch
    except ImportError as error:
        raise NotInstalled(f"the PyPI package torch, which cannot be loaded: {error}") from error
    torch.set_grad_enabled(False)
    return torch


@functools.cache
def mkl_kernels() -> str:
    """The MKL in PyTorch and the CPUs for which it chose its kernels, as it says when it multiplies; else no MKL."""
    torch = loaded()
    if not torch.backends.mkl.is_available():
        return "no MKL"
    one = torch.ones(2, 2)

    def multiply() -> None:
        with torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_ON):
            torch.mm(one, one)

    told = MKL_HEAD.search(printed(multiply))
    return f"MKL {told['version']}, {told['kernels']}" if told else "MKL"


def onednn_kernels(work: Callable[[], object]) -> str:
    """The kernels of oneDNN that do this work, without those that only copy: `convolution jit:avx512_core`."""
    torch = loaded()

    def run() -> None:
        with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
            work()

    told = dict.fromkeys(match["kernel"] for match in ONEDNN_LINE.finditer(printed(run)))
    names = [" ".join(kernel.split(",")) for kernel in told if not kernel.startswith("reorder")]
    return f"oneDNN {', '.join(names)}" if names else "oneDNN takes no part"


def printed(work: Callable[[], object]) -> str:
    """What this process writes to its standard output while it works, which does not appear there."""
    _flush()
    kept = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            work()
            _flush()
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        return file.read().decode(errors="replace")


def _flush() -> None:
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
