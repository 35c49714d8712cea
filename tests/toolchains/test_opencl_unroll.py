"""Unrolled loops on a device whose compiler optimises: those with barriers are not unrolled, and all are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mapping_nests import drained
from opencl_device import device

from microkernels.opencl_isa import OPENCLGPU
from poly import schedule
from poly.compiled import translate_device
from poly.ir.reference import reference
from poly.opencl_kernel import OpenCLKernel

GPU = replace(OPENCLGPU, max_items=64)


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_a_loop_with_barriers_is_not_unrolled(factor: int) -> None:
    """PoCL 3.1 unrolled `p_tile` three times although it has two iterations, each with barriers."""
    made = schedule(drained).items(p=4).reverse("p").tile(p=16).unroll(p_tile=factor)
    kernel = OpenCLKernel(made.nest, GPU, 1, made, device(), translate_device(made, GPU))
    assert "barrier" in kernel.source and "#pragma GCC unroll" not in kernel.source
    for n in (5, 17):
        ours = np.random.default_rng(n).integers(-9, 9, n + 3).astype(np.int32)
        expected = ours.copy()
        kernel(ours)
        reference(made.nest, (expected,))
        assert np.array_equal(ours, expected)


def test_a_loop_without_barriers_is_unrolled() -> None:
    made = schedule(drained).unroll(p=3)
    assert "#pragma GCC unroll 3" in translate_device(made, GPU).source
