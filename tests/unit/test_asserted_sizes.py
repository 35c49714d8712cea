"""What a nest asserts about its sizes: proofs may use it, and each call, header and OpenCL library checks it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poly
from codegen.errors import ArgumentError
from codegen.ir.signature import condition
from codegen.package.opencl.files import files
from poly import f32
from poly.analysis.bounds import check
from poly.embed.opencl import standalone
from poly.embed.trials import trials
from poly.errors import SpecError
from poly.frontends.python import parse_text
from poly.frontends.source import Source

W, R = poly.sizes("W R")
WRONG = [(9, 0, "R >= 1; got R = 0"), (4, 5, "W - R >= 0; got R = 5 and W = 4")]


@poly.nest
def fir(x: f32[W], g: f32[R], y: f32[W]) -> None:
    """A filter."""
    assert 1 <= R <= W, "at least one coefficient"
    for i in range(W - R + 1):
        y[i] = g[0] * x[i]
        for r in range(1, R):
            y[i] += g[r] * x[i + r]


def arrays(width: int, taps: int) -> tuple[Any, ...]:
    x, g = np.arange(width, dtype=np.float32), np.arange(taps, dtype=np.float32) + 1
    return x, g, np.full(width, np.nan, np.float32)


@pytest.mark.parametrize("sizes", [{}, {"R": 3}], ids=["open", "some known"])
def test_a_call_checks_it(sizes: dict[str, int]) -> None:
    kernel = poly.compile(fir, **sizes, threads=1, records=False)
    x, g, y = arrays(9, 3)
    kernel(x, g, y)
    np.testing.assert_array_equal(y[:7], np.correlate(x, g, "valid"))
    for width, taps, message in [(2, 3, "W >= 3; got W = 2")] if sizes else WRONG:
        x, g, y = arrays(width, taps)
        with pytest.raises(ArgumentError, match=f"fir is made for {message}"):
            kernel(x, g, y)
        assert np.isnan(y).all()


def test_known_sizes_are_checked_when_they_are_known() -> None:
    for width, taps, message in WRONG:
        with pytest.raises(ArgumentError, match=message):
            fir(*arrays(width, taps))
        with pytest.raises(SpecError, match=f"asserts conditions that W = {width}, R = {taps} violates"):
            poly.compile(fir, W=width, R=taps)


def test_proofs_use_it() -> None:
    source = Source(fir.source.replace("assert 1 <= R <= W", "assert R <= W"), "fir.py", 1)
    with pytest.raises(SpecError, match=r"writes y\[i\] outside of y"):
        check(parse_text(source, {"f32": f32, "W": W, "R": R}))
    assert check(fir).statements == fir.statements


def test_a_header_checks_it_and_tries_other_sizes(tmp_path: Path) -> None:
    tried = [dict(trial.sizes) for trial in trials(fir, [])]
    assert len(tried) > 30
    assert all(1 <= sizes["R"] <= sizes["W"] for sizes in tried)
    kernel = poly.compile(fir, threads=1, records=False)
    kernel.write_header(tmp_path / "fir.h", isas=["portable"], threads="none", dense=True)
    calls = [(9, 3, "OK"), (9, 9, "OK"), *((width, taps, "BAD_SIZE") for width, taps, _ in WRONG)]
    lines = [f"if (fir({width}, {taps}, x, g, y) != FIR_{status}) return {taps};" for width, taps, status in calls]
    start = '#define FIR_IMPLEMENTATION\n#include "fir.h"\nint main(void) { float x[9] = {0}, g[9] = {0}, y[9];\n'
    (tmp_path / "main.c").write_text(start + "\n".join([*lines, "return 0; }\n"]))
    subprocess.run(["cc", "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    subprocess.run(["./main"], cwd=tmp_path, check=True)


def test_an_opencl_library_checks_it() -> None:
    kernel = poly.compile(fir, target="opencl", records=False)
    host = files(standalone(kernel))["fir.c"]
    for value in fir.conditions:
        assert f'"{condition(value)}"' in host
