"""A user's own microkernels: in schedules, in every layout of a contract, in headers, the cache, and by entry points.

tests/test_microkernels_ladder.py checks their C functions alone.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headers import need_isa
from own_kernels import lesson
from shared_nests import matmul, nt

import poly
from microkernels import plugins
from microkernels.custom_kernel import CustomKernel
from microkernels.isa import host_machine
from poly import f32, f64, i32

M, N, K, L = poly.sizes("M N K L")


@poly.nest
def tn(A: f64[K, M], B: f64[K, N], C: f64[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[k, i] * B[k, j]


@poly.nest
def vector(x: f32[K], B: f32[K, N], y: f32[N]):
    for j in range(N):
        for k in range(K):
            y[j] += x[k] * B[k, j]


@poly.nest
def pairs(A: f32[M, K, L], B: f32[K, N, L], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                for q in range(L):
                    C[i, j] += A[i, k, q] * B[k, j, q]


@dataclass(frozen=True)
class Used:
    """A contract with its tile, and a nest that computes the same with a schedule for it."""

    contract: poly.Function
    tile: dict[str, int]
    nest: poly.Function
    steps: Callable[[poly.Schedule, str], poly.Schedule]


@poly.nest
def scaled(X: f32[M, N], Y: f32[N, K], out: f32[M, K], alpha: f32):
    for p in range(M):
        for q in range(K):
            out[p, q] = 0
            for r in range(N):
                out[p, q] += alpha * X[p, r] * Y[r, q]


def in_place(**tiles: int) -> Callable[[poly.Schedule, str], poly.Schedule]:
    return lambda s, name: s.tile(**tiles).microkernel(name)


CASES = {
    "matmul": Used(matmul, {"i": 3, "j": 8}, matmul, in_place(i=3, j=8)),
    "matmul, fixed depth": Used(matmul, {"i": 2, "j": 4, "k": 3}, matmul, in_place(i=2, j=4, k=3)),
    "nt": Used(nt, {"i": 4, "j": 3}, nt, in_place(i=4, j=3)),
    "nt, fixed depth, threads": Used(
        nt, {"i": 1, "j": 5, "k": 4}, nt, lambda s, name: in_place(i=1, j=5, k=4)(s, name).parallel("i_tile")
    ),
    "panels of both": Used(
        tn,
        {"i": 3, "j": 4},
        nt,
        lambda s, name: s.tile(i=3, j=4).pack("B", at="j_tile").pack("A", at="i_tile").microkernel(name),
    ),
    "tiles of one result": Used(nt, {"i": 1, "j": 1}, nt, in_place(i=1, j=1)),
    "a vector": Used(vector, {"j": 6}, vector, in_place(j=6)),
    "two loops of the reduction": Used(pairs, {"i": 2, "j": 3, "q": 2}, pairs, in_place(i=2, j=3, q=2)),
    "a factor, and results that begin at 0": Used(
        matmul,
        {"i": 4, "j": 4},
        scaled,
        lambda s, name: s.distribute("p").tile(p_2=4, q_2=4).pack("Y", at="p_2_tile").microkernel(name, initial="S0"),
    ),
}


def text_for(contract: poly.Nest, tile: dict[str, int]) -> str:
    """C text of the function: the contract's own loops. The declaration is the one that an error shows."""
    with pytest.raises(poly.SpecError, match="the text must define the function") as caught:
        poly.microkernel(contract, c="", isa="portable", tile=tile)
    declared = str(caught.value).rpartition("void ")[2].removesuffix(" { … }")
    (statement,) = contract.statements
    counts = {loop: str(tile.get(loop, loop)) for loop in statement.iterators}
    loops = [f"for (int64_t _{loop} = 0; _{loop} < {count}; _{loop}++)" for loop, count in counts.items()]

    def element(load: Any) -> str:
        *others, last = map(str, load.indices)
        return f"{load.array}[{' + '.join((*(f'_{loop} * {load.array}_{loop}' for loop in others), f'_{last}'))}]"

    factors = [load for load in statement.reads if load.array != statement.target.array]
    sum_ = f"{element(statement.target)} += {element(factors[0])} * {element(factors[1])};"
    return f"static void {declared}\n{{\n    {' '.join(loops)}\n        {sum_}\n}}\n"


def made(used: Used) -> CustomKernel:
    return poly.microkernel(used.contract, c=text_for(used.contract, used.tile), isa="portable", tile=used.tile)


def guarded(shape: tuple[int, ...], dtype: Any, value: float) -> tuple[Any, Any]:
    """An array between others' elements, and the whole."""
    whole = np.full(int(np.prod(shape)) + 64, 77, dtype)
    inside = whole[32:-32].reshape(shape)
    inside[...] = value
    return inside, whole


def sizes_of(nest: poly.Nest, tile: dict[str, int]) -> list[dict[str, int]]:
    """Sizes around whole tiles; loops without a number in the tile have 1, 4 and 9 steps."""
    values = dict.fromkeys(nest.sizes, (1, 4, 9))
    sizes = {"i": "M", "j": "K" if nest is scaled else "N", "k": "K", "q": "L"}
    for loop, most in tile.items():
        values[sizes[loop]] = tuple(sorted({1, max(1, most - 1), most, most + 1, 2 * most + 1}))
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


@pytest.mark.parametrize("name", CASES)
def test_a_schedule_with_it_computes_what_the_loops_do(name: str) -> None:
    """At sizes around whole tiles: NaN where the nest sets results to 0, nothing changed beside them."""
    used = CASES[name]
    schedule = used.steps(poly.schedule(used.nest), made(used).name)
    kernel = poly.compile(used.nest, schedule=schedule, target="c:portable", threads=2)
    rng = np.random.default_rng(1)
    for sizes in sizes_of(used.nest, used.tile):
        given: list[Any] = []
        for array in used.nest.arguments:
            if array.kind == "scalar":
                given.append(0.5)
                continue
            shape = tuple(int(str(extent.substitute(sizes))) for extent in array.shape)
            given.append(rng.integers(-4, 5, shape).astype(array.dtype.numpy_name))
        target = used.nest.arguments.index(used.nest.array(next(iter(used.nest.written))))
        start = np.nan if len(used.nest.statements) > 1 else 2.0
        expected = list(given)
        expected[target] = np.full_like(given[target], start)
        used.nest.reference(*expected)
        given[target], whole = guarded(given[target].shape, given[target].dtype, start)
        kernel(*given)
        np.testing.assert_array_equal(given[target], expected[target], err_msg=str(sizes))
        assert (whole[:32] == 77).all() and (whole[-32:] == 77).all(), sizes


@pytest.mark.parametrize("which", ["outer", "dot4"])
def test_the_lessons_tiles_at_all_sizes_up_to_twice_the_tile(which: str) -> None:
    module = lesson()
    kernel, nest = getattr(module, f"{which}_tile"), getattr(module, which)
    need_isa(kernel.isa)
    schedule = poly.schedule(nest).tile(**kernel.tile).microkernel(kernel.name)
    compiled = poly.compile(nest, schedule=schedule, target=f"c:{kernel.isa.name}", threads=1)
    assert compiled.source.count(f"{kernel.c_name}_any(") == 2, "a function and its call"
    rng = np.random.default_rng(2)
    for m, n in product(range(1, 2 * kernel.tile["i"] + 2), range(1, 2 * kernel.tile["j"] + 2)):
        for k in (0, 1, 4, 9):
            a = rng.integers(-4, 5, (m, k)).astype(np.float32)
            b = rng.integers(-4, 5, (k, n) if which == "outer" else (n, k)).astype(np.float32)
            c, whole = guarded((m, n), np.float32, 1)
            compiled(a, b, c)
            np.testing.assert_array_equal(c, 1 + a @ (b if which == "outer" else b.T))
            assert (whole[:32] == 77).all() and (whole[-32:] == 77).all()


def test_what_is_asked_of_it() -> None:
    kernel = made(CASES["matmul, fixed depth"])
    assert (kernel.name, kernel.family, kernel.isa.name, kernel.dtype) == (
        "matmul_portable_2x4x3",
        "matmul",
        "portable",
        f32,
    )
    assert (kernel.rows, kernel.columns, kernel.depths) == (2, 4, (3,))
    assert kernel.tile == {"i": 2, "j": 4, "k": 3}
    assert str(kernel.contract) == "C[i, j] += A[i, k] * B[k, j]"
    assert (kernel.contract.rows, kernel.contract.columns, kernel.contract.reduce) == ("i", "j", ("k",))
    floats = "const float *A, int64_t A_i, const float *B, int64_t B_k, float *C, int64_t C_i"
    assert kernel.prototype == f"void matmul_f32_portable_2x4x3({floats})"
    assert made(CASES["matmul"]).prototype == f"void matmul_f32_portable_3x8(int64_t k, {floats})"


def test_another_text_is_another_kernel() -> None:
    """The cache knows a schedule by the names in it, and what they stand for: text, tile, contract."""
    used = CASES["matmul"]
    arrays = [np.ones((3, 2), np.float32), np.ones((2, 8), np.float32)]
    for factor in (1, 3):
        text = text_for(matmul, used.tile).replace("+=", f"+= {factor} *")
        kernel = poly.microkernel(matmul, c=text, isa="portable", tile=used.tile)
        schedule = used.steps(poly.schedule(matmul), kernel.name)
        c = np.zeros((3, 8), np.float32)
        poly.compile(matmul, schedule=schedule, target="c:portable", threads=1)(*arrays, c)
        assert (c == 2 * factor).all()
        again = poly.Schedule.from_json(matmul, schedule.to_json())
        assert poly.compile(matmul, schedule=again, target="c:portable", threads=1).source.count(f"{factor} *")


def test_in_a_header(tmp_path: Path) -> None:
    used = CASES["nt"]
    kernel = made(used)
    schedule = used.steps(poly.schedule(nt), kernel.name)
    compiled = poly.compile(nt, schedule=schedule, target="c:portable", threads=1)
    poly.write_header(tmp_path / "nt.h", compiled, isas=("portable",))
    assert f"{kernel.c_name}_any(" in (tmp_path / "nt.h").read_text()
    for language, compiler, standard in (("c", "gcc", "c99"), ("c++", "g++", "c++11")):
        command = [compiler, f"-std={standard}", "-O2", "-Wall", "-Werror", "-fopenmp", "-x", language]
        program = tmp_path / f"try_{compiler}"
        subprocess.run([*command, "-D", "NT_SELFTEST", str(tmp_path / "nt.h"), "-o", str(program), "-lm"], check=True)
        subprocess.run([str(program)], check=True, capture_output=True)


DPPS = """
#include <smmintrin.h>

static inline void products_f32_portable_1x1x4(const float *A, int64_t A_i, const float *B, int64_t B_j,
                                               float *C, int64_t C_i)
{
    (void)A_i, (void)B_j, (void)C_i;
    *C += _mm_cvtss_f32(_mm_dp_ps(_mm_loadu_ps(A), _mm_loadu_ps(B), 0xf1));
}
"""


@poly.nest
def products(A: f32[M, K], B: f32[N, K], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[j, k]


@pytest.mark.skipif(host_machine() != "x86_64", reason="the text is in intrinsics of another CPU family")
def test_what_a_text_needs_beside_its_instruction_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real instruction for sums of four products, which portable code isn't compiled for."""

    def kernel(**needs: str) -> poly.Kernel:
        tile = {"i": 1, "j": 1, "k": 4}
        made = poly.microkernel(products, c=DPPS, isa="portable", tile=tile, needs=needs)
        schedule = poly.schedule(products).tile(**tile).microkernel(made.name)
        return poly.compile(products, schedule=schedule, target="c:portable", threads=1)

    with pytest.raises(poly.ToolchainError):
        kernel()(*(np.ones((4, 4), np.float32) for _ in range(3)))
    a, b = (np.arange(n * 9, dtype=np.float32).reshape(n, 9) for n in (5, 3))
    c = np.ones((5, 3), np.float32)
    built = kernel(sse4_1="-msse4.1")
    built(a, b, c)
    np.testing.assert_array_equal(c, 1 + a @ b.T)
    with pytest.raises(poly.TargetError, match="needs sse4_1 beside portable, and a header"):
        poly.write_header(tmp_path / "products.h", built, isas=("portable",))
    monkeypatch.setattr("microkernels.isa.host_cpu_flags", lambda: frozenset({"avx2", "fma"}))
    with pytest.raises(poly.TargetError, match=r"products_portable_1x1x4\) cannot run here: this CPU lacks sse4_1"):
        kernel(sse4_1="-msse4.1")


def test_an_installed_package_offers_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a process of its own, which asks for a name that nothing there has registered."""
    (tmp_path / "offered.py").write_text(
        "import poly\n"
        "from poly import f32\n"
        'M, N, K = poly.sizes("M N K")\n'
        "@poly.nest\n"
        "def given(A: f32[M, K], B: f32[N, K], C: f32[M, N]):\n"
        "    for i in range(M):\n"
        "        for j in range(N):\n"
        "            for k in range(K):\n"
        "                C[i, j] += A[i, k] * B[j, k]\n"
        "TEXT = '''\n"
        "static void given_f32_portable_2x2x2(const float *A, int64_t A_i, const float *B, int64_t B_j,\n"
        "                                     float *C, int64_t C_i)\n"
        "{\n    (void)A, (void)A_i, (void)B, (void)B_j, (void)C, (void)C_i;\n}\n'''\n"
        'kernel = poly.microkernel(given, c=TEXT, isa="portable", tile={"i": 2, "j": 2, "k": 2})\n'
    )
    info = tmp_path / "offered-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[poly.microkernels]\ngiven_portable_2x2x2 = offered:kernel\nwrong_portable_1x1 = offered:TEXT\n"
    )
    (tmp_path / "user.py").write_text(
        "import sys, poly\n"
        "from poly import f32\n"
        'M, N, K = poly.sizes("M N K")\n'
        "@poly.nest\n"
        "def nt(A: f32[M, K], B: f32[N, K], C: f32[M, N]):\n"
        "    for i in range(M):\n"
        "        for j in range(N):\n"
        "            for k in range(K):\n"
        "                C[i, j] += A[i, k] * B[j, k]\n"
        'assert "offered" not in sys.modules\n'
        "tiled = poly.schedule(nt).tile(i=2, j=2, k=2)\n"
        'print(tiled.microkernel("given_portable_2x2x2"))\n'
        'for name in ("wrong_portable_1x1", "given_portable_2x2x1"):\n'
        "    try:\n"
        "        tiled.microkernel(name)\n"
        "    except poly.PolyError as error:\n"
        "        print(error)\n"
    )
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{root}")
    done = subprocess.run([sys.executable, tmp_path / "user.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "# microkernel given_portable_2x2x2" in done.stdout
    assert (
        "wrong_portable_1x1 of the group poly.microkernels, offered:TEXT of offered 1.0, is no microkernel of that name"
        in done.stdout
    )
    assert "unknown microkernel 'given_portable_2x2x1': the closest are given_portable_2x2x2" in done.stdout


def test_none_is_looked_for_where_poly_has_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> Any:
        raise AssertionError("the entry points were read")

    monkeypatch.setattr(plugins, "entry_points", refuse)
    schedule = poly.schedule(matmul).tile(i=6, j=8).microkernel("gemm_portable_6x8")
    poly.compile(matmul, schedule=schedule, target="c:portable", threads=1)


@poly.nest
def twice(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += 2 * A[i, k] * B[k, j]


@poly.nest
def batched(A: f32[L, M, K], B: f32[L, K, N], C: f32[L, M, N]):
    for b in range(L):
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[b, i, j] += A[b, i, k] * B[b, k, j]


@poly.nest
def shifted(A: f32[M + 1, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i + 1, k] * B[k, j]


@poly.nest
def integers(A: i32[M, K], B: i32[K, N], C: i32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def gemm(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def alphas(alpha: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += alpha[i, k] * B[k, j]


TILE = {"i": 3, "j": 8}
TEXT = "static void matmul_f32_portable_3x8(void)\n{\n}\n"


@pytest.mark.parametrize(
    ("contract", "change", "error", "message"),
    [
        (twice, {}, poly.SpecError, "twice is no contract of a microkernel: it must be one statement"),
        (batched, {}, poly.SpecError, "batched is no contract"),
        (scaled, {}, poly.SpecError, "scaled is no contract"),
        (integers, {}, poly.SpecError, "integers: a microkernel computes in f32 or f64, not in i32"),
        (shifted, {}, poly.SpecError, "shifted: each index of A must be a loop"),
        (gemm, {}, poly.SpecError, "gemm is a family of poly's own microkernels"),
        (alphas, {}, poly.SpecError, "alphas: alpha can't be a name in a contract"),
        ("matmul", {}, poly.SpecError, "'matmul'"),
        (matmul, {"isa": "avx51"}, poly.TargetError, "unknown instruction set 'avx51'.*Did you mean 'avx512'"),
        (matmul, {"isa": "opencl512"}, poly.TargetError, "a microkernel in C is for one of"),
        (matmul, {"isa": 512}, poly.TargetError, "unknown instruction set 512"),
        (matmul, {"tile": {"i": 3}}, poly.SpecError, "how many iterations of j does one call compute"),
        (matmul, {"tile": {**TILE, "x": 1}}, poly.SpecError, "matmul has no loop x. Its loops: i, j, k"),
        (matmul, {"tile": {"i": 0, "j": 8}}, poly.SpecError, "i must be from 1 to 1024, not 0"),
        (matmul, {"tile": {"i": 3, "j": "8"}}, poly.SpecError, "tile: j must be an integer"),
        (matmul, {"tile": [3, 8]}, poly.SpecError, "tile must be a dictionary"),
        (matmul, {"needs": ["sse4_1"]}, poly.SpecError, "needs must be a dictionary such as"),
        (matmul, {"needs": {"sse4_1": "-O3; true"}}, poly.SpecError, "needs must be a dictionary such as"),
        (matmul, {"c": 5}, poly.SpecError, "c must be a text"),
        (matmul, {"c": f"{TEXT}/* \ud800 */\n"}, poly.SpecError, "the text has '.ud800', which no file"),
        (matmul, {"c": f"{TEXT}\0"}, poly.SpecError, "the text has '.x00'"),
        (
            matmul,
            {"c": TEXT.replace("matmul_", "mm_")},
            poly.SpecError,
            "the text must define the function of matmul_portable_3x8",
        ),
        (
            matmul,
            {"c": "static void matmul_f32_portable_3x8(void);\n"},
            poly.SpecError,
            "the text must define the function",
        ),
        (
            matmul,
            {"c": "static void matmul_f32_portable_3x8(void) {\n"},
            poly.SpecError,
            "the text ends within 'static void",
        ),
    ],
)
def test_what_is_refused(contract: Any, change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        poly.microkernel(contract, **{"c": TEXT, "isa": "portable", "tile": TILE, **change})


def test_schedules_that_do_not_fit() -> None:
    name, deep, panels = (made(CASES[case]).name for case in ("matmul", "matmul, fixed depth", "panels of both"))
    with pytest.raises(poly.ScheduleError, match=r"loop i runs over more than 3 rows at a time.*split\(i=3\)"):
        poly.schedule(matmul).tile(i=4, j=8).microkernel(name)
    with pytest.raises(poly.ScheduleError, match=r"loop k runs over more than 3 steps at a time.*split\(k=3\)"):
        poly.schedule(matmul).tile(i=2, j=4).microkernel(deep)
    with pytest.raises(poly.TargetError, match=f"{panels} does not exist for f32: it computes in f64"):
        poly.schedule(matmul).tile(i=3, j=4).microkernel(panels)
    with pytest.raises(poly.ScheduleError, match=r"neighbours along loop j are not neighbours in B.*pack\(B\) before"):
        poly.schedule(nt).tile(i=3, j=4).microkernel(panels)
    with pytest.raises(poly.ScheduleError, match="contiguous along k, and panels are contiguous along i"):
        poly.schedule(matmul).tile(i=3, j=8).pack("A", at="i_tile").microkernel(name)
    with pytest.raises(poly.ScheduleError, match="contiguous along k, and panels are contiguous along i"):
        poly.schedule(matmul).tile(i=3, j=8).microkernel(name).pack("A", at="i_tile")
    with pytest.raises(poly.TargetError, match="is made for portable, and the target is 'c:avx2'"):
        schedule = poly.schedule(matmul).tile(i=3, j=8).microkernel(name)
        poly.compile(matmul, schedule=schedule, target="c:avx2")


@poly.nest
def shared(A: f32[M, K], B: f32[N, K], C: f32[M, N], D: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[j, k]
    for p in range(M):
        for q in range(N):
            for r in range(K):
                D[p, q] += A[p, r] * B[q, r]


def test_a_copy_for_another_statement_is_no_copy() -> None:
    name = made(CASES["matmul"]).name
    tiled = poly.schedule(shared).tile(i=3, j=8).tile(p=3, q=8).pack("B", at="j_tile").microkernel(name, "S0")
    with pytest.raises(poly.ScheduleError, match="B is not contiguous along q"):
        tiled.microkernel(name, "S1")


def test_all_loops_of_the_contract_are_needed() -> None:
    """A kernel for rows and columns is no use to a product without rows: it would never run whole tiles."""
    with pytest.raises(poly.ScheduleError, match="the innermost loops around S0 must be"):
        poly.schedule(vector).tile(j=8).microkernel(made(CASES["matmul"]).name)
