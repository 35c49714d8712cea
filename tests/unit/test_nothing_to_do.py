"""Nests over arrays without elements, which are as long as one likes otherwise: they return at once.

A kernel that walked the long dimensions would run for weeks, so each test hangs where something does.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from headers import GCC, at_any_level, quick
from opencl_device import device
from scripts import PATIENCE, output

pytestmark = pytest.mark.slow

NESTS = """
import sys
import numpy as np
import poly
from poly.ir.tree import bands
from poly import f32

M, N, K, T = poly.sizes("M N K T")
LONG = 10**13

@poly.nest
def copy(A: f32[M, N], B: f32[M, N]):
    for i in range(M):
        for j in range(N):
            B[i, j] = A[i, j] + 1

@poly.nest
def total(A: f32[M, N, K], x: f32[1]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                x[0] += A[i, j, k]

@poly.nest
def product(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]

@poly.nest
def two(A: f32[M, N], B: f32[M, N], x: f32[1]):
    x[0] = 3
    for i in range(M):
        for j in range(N):
            B[i, j] = A[i, j] + x[0]
        for j in range(N):
            A[i, j] = 2 * B[i, j]

@poly.nest
def rows(A: f32[M, N], B: f32[M, N], x: f32[1]):
    for i in range(M):
        t: f32 = x[0] * 2
        for j in range(N):
            B[i, j] = A[i, j] * t

@poly.nest
def steps(x: f32[N], y: f32[N]):
    for t in range(T):
        for i in range(1, N - 1):
            y[i] = x[i - 1] + x[i + 1]
        for i in range(1, N - 1):
            x[i] = y[i]

@poly.nest
def triangle(A: f32[M, N], x: f32[1]):
    for i in range(M):
        for j in range(i, N):
            x[0] = x[0] * A[i, j]
"""

CASES = [
    ("copy", {"M": "LONG", "N": 0}),
    ("total", {"M": "LONG", "N": 0, "K": 1}),
    ("total", {"M": "LONG", "N": 2, "K": 0}),
    ("total", {"M": 2, "N": "LONG", "K": 0}),
    ("product", {"M": "LONG", "N": 0, "K": 0}),
    ("product", {"M": 0, "N": "LONG", "K": 0}),
    ("product", {"M": 0, "N": 0, "K": "LONG"}),
    ("two", {"M": "LONG", "N": 0}),
    ("rows", {"M": "LONG", "N": 0}),
    ("steps", {"N": 0, "T": "LONG"}),
    ("triangle", {"M": "LONG", "N": 0}),
]

CALL = """
def call(function, nest, sizes):
    values = {name: LONG if value == "LONG" else value for name, value in sizes.items()}
    arrays = [np.ones([extent.evaluate(values) for extent in a.shape], np.float32) for a in nest.arguments]
    told = {name for a in nest.arguments for extent in a.shape for name in extent.names}
    function(*arrays, **{name: value for name, value in values.items() if name not in told})
    print([float(a.ravel()[0]) for a in arrays if a.size])
"""

KERNELS = """
for name, sizes in CASES:
    nest = globals()[name]
    loop = bands(nest.tree)[0].name
    for threads in (1, 2):
        for made in (poly.schedule(nest), poly.schedule(nest).split(**{loop: 4}), None):
            call(poly.compile(nest, schedule=made, threads=threads), nest, sizes)
    call(nest, nest, sizes)
    if name in ("copy", "rows"):  # where an output has elements, Python walks the loops as they are
        call(nest.reference, nest, sizes)
"""

DEVICE = """
for name, sizes in CASES:
    nest = globals()[name]
    call(poly.compile(nest, target="opencl:pocl"), nest, sizes)
    call(poly.compile(nest, schedule=poly.schedule(nest), target="opencl:pocl"), nest, sizes)
"""


def test_kernels_return_at_once(tmp_path: Path) -> None:
    said = output(tmp_path, f"{NESTS}{CALL}\nCASES = {CASES!r}\n{KERNELS}").splitlines()
    assert set(said) == {"[]", "[1.0]", "[3.0]"} and len(said) >= 7 * len(CASES)


def test_the_outputs_with_elements_are_right(tmp_path: Path) -> None:
    """What has nothing to do in one loop still does the rest."""
    cases = [case for case in CASES if case[0] == "two"]
    said = output(tmp_path, f"{NESTS}{CALL}\nCASES = {cases!r}\n{KERNELS}").splitlines()
    assert set(said) == {"[3.0]"} and len(said) == 7


def test_device_kernels_return_at_once(tmp_path: Path) -> None:
    device()
    said = output(tmp_path, f"{NESTS}{CALL}\nCASES = {CASES!r}\n{DEVICE}").splitlines()
    assert set(said) == {"[]", "[1.0]", "[3.0]"} and len(said) == 2 * len(CASES)


HEADER = """
#include <stdio.h>
#define LONG INT64_C(10000000000000)
int main(void)
{
  float x[1] = {1};
  printf("%d %g\\n", (int)all_total(LONG, 0, 1, NULL, x, 2), x[0]);
  printf("%d %g\\n", (int)all_total(LONG, 2, 0, NULL, x, 1), x[0]);
  printf("%d\\n", (int)all_rows(LONG, 0, NULL, NULL, x, 2));
  printf("%d\\n", (int)all_product(LONG, 0, 0, NULL, NULL, NULL, 2));
  printf("%d\\n", (int)all_product(0, LONG, 0, NULL, NULL, NULL, 2));
  printf("%d %g\\n", (int)all_triangle(LONG, 0, NULL, x, 1), x[0]);
  return 0;
}
"""


def test_headers_return_at_once(tmp_path: Path) -> None:
    kernels = "[poly.compile(n) for n in (total, rows, product, triangle)]"
    write = f"poly.write_header(sys.argv[1], {kernels}, prefix='all', dense=True)"
    header, program, built = (tmp_path / name for name in ("all.h", "program.c", "program"))
    output(tmp_path, f"{NESTS}\nsys.argv[1:] = [{str(header)!r}]\n{write}")
    at_any_level(header)
    program.write_text(f'#define ALL_IMPLEMENTATION\n#include "{header}"\n{HEADER}')
    subprocess.run(["gcc", *quick(GCC), "-fopenmp", str(program), "-o", str(built), "-lm"], check=True)
    done = subprocess.run([str(built)], check=True, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.splitlines() == ["0 1", "0 1", "0", "0", "0", "0 1"]
