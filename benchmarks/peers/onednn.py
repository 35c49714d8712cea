"""oneDNN through PyTorch's own entry points to it, with prepacked weights: its fastest form, for float32 only."""

from __future__ import annotations

import functools

from benchmarks.arrays import Array
from benchmarks.case import Problem
from benchmarks.contender import Contender, NotInstalled
from benchmarks.peers import convolutions
from benchmarks.peers.package import Packaged
from benchmarks.peers.torch_peer import PACKAGE, found, loaded, onednn_kernels
from benchmarks.problems.convolution import Convolution
from benchmarks.problems.matmul import Matmul
from poly.timing.benchmark import python_timed

CONFIG = "weights packed before the clock starts"


class OneDnn(Packaged):
    """Products as linear layers, and convolutions; both assign their output, which is less work than adding to it."""

    name = "onednn"
    package = PACKAGE

    def find(self) -> object:
        return found()

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        torch = loaded()
        if not torch.backends.mkldnn.is_available():
            raise NotInstalled("oneDNN in this build of PyTorch")
        if arrays[0].dtype.name != "float32":
            return None
        torch.set_num_threads(threads)
        version = f"in torch {torch.__version__}"
        match problem:
            case Matmul(batch=1):
                a, b, c = (torch.from_numpy(x) for x in problem.operands(arrays))
                packed = torch.ops.mkldnn._reorder_linear_weight(b.T.contiguous(), problem.m)
                linear = functools.partial(torch.ops.mkldnn._linear_pointwise, a, packed, None, "none", [], "")
                run = python_timed(linear)
                config = f"{CONFIG}, {onednn_kernels(linear)}"
                return Contender(self.name, version, config, run, lambda: (c + linear()).numpy(), False)
            case Convolution():
                convolve = convolutions.by_onednn(torch, problem, arrays)
                if convolve is not None:
                    config = f"{CONFIG}, {onednn_kernels(convolve)}"
                    result = convolutions.result(problem, arrays, convolve)
                    return Contender(self.name, version, config, python_timed(convolve), result, False)
        return None
