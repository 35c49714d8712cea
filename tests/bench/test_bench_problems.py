"""Every workload's float64 result is that of its loops as written, on small sizes; and so are the flops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.case import Case
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.convolution import Convolution, Layout, Part
from benchmarks.problems.fused import FusedProblem
from benchmarks.problems.loops import LoopsProblem
from benchmarks.problems.matmul import Matmul
from benchmarks.problems.mixed import MixedMatmul
from benchmarks.problems.reductions import ReductionProblem
from benchmarks.runner import relative_error
from benchmarks.workloads import WORKLOADS, convolution_nests, fused_nests, nests, reduction_nests
from benchmarks.workloads.einsum import CONTRACTIONS, contraction
from microkernels.dtypes import DTYPES, f64, i8
from poly import einsum

PROBLEMS = [
    ("gemm_nn", Matmul(5, 4, 3), {"M": 5, "N": 4, "K": 3}),
    ("gemm_nt", Matmul(5, 4, 3, "NT"), {"M": 5, "N": 4, "K": 3}),
    ("gemm_tn", Matmul(5, 4, 3, "TN"), {"M": 5, "N": 4, "K": 3}),
    ("gemm_tt", Matmul(5, 4, 3, "TT"), {"M": 5, "N": 4, "K": 3}),
    ("gemm_batched", Matmul(2, 3, 4, batch=3), {"B": 3, "M": 2, "N": 3, "K": 4}),
    ("gemm_integers", MixedMatmul(5, 4, 3, i8), {"M": 5, "N": 4, "K": 3}),
    *(
        (f"conv2d_{layout.lower()}_{stride}", problem, problem.sizes)
        for layout in ("NCHW", "NHWC")
        for stride, pad in ((1, 1), (2, 0), (2, 1))
        for problem in [Convolution(2, 3, 5, 3, stride, pad, layout, zeros=True)]
    ),
    *((p.name, p, p.size) for p in (
        LoopsProblem("jacobi_2d", (("N", 6), ("T", 3))),
        LoopsProblem("heat_3d", (("N", 5), ("T", 2))),
        LoopsProblem("seidel_2d", (("N", 6), ("T", 3))),
        LoopsProblem("trsv", (("N", 7),)),
        LoopsProblem("trsm", (("N", 5), ("M", 3))),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("name", "problem", "sizes"), PROBLEMS, ids=lambda value: str(value)[:40])
def test_the_expected_result_is_that_of_the_loops(name: str, problem: Any, sizes: dict[str, int]) -> None:
    arrays = problem.arrays(f64)
    expected = problem.expected(arrays)
    untold = {size: value for size, value in sizes.items() if size == "T"}
    nests.make(name, problem.operands if isinstance(problem, MixedMatmul) else f64).reference(*arrays, **untold)
    assert relative_error(arrays[problem.written[0]], expected) < 1e-13


@pytest.mark.parametrize("part", ["results", "image", "weights"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    "problem",
    [
        Convolution(2, 3, 5, 3, 1, 1, n=2),
        Convolution(2, 3, 6, 3, 2, 1, n=2),
        Convolution(3, 2, 4, 1, 2, 0, n=2),
        Convolution(3, 3, 5, 3, 2, 1, groups=3),
        Convolution(4, 6, 4, 3, 1, 1, groups=2),
        Convolution(2, 3, 7, 3, 2, 1, axes=1),
        Convolution(2, 1, 4, 3, 1, 1, axes=3),
        Convolution(2, 3, 5, 3, 1, 1, zeros=True),
        Convolution(2, 3, 7, 3, 2, 1, dilation=2),
    ],
    ids=str,
)
def test_the_expected_result_of_a_convolution_is_that_of_its_loops(
    problem: Convolution, layout: Layout, part: Part
) -> None:
    problem = replace(problem, layout=layout, part=part)
    arrays = problem.arrays(f64)
    expected = problem.expected(arrays)
    convolution_nests.nest(problem, f64).reference(*arrays)
    assert relative_error(arrays[2], expected) < 1e-13


@pytest.mark.parametrize("name", reduction_nests.NESTS)
def test_the_expected_reduction_is_that_of_the_loops(name: str) -> None:
    problem = ReductionProblem(name, 6, 8)
    arrays = problem.arrays(f64)
    expected = problem.expected(arrays)
    reduction_nests.NESTS[name](f64).reference(*arrays)
    assert relative_error(arrays[problem.written[0]], expected) < 1e-13


@pytest.mark.parametrize("name", fused_nests.NESTS)
def test_the_expected_result_of_a_chain_is_that_of_its_loops(name: str) -> None:
    sizes = {"H": 2, "N": 7, "L": 4} if name in ("attention", "causal") else {"M": 5, "N": 7, "K": 3}
    problem = FusedProblem(name, tuple((sizes | ({"L": 4} if name == "two_layers" else {})).items()))
    arrays = problem.arrays(f64)
    expected = problem.expected(arrays)
    fused_nests.NESTS[name](f64).reference(*arrays)
    assert relative_error(arrays[problem.written[0]], expected) < 1e-13


def test_the_expected_result_of_a_contraction_is_that_of_its_loops() -> None:
    problem = ContractionProblem("cab", "adc", "bd", (("a", 2), ("b", 3), ("c", 4), ("d", 5)))
    arrays = problem.arrays(f64)
    expected = problem.expected(arrays)
    einsum(problem.subscripts, dtype=f64, **dict(problem.extents)).reference(*arrays)
    assert relative_error(arrays[2], expected) < 1e-13


@pytest.mark.parametrize("text", CONTRACTIONS)
def test_a_contraction_has_three_to_seven_indices_and_a_fair_size(text: str) -> None:
    problem = contraction(text)
    assert 3 <= len(problem.extents) <= 7
    assert 1e8 <= problem.flop <= 1e9
    assert set(problem.output) <= set(problem.first) | set(problem.second)


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_cases_have_names_of_their_own_and_the_quick_run_has_some(workload: str, dtype: str) -> None:
    cases = list(WORKLOADS[workload](DTYPES[dtype]))
    assert len({case.size for case in cases}) == len(cases)
    assert any(case.quick for case in WORKLOADS[workload](DTYPES["f32"]))


def test_arrays_are_the_same_on_every_call_and_start_on_a_cache_line() -> None:
    first, second = Matmul(7, 5, 3).arrays(f64), Matmul(7, 5, 3).arrays(f64)
    for left, right in zip(first, second, strict=True):
        assert np.array_equal(left, right)
        assert left.ctypes.data % 64 == 0


@pytest.mark.parametrize(("size", "offset", "unit"), [(256, 16, 4096), (8, 16, 64)])
def test_what_is_measured_lies_where_numpy_puts_its_arrays(size: int, offset: int, unit: int) -> None:
    case = Case("gemm", "own", f64, Matmul(size, size, size), dict)
    first, second, third = case.arrays()
    assert first.ctypes.data % unit == third.ctypes.data % unit == offset
    assert second.ctypes.data % unit == (offset if unit == 4096 else 48)
    for left, right in zip(case.arrays(), replace(case, aligned=True).arrays(), strict=True):
        assert np.array_equal(left, right)
        assert right.ctypes.data % 64 == 0


def test_a_stride_of_two_leaves_no_row_over() -> None:
    problem = Convolution(2, 2, 56, 1, 2, 0, zeros=True)
    assert (problem.out, problem.padded) == (28, 55)


def test_flops_count_multiplications_and_additions() -> None:
    assert Matmul(3, 4, 5, batch=2).flop == 2 * 2 * 3 * 4 * 5
    assert Convolution(64, 64, 56, 3, 1, 1).flop == pytest.approx(0.2312e9, rel=1e-3)
