"""Products with what stands before and behind them: layers of networks, and attention."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.case import Case
from benchmarks.problems.fused import FusedProblem
from benchmarks.workloads import fused_nests
from microkernels.dtypes import DType

LAYERS = (
    {"M": 3136, "N": 64, "K": 64},
    {"M": 512, "N": 512, "K": 512},
    {"M": 2048, "N": 2048, "K": 128},
    {"M": 4096, "N": 512, "K": 512, "L": 512},
)
"""Rows, columns and depth of a layer; with L, the columns of a second one."""

TOKENS = ((1, 512, 64), (1, 2048, 64), (1, 2048, 128), (8, 512, 64))
"""Heads, tokens and numbers of a token."""


def fusion(dtype: DType) -> Iterator[Case]:
    """Layers with a bias and a ReLU, and two layers one behind the other."""
    for sizes in LAYERS:
        yield _case("fusion", "two_layers" if "L" in sizes else "linear_relu", sizes, dtype)


def attention(dtype: DType) -> Iterator[Case]:
    """Attention, also with a causal mask."""
    for name in ("attention", "causal"):
        for heads, tokens, width in TOKENS:
            yield _case("attention", name, {"H": heads, "N": tokens, "L": width}, dtype)


def _case(workload: str, name: str, sizes: dict[str, int], dtype: DType) -> Case:
    problem = FusedProblem(name, tuple(sizes.items()))
    size = f"{name} {'x'.join(map(str, sizes.values()))}"
    nest = partial(fused_nests.NESTS[name], dtype)
    return Case(workload, size, dtype, problem, nest, sizes, dtype.name == "f32")
