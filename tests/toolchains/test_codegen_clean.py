"""The functions generated for any nest are C99 and C++11 at once, and no compiler finds anything to warn of."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

import classic_nests
import doc_nests
import pytest
from contractions import Contraction
from headers import CLANG, CLANGXX, once
from programs import N, i, matmul, scaled_copy, single, softmax

import poly
from codegen.c import functions, used_helpers, workspace_function
from codegen.ir.expr import Binary, Cast, Const, Expr, FunctionCall, Index, Load, Predicate, Ternary, Unary
from codegen.ir.integer import Affine
from codegen.ir.loop_ir import LoopMark
from codegen.ir.program import Buffer, Program
from codegen.macros import definitions
from codegen.package.header.macros import BOUNDS, PTHREADS
from microkernels.dtypes import DTYPES
from microkernels.isa import ISA, ISAS, host_machine
from poly.analysis.bounds import check
from poly.compiled import followed
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest
from poly.ir.strided import with_strides
from poly.lowering.lower import lower

C_TYPES = {name: dtype for name, dtype in DTYPES.items() if name != "f16"}
"""Halves are OpenCL's."""

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
LANGUAGES = {"c": ("-std=c99",), "c++": ("-std=c++11", "-Drestrict=__restrict")}
COMPILERS = [
    (name, language)
    for family in (("gcc", "g++"), (CLANG.command[0], CLANGXX.command[0]))
    for name, language in zip(family, LANGUAGES, strict=True)
]
FORMS = {"set": "=", "add": "+=", "scaled": "alpha", "biased": "bias"}
SPECS = ("ik,kj->ij", "ki,jk->ij", "bik,bkj->bij", "dbea,ec->abcd", "ik,k->i", "abk,cdk->acbd", "ik,kj->ikj")
HOSTS = [isa for isa in ISAS.values() if isa.machine in ("", host_machine())]
"""The instruction sets that this machine's compiler knows."""

TOP = """#include <math.h>
#include <stddef.h>
#include <stdint.h>
#define PFX_MAX_THREADS 256
int omp_get_thread_num(void);"""
"""What the functions need. Not every compiler that knows OpenMP has its header."""

NESTS = """
def bytes_(A: i8[M, K], B: i8[K, N], C: i8[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]
            C[i, j] = max(C[i, j], abs(C[i, j]) - i)

def counts(A: i64[M], B: i64[M, N], S: i64[1]):
    for i in range(M):
        S[0] += abs(A[i])
        for j in range(N):
            B[i, j] = A[i] + 2 * B[i, j] - j

def own(A: f32[M, N], B: f32[M, N]):
    rows: f32[M]
    for i in range(M):
        rows[i] = 0
        for j in range(N):
            rows[i] += A[i, j]
        total = rows[i] / N
        for j in range(N):
            B[i, j] = A[i, j] - total

def template(this: f32[M, N], new: f32[N, M], operator: f32):
    for i in range(M):
        for bool_ in range(N):
            new[bool_, i] = operator * this[i, bool_]

def fifths(x: f32[5 * N + 7], y: f32[5 * N + 7], alpha: f32):
    for i in range(2, 5 * N, 5):
        if i < 3 * N or i > 4 * N:
            y[i] = alpha * x[i + 4] + i
        else:
            y[i - 1] += exp(x[i])

def nearest(X: f32[M, 2], Y: f32[N, 2], best: f32[M], at: i64[M]):
    for i in range(M):
        for j in range(N):
            d: f32 = abs(X[i, 0] - Y[j, 0]) + abs(X[i, 1] - Y[j, 1])
            if d < best[i]:
                best[i] = d
                at[i] = j

def least(x: f64[N], key: f64[1], first: i32[1]):
    for i in range(N):
        if x[i] <= key[0]:
            key[0] = x[i]
            first[0] = i

def least_of_integers(x: i32[N], key: i32[1], first: u8[1]):
    for i in range(N):
        first[0] = 7 if x[i] > key[0] else first[0]
        key[0] = max(key[0], x[i])

def sums_so_far(x: f64[M, N], y: f64[M, N], at: i32[N]):
    for i in range(M):
        for j in range(1, N):
            y[i, j] = y[i, j - 1] + x[i, j]
    for j in range(1, N):
        at[j] *= at[j - 1]
"""


def names_of(nest: Nest, name: str, isa: ISA, threads: int = 2, strided: bool = False) -> Program:
    """A nest's program in the default schedule, under a name of its own."""
    nest = check(with_strides(nest) if strided else nest)
    made = followed(nest, isa, threads, None)
    return replace(lower(made.nest, made.tree, isa), name=name)


def nests() -> Iterator[tuple[str, Nest]]:
    """Nests with symbolic sizes."""
    for module in (classic_nests, doc_nests):
        found = {name: value for name, value in vars(module).items() if isinstance(value, Nest)}
        yield from ((f"{name}_{module.__name__}", nest) for name, nest in found.items())
    known = {**DTYPES, **{size: poly.sizes(size) for size in "KMN"}}
    for text in NESTS.strip().split("\n\n"):
        nest = parse_text(Source(text + "\n", "clean.py", 1), known)
        yield nest.name, nest


def of_nests() -> Iterator[Program]:
    """Every nest for one instruction set after the other, some strided, some of known sizes for one thread."""
    for at, (name, nest) in enumerate(nests()):
        isa = HOSTS[at % len(HOSTS)]
        if at % 2 or nest not in classic_nests.SIZES:
            yield names_of(nest, name, isa, strided=at % 3 == 0)
        else:
            yield names_of(nest.with_sizes(classic_nests.SIZES[nest]), f"{name}_known", isa, threads=1)


def of_contractions() -> Iterator[Program]:
    """Microkernels: operands in place, in panels, gathered and scattered; of open and known sizes by turns."""
    for at, (spec, form) in enumerate(product(SPECS, FORMS)):
        contraction = Contraction(spec, poly.f64 if at % 2 else poly.f32, FORMS[form])
        nest, isa = contraction.nest(), HOSTS[at % len(HOSTS)]
        if (at + at // len(FORMS)) % 2:
            nest = nest.with_sizes(
                contraction.sizes({letter: (1, 30, 61, 7)[(at + n) % 4] for n, letter in enumerate("abcdeijk")})
            )
        yield names_of(nest, f"einsum_{at}", isa, threads=2 - at % 2)


def of_expressions() -> Iterator[Program]:
    """Each type met by each other type, in each operation, stored as every seventh type in turn."""
    loads: list[Expr] = [Load(f"in_{name}", (i,)) for name in C_TYPES]
    operands = [*loads, Const(3), Const(0.5), Index(i), Index(N - i), Index(Affine.of(7)), Load("scalar", ())]
    expressions: list[Expr] = [
        *operands,
        *(Unary("-", operand) for operand in operands),
        *(
            FunctionCall(function, (operand,))
            for function, operand in product(("abs", "tanh", "log", "floor"), operands)
        ),
        *(Binary(op, left, right) for op, left, right in product("+*/", loads, operands)),
        *(Binary("-", Index(i), operand) for operand in operands),
        *(FunctionCall("max", (Binary("+", left, right), right)) for left, right in product(loads, operands)),
        *(
            Ternary(Predicate("<", FunctionCall("max", (left, Const(1))), right), right, left)
            for left, right in product(loads, operands)
        ),
        *(Cast(dtype, operand) for dtype, operand in product(C_TYPES.values(), operands)),
    ]
    inputs = [Buffer(f"in_{name}", dtype, (N,), "in") for name, dtype in C_TYPES.items()]
    scalar = Buffer("scalar", DTYPES["i32"], (), "scalar")
    for at, (expression, dtype) in islice(enumerate(product(expressions, C_TYPES.values())), 0, None, 7):
        op = ("=", "+", "*", "min", "max")[at // len(C_TYPES) % 5]
        program = single(expression, [*inputs, scalar, Buffer("y", dtype, (N,), "inout")], op)
        yield replace(program, name=f"expression_{at}")


def other_ways(programs: Iterable[Program]) -> Iterator[str]:
    """The functions of those with parallel loops, for POSIX threads and for one thread."""
    for program in programs:
        if "omp parallel" in functions(program):
            yield functions(replace(program, name=f"{program.name}_pthreads"), "", "pthreads")
            yield functions(replace(program, name=f"{program.name}_none"), "", "none")


def by_hand() -> Iterator[Program]:
    """The programs of other tests: private scratch, marks, lanes."""
    marks = [LoopMark("i_tile", parallel=True), LoopMark("j", vectorize=True), LoopMark("k", unroll=4)]
    for at, program in enumerate((matmul(), matmul(marks), matmul(marks, "ijk", size=64), scaled_copy(), softmax())):
        yield replace(program, name=f"by_hand_{at}")


@pytest.fixture(scope="module")
def corpus() -> Path:
    """The functions of all programs in one file, made once for all workers of a run."""
    return once("corpus", "nests of this file", write_corpus) / "nests.c"


def write_corpus(folder: Path) -> None:
    """Write `nests.c`, and a header with the microkernels, which may warn."""
    folder.mkdir()
    programs = [*of_nests(), *of_contractions(), *of_expressions(), *by_hand()]
    texts = [functions(program, bounds=at % 2 == 1) for at, program in enumerate(programs)]
    texts += map(workspace_function, programs)
    code = "\n\n".join([*texts, *other_ways(programs)])
    preambles = dict.fromkeys(program.preamble for program in programs)
    (folder / "microkernels.h").write_text("\n".join(["#pragma GCC system_header", *preambles]))
    helpers = used_helpers(code)
    parts = [TOP, definitions(helpers + code), BOUNDS, PTHREADS, '#include "microkernels.h"', helpers, code]
    (folder / "nests.c").write_text("\n\n".join(parts) + "\n")


@pytest.mark.parametrize("openmp", [True, False], ids=["openmp", "debug"])
@pytest.mark.parametrize(("compiler", "language"), COMPILERS)
def test_no_compiler_warns(corpus: Path, compiler: str, language: str, openmp: bool) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    flags = [flag for isa in HOSTS for flag in isa.flags if not (flag.startswith("-mprefer") and "clang" in compiler)]
    more = ("-fopenmp",) if openmp else ("-Wno-unknown-pragmas", "-DPFX_DEBUG")
    command = [compiler, "-x", language, *LANGUAGES[language], *STRICT, *flags, *more, "-fsyntax-only", str(corpus)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
