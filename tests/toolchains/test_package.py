"""`poly build`: the wheel is installed, and used where neither poly nor a compiler can be found."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from headers import need_tool, once, succeed

import poly
from codegen.package.wheel.archive import platform_tag
from poly import f32, f64
from poly.commands import poly as command

NESTS = """
import poly
from poly import bf16, f16, f32, f64, i32

M, N, K, T = poly.sizes("M N K T")


@poly.nest
def product(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def smooth(factor: f64, x: f64[N + 2], y: f64[N]):
    for t in range(T):
        for i in range(N):
            y[i] = factor * (x[i] + x[i + 1] + x[i + 2])


@poly.nest
def counted(n: i32, x: i32[2 * N]):
    for i in range(2 * N):
        x[i] = x[i] + n


@poly.nest
def halved(x: bf16[N], y: f16[N]):
    for i in range(N):
        y[i] = f16(x[i] / 2)
        x[i] = -x[i]
"""

USE = """
import os, shutil, sys
sys.modules["poly"] = sys.modules["codegen"] = sys.modules["microkernels"] = sys.modules["islpy"] = None
assert shutil.which("cc") is shutil.which("gcc") is None
import numpy as np
from ml_dtypes import bfloat16
import kernels

rng = np.random.default_rng(0)
isas = ["portable"]
for isa in ("avx2", "avx512", "neon"):
    try:
        kernels.force_isa(isa)
        isas.append(kernels.isa_in_use())
    except ValueError as error:
        assert isa in str(error), error
for isa in isas:
    kernels.force_isa(isa)
    assert kernels.isa_in_use() == isa
    for m, n, k in ((16, 16, 16), (13, 7, 9), (1, 1, 1), (0, 3, 2), (40, 33, 50)):
        for gap in (0, 3):
            a, b, c = (rng.random((r, s + gap), np.float32)[:, :s] for r, s in ((m, k), (k, n), (m, n)))
            expected = c + a @ b
            kernels.product(a, b, C=c, threads=2)
            np.testing.assert_allclose(c, expected, rtol=1e-5)
kernels.force_isa(None)
x, y = rng.random(12), np.zeros(10)
kernels.smooth(0.5, x, memoryview(y), T=1)
np.testing.assert_allclose(y, (x[:-2] + x[1:-1] + x[2:]) / 2)
z = np.arange(6, dtype=np.int32)
kernels.counted(3, z)
assert z.tolist() == [3, 4, 5, 6, 7, 8]
bits, halves = np.array([0x3f80, 0xc000], np.uint16), np.zeros(2, np.float16)
kernels.halved(bits, halves)
assert halves.tolist() == [0.5, -1] and bits.tolist() == [0xbf80, 0x4000]
kernels.halved(bits.view(bfloat16), halves)
assert halves.tolist() == [-0.5, 1]

a, b, c = (np.ones((4, 4), np.float32) for _ in range(3))
fixed = np.ones((4, 4), np.float32)
fixed.flags.writeable = False
wrong = [
    (lambda: kernels.product(a.astype(float), b, c), "A has dtype float64; expected A: f32[M, K]. Remedy: A.astype"),
    (lambda: kernels.product(a, b, c.astype(float)), "and copy it back after the call: C[...] = it"),
    (lambda: kernels.product(a, b[:3], c), "B has shape (3, 4); expected (4, 4): it is B: f32[K, N], and M = 4"),
    (lambda: kernels.product(a, b[0], c), "B has 1 dimensions, shape (4,); expected B: f32[K, N]"),
    (lambda: kernels.product(a, b.T[:, ::2], c), "B is not contiguous"),
    (lambda: kernels.product(a, b, fixed), "C is read-only, and the kernel writes it"),
    (lambda: kernels.product(a, b, a), "C is written and shares memory with A. Remedy: A.copy()"),
    (lambda: kernels.product(a, [1, 2], c), "B is list; expected B: f32[K, N], as a NumPy array"),
    (lambda: kernels.product(a, b, c, threads=0), "threads must be an integer from 1 to 256; got 0"),
    (lambda: kernels.smooth(0.5, x, y, T=-1), "the size T must be an integer from 0"),
    (lambda: kernels.smooth(None, x, y, T=1), "factor must be a number, factor: f64; got None"),
    (lambda: kernels.smooth(0.5, x[:1], y, T=1), "x has shape (1,); expected (12,): it is x: f64[N + 2], and N = 10"),
    (lambda: kernels.counted(3, z[:5]), "dimension 0 of x is 5, for which no N fits"),
    (lambda: kernels.counted(2**40, z), "n = 1099511627776 does not fit in int32"),
    (lambda: kernels.halved(halves, halves), "x has dtype float16; expected x: bf16[N]. Remedy: x.astype(ml_dtypes."),
    (lambda: kernels.product(np.ma.masked_array(a), b, c), "A is a masked array"),
]
for call, message in wrong:
    try:
        call()
    except kernels.ArgumentError as error:
        assert message in str(error), (message, str(error))
    else:
        raise AssertionError(message)
assert (c == 1).all() and isinstance(kernels.ArgumentError(), ValueError)
print(len(isas), kernels.product.__doc__)
"""


@pytest.fixture(scope="module")
def built() -> Path:
    """The directory of a package with a special size, made once for all workers."""

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "kernels.py").write_text(NESTS)
        options = ["--special", "M=16,N=16,K=16", "--isa", "avx2,portable", "--version", "2.1"]
        done = CliRunner().invoke(command, ["build", str(folder / "kernels.py"), "-o", str(folder / "out"), *options])
        assert done.exit_code == 0, done.output

    return once("package", NESTS, make)


def test_it_works_without_poly_and_without_a_compiler(built: Path, tmp_path: Path) -> None:
    """Installed by pip, on each instruction set of this CPU, with wrong arguments too."""
    (wheel,) = (built / "out").glob("*.whl")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    succeed([*install, tmp_path / "site", wheel])
    done = subprocess.run(
        [sys.executable, "-c", USE],
        env={"PYTHONPATH": str(tmp_path / "site"), "PATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    number, _, contract = done.stdout.partition(" ")
    assert int(number) >= 1
    assert "C[i, j] += A[i, k] * B[k, j]" in contract
    assert "M = 16, N = 16, K = 16" in contract or "M = 16, K = 16, N = 16" in contract


def test_the_wheel_is_whole(built: Path) -> None:
    """Its record names each file, its types are there, its header is that of the library, and its tag is true."""
    (path,) = (built / "out").glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        assert wheel.testzip() is None
        record = wheel.read("kernels-2.1.dist-info/RECORD").decode().splitlines()
        assert {row.split(",")[0] for row in record} == set(wheel.namelist())
        stub = wheel.read("kernels/__init__.pyi").decode()
        library = wheel.read("kernels/_kernels.so")
        assert "kernels/py.typed" in wheel.namelist()
        assert wheel.read("kernels/kernels.h") == (built / "out" / "kernels" / "kernels.h").read_bytes()
    assert "def smooth(factor: float, x: NDArray[float64], y: NDArray[float64], *, T: int" in stub
    assert platform_tag(library) in path.name
    assert re.match(r"manylinux_2_\d+_|linux_", platform_tag(library))


def test_the_same_kernels_give_the_same_wheel(built: Path, tmp_path: Path) -> None:
    """It is also importable from the directory that it was written into."""

    @poly.nest
    def doubled(x: f64[4]):
        for i in range(4):
            x[i] = 2 * x[i]

    kernel = poly.compile(doubled, threads=1, records=False)
    first, second = (poly.write_package(tmp_path / name, kernel, isas=["portable"]) for name in ("one", "two"))
    assert first.read_bytes() == second.read_bytes()
    lines = "import doubled, numpy as np; x = np.arange(4.0); doubled.doubled(x); print(*x)"
    assert succeed([sys.executable, "-c", lines], cwd=first.parent) == "0.0 2.0 4.0 6.0\n"


def test_what_cannot_be_a_package(tmp_path: Path) -> None:
    @poly.nest
    def force_isa(x: f32[4]):
        for i in range(4):
            x[i] = 2 * x[i]

    kernel = poly.compile(force_isa, threads=1, records=False)
    for keywords, message in (
        ({"name": "numpy"}, "would hide Python's own"),
        ({"name": "json"}, "would hide Python's own"),
        ({"name": "a-b"}, "'a-b' is no name of a package|a-b is no name of a package"),
        ({"name": "good", "version": "new"}, "'new' is no version"),
        ({"name": "good"}, "force_isa"),
    ):
        with pytest.raises(poly.SpecError, match=message):
            poly.write_package(tmp_path / "out", kernel, **keywords)
    with pytest.raises(poly.SpecError, match="is no kernel"):
        poly.write_package(tmp_path / "out", [np.zeros(3)])
    assert not (tmp_path / "out").exists()


PROGRAM = """
#include "own.h"
int main(void)
{
    double x[4] = {1, 2, 3, 4};
    return own(x, 1) == OWN_OK && x[3] == 8 ? 0 : 1;
}
"""
PLAIN = "#define OWN_IMPLEMENTATION\n#include <own.h>\n"
LISTS = """
cmake_minimum_required(VERSION 3.20)
project(use C)
find_package(own 1.2 CONFIG REQUIRED)
add_executable(use main.c own.c)
target_link_libraries(use PRIVATE own::own)
"""


@pytest.fixture(scope="module")
def installed() -> Path:
    """A prefix with a header, its pkg-config file and its CMake package, and a program."""

    def make(folder: Path) -> None:
        folder.mkdir()
        nest = '"void own(double x[4]) { for (int i = 0; i < 4; i++) x[i] = 2 * x[i]; }"'
        (folder / "own.py").write_text(f"import poly\nown = poly.from_c({nest})\n")
        prefix = folder / "prefix"
        (prefix / "include").mkdir(parents=True)
        files = ["--pkgconfig", str(prefix / "lib/pkgconfig"), "--cmake", str(prefix / "lib/cmake/own")]
        options = ["--isa", "portable", "--version", "1.2.3", "--threads", "pthreads", "--cores", "2"]
        arguments = ["header", str(folder / "own.py:own"), "-o", str(prefix / "include/own.h"), *files, *options]
        done = CliRunner().invoke(command, arguments)
        assert done.exit_code == 0, done.output
        prefix.rename(folder / "moved")  # the files find each other wherever they are
        (folder / "main.c").write_text(PROGRAM)
        (folder / "own.c").write_text(PLAIN)
        (folder / "CMakeLists.txt").write_text(LISTS)

    return once("installed", LISTS, make)


def test_pkg_config_finds_a_header(installed: Path, tmp_path: Path) -> None:
    need_tool("pkg-config")
    env = {"PKG_CONFIG_PATH": str(installed / "moved/lib/pkgconfig"), "PATH": "/usr/bin:/bin"}
    assert succeed(["pkg-config", "--modversion", "own"], env=env).strip() == "1.2.3"
    flags = succeed(["pkg-config", "--cflags", "--libs", "own"], env=env).split()
    assert {"-pthread", "-lm"} <= set(flags)
    succeed(["cc", installed / "main.c", installed / "own.c", *flags, "-o", tmp_path / "use"])
    succeed([tmp_path / "use"])


def test_cmake_finds_a_header(installed: Path, tmp_path: Path) -> None:
    need_tool("cmake")
    prefix = f"-DCMAKE_PREFIX_PATH={installed / 'moved'}"
    succeed(["cmake", "-S", installed, "-B", tmp_path, prefix])
    succeed(["cmake", "--build", tmp_path])
    succeed([tmp_path / "use"])
    (installed / "newer").mkdir(exist_ok=True)
    (installed / "newer" / "CMakeLists.txt").write_text(LISTS.replace("own 1.2 ", "own 1.3 "))
    refused = subprocess.run(
        ["cmake", "-S", installed / "newer", "-B", tmp_path / "newer", prefix], capture_output=True, text=True
    )
    assert refused.returncode != 0 and "1.2.3" in refused.stderr
