"""The elementary functions in OpenCL C, where some words of C are types."""

import numpy as np
import pytest
from opencl_device import device

import poly
from codegen.elementary.functions import NAMES
from poly import f32, f64
from poly.frontends.python import parse_text
from poly.frontends.source import Source

N = poly.sizes("N")
FUNCTIONS = tuple(name for name in NAMES if name != "erf")
TEXT = "\n".join([
    f"def functions(x: T[N], y_atan2: T[N], {', '.join(f'y_{name}: T[N]' for name in FUNCTIONS)}):",
    "    for i in range(N):",
    "        y_atan2[i] = atan2(x[i], -1.5)",
    *(f"        y_{name}[i] = {name}(x[i])" for name in FUNCTIONS),
])  # fmt: skip


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_functions(dtype):
    device()
    nest = parse_text(Source(TEXT, "functions.py", 1), {"T": dtype, "N": N, "range": range})
    x = np.random.default_rng(0).uniform(0.01, 5, 500).astype(dtype.numpy_name)
    found = {name: np.full_like(x, np.nan) for name in ("atan2", *FUNCTIONS)}
    poly.compile(nest, target="opencl")(x, *found.values())
    for name, y in found.items():
        arguments = (x.astype(np.float64), -1.5) if name == "atan2" else (x.astype(np.float64),)
        exact = getattr(np, {"atan": "arctan", "atan2": "arctan2"}.get(name, name))(*arguments)
        np.testing.assert_allclose(y, exact, rtol=8 * np.finfo(x.dtype).eps, atol=1e-6 * (dtype == f32), err_msg=name)
