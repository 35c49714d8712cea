"""f16: nests of halves for devices that compute with them, and a clear refusal for all others."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from math import exp

import numpy as np
import pytest
from opencl_device import device

import poly
from codegen.opencl.plan import device_program
from microkernels.opencl_isa import OPENCL512, OPENCLGPU
from poly import f16
from poly.autoschedule.default import default_schedule
from poly.compiled import translate_device
from poly.lowering.lower import lower
from poly.model.host import here
from poly.opencl_kernel import opencl_kernel

M, N, K = poly.sizes("M N K")
HALVES_GPU = replace(OPENCLGPU, units=8, local_bytes=48 << 10, max_items=256, f16=True)
HALVES_CPU = replace(OPENCL512, units=2, local_bytes=1 << 20, f16=True)


@poly.nest
def matmul(A: f16[M, K], B: f16[K, N], C: f16[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def soften(x: f16[M, N], y: f16[M, N], scale: f16):
    for i in range(M):
        top: f16 = -65504.0
        for j in range(N):
            top = max(top, abs(x[i, j]))
        for j in range(N):
            y[i, j] = 0.5 * exp(x[i, j] - top) + scale


def test_halves_are_refused_where_they_cannot_be_computed():
    with pytest.raises(poly.TargetError, match="does not support f16, the type of A"):
        opencl_kernel(matmul, replace(HALVES_GPU, f16=False), 1, None, device())


def test_doubles_are_refused_where_they_cannot_be_computed():
    nest = poly.einsum("ij->ji", dtype=poly.f64, i=8, j=8)
    with pytest.raises(poly.TargetError, match="does not support f64"):
        translate_device(poly.schedule(nest), replace(HALVES_GPU, f64=False))


@pytest.mark.parametrize("isa", [HALVES_GPU, HALVES_CPU], ids=["gpu", "cpu"])
@pytest.mark.parametrize("nest", [matmul, soften], ids=lambda nest: nest.name)
def test_texts_with_halves_are_opencl(nest: poly.Nest, isa: object, tmp_path):
    clang = next((found for n in range(30, 13, -1) if (found := shutil.which(f"clang-{n}"))), shutil.which("clang"))
    if clang is None:
        pytest.skip("needs clang")
    made = default_schedule(nest, here(isa, 2))
    path = tmp_path / "halves.cl"
    path.write_text(device_program(lower(nest, made.tree, isa)).source)
    command = [clang, "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-target", "spir64"]
    done = subprocess.run([*command, "-fsyntax-only", path], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


def test_a_product_of_halves_sums_in_floats():
    """The microkernel reads halves by a function that every device has, so it runs here too."""
    m, n, k = 33, 47, 91
    kernel = opencl_kernel(matmul.with_sizes({"M": m, "N": n, "K": k}), HALVES_GPU, 1, None, device())
    rng = np.random.default_rng(0)
    A, B = (rng.random(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    C = np.zeros((m, n), np.float16)
    kernel(A, B, C)
    np.testing.assert_allclose(C, A.astype(float) @ B.astype(float), rtol=2 * np.finfo(np.float16).eps)
