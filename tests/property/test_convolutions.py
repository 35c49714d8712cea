"""Convolutions of one to three axes, in groups, dilated, and gradients: transposed convolutions are those of images."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from benchmarks.problems.convolution import Convolution, Layout
from benchmarks.workloads import convolution_nests
from microkernels.dtypes import f32
from microkernels.isa import ISAS
from poly.autoschedule.default import default_schedule
from poly.model.core import Target
from tests.support.machines import LARGE


def check(problem: Convolution, target: str = "c", threads: int = 1) -> poly.Kernel:
    kernel = poly.compile(convolution_nests.nest(problem, f32), target=target, threads=threads)
    assert isinstance(kernel, poly.Kernel)
    arrays = problem.arrays(f32)
    expected = problem.expected(arrays)
    kernel(*arrays)
    scale = np.abs(expected).max() + np.sqrt(problem.reduction)
    np.testing.assert_allclose(arrays[2], expected, rtol=0, atol=8 * np.finfo(np.float32).eps * scale * 4)
    return kernel


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("axes", [1, 3])
def test_any_number_of_axes_goes_to_a_microkernel(axes: int, layout: Layout) -> None:
    problem = Convolution(17, 33, 11 if axes == 1 else 5, 3, 2, 1, layout, axes=axes)
    assert "microkernel" in str(check(problem).schedule)


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_groups_of_few_channels_have_lanes_along_pixels(isa: str) -> None:
    """Twelve steps of the reduction for a tile of four rows of pixels, not one vector of four channels."""
    nest = convolution_nests.nest(Convolution(32, 32, 56, 3, 1, 1, "NCHW", groups=8), f32)
    text = str(default_schedule(nest, Target.nominal(ISAS[isa], LARGE, 1)))
    assert re.search(r"for k in range\(4\):  # microkernel gemm_\w+_4x.*\n\s*for q in", text), text


@pytest.mark.filterwarnings("error::poly.CostWarning")
@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_three_axes_do_not_take_too_much_work(layout: Layout, isa: str) -> None:
    nest = convolution_nests.nest(Convolution(64, 64, 28, 3, 1, 1, layout, axes=3), f32)
    assert "microkernel" in str(default_schedule(nest, Target.nominal(ISAS[isa], LARGE, 1)))


PROBLEMS = st.builds(
    lambda groups, c, k, axes, h, **others: Convolution(
        groups * c, groups * k, h if axes < 3 else h % 4 + 4, groups=groups, axes=axes, **others
    ),
    groups=st.sampled_from([1, 1, 2, 5]),
    c=st.sampled_from([1, 3, 7]),
    k=st.sampled_from([1, 5, 17]),
    axes=st.integers(1, 3),
    h=st.integers(5, 19),
    r=st.integers(1, 3),
    stride=st.integers(1, 2),
    pad=st.integers(0, 2),
    layout=st.sampled_from(["NHWC", "NCHW"]),
    n=st.integers(1, 2),
    part=st.sampled_from(["results", "image", "weights"]),
    dilation=st.integers(1, 2),
).filter(lambda problem: problem.out > 0)


@settings(max_examples=8, deadline=None)
@given(problem=PROBLEMS, target=st.sampled_from(["c", "c:avx2"]))
def test_any_convolution(problem: Convolution, target: str) -> None:
    check(problem, target)
