"""Names that mean something to C, OpenCL or generated text: a nest may have any of them, in every sort of text.

The words are harvested from generated texts (`hostile_nests.words`) and from the compilers, and put into nests by lot.
"""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headers import CLANG, GCC, GXX, library, need, need_tool, newest, succeed
from hostile_nests import FUNCTION, KINDS, NEUTRAL, ROLES, arguments, named, plausible, words
from opencl_device import device

import poly
from codegen.names import c_name, function_name
from microkernels.prune import WORD, items_of
from poly.embed import write_header
from poly.embed.opencl import write_opencl

INCLUDED = ("math", "stdint", "stddef", "stdlib", "stdio", "string", "time", "float", "errno", "pthread", "immintrin", "complex")
"""Headers of C that generated texts include, or that a user includes before one."""
BY_HAND = (
    *("M_", "M", "FP", "I", "NULL", "errno", "INFINITY_", "NAN_", "imin", "fmaf", "int64_t", "uint", "float4", "half"),
    *("private", "new", "new_", "new__", "this", "class_", "unix", "linux", "restrict_", "constant", "kernel", "FILE"),
    *("x0", "x1", "d0", "d1", "c0", "c1", "S0", "S0_tile", "item", "group", "v", "left", "lane", "given", "call"),
    *("cl_mem", "get_group_id", "barrier", "CLK_LOCAL_MEM_FENCE", "uint64_t", "try_imin", "stdin", "printf", "status"),
)


def accepted(name: str) -> bool:
    """Whether the front end takes a name, by the words that it refuses with their line."""
    try:
        named("product", "f32", (name, *NEUTRAL[1:]), "nest")
    except (poly.SpecError, SyntaxError):
        return False
    return not name.lower().startswith(("hhq_", "pfx_", "fnq"))


def sets(count: int, seed: int, pool: list[str] | None = None) -> list[tuple[str, ...]]:
    """Names for all roles, by lot: words of generated texts, also as the texts make them of the other names."""
    rng = random.Random(seed)
    found = []
    known = pool or [*words(), *BY_HAND * 8]
    while len(found) < count:
        names: list[str] = []
        while len(names) < len(ROLES):
            name = plausible(rng.choice(known), names)
            if name not in names and name != "nest" and accepted(name):
                names.append(name)
        rng.shuffle(names)
        found.append(tuple(names))
    return found


SETS = 5


def each(seed: int) -> list[Any]:
    return [pytest.param(kind, dtype, seed, id=f"{kind}-{dtype}") for kind in KINDS for dtype in ("f32", "i32")]


def check(call: Any, nest: Any, told: str, strided: bool = False) -> None:
    """A call does what the loops as written do; `strided`: rows lie further apart than they must."""
    right, got = arguments(nest), arguments(nest)
    if strided:
        got = [_apart(value) for value in got]
    with np.errstate(all="ignore"):
        nest.reference(*right)
    call(*got)
    for a, b in zip(got, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, err_msg=told)


def _apart(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.ndim < 2:
        return value
    wide = np.zeros((value.shape[0], value.shape[1] + 3), value.dtype)
    wide[:, :-3] = value
    return wide[:, :-3]


@pytest.mark.parametrize(("kind", "dtype", "seed"), each(1))
def test_names_in_c(kind: str, dtype: str, seed: int) -> None:
    for names in sets(SETS, seed):
        nest = named(kind, dtype, names, "nest")
        for kernel in (poly.compile(nest, threads=2), poly.compile(nest, **dict(zip(nest.sizes, (23, 37, 19), strict=True)))):
            check(kernel, nest, f"{names}")
            check(kernel, nest, f"strided {names}", strided=True)


@pytest.mark.parametrize(("kind", "dtype", "seed"), each(2))
def test_names_in_opencl(kind: str, dtype: str, seed: int) -> None:
    for names in sets(SETS, seed):
        nest = named(kind, dtype, names, "nest")
        check(poly.compile(nest, target=device().label), nest, f"{names}")


@pytest.mark.parametrize(("kind", "dtype", "seed"), each(3))
def test_names_in_headers(kind: str, dtype: str, seed: int, tmp_path: Path) -> None:
    """C99 and C++11 without a warning, and the self-test runs right."""
    for number, names in enumerate(sets(2, seed)):
        nest = named(kind, dtype, names, "nest")
        threads = ("openmp", "pthreads", "none")[number % 3]
        path = write_header(tmp_path / f"h{number}.h", poly.compile(nest, threads=2), prefix="hhq", threads=threads, isas=["avx2"])
        for toolchain, standard in ((GCC, "c99"), (GXX, "c++11"), (CLANG, "c11")):
            need(toolchain)
            language, strict = toolchain.language, ("-Wall", "-Wextra", "-Werror")
            flags = [*strict, f"-std={standard}", "-D", "HHQ_SELFTEST", "-D", "HHQ_DEBUG", "-x", language, path]
            succeed([*toolchain.command, *flags, "-fsyntax-only"])
        binary = tmp_path / f"try{number}"
        succeed(["gcc", "-O1", "-x", "c", "-D", "HHQ_SELFTEST", path, "-o", binary, "-lm", "-pthread"])
        assert succeed([binary, "--quick"]).endswith("\nPASS\n"), names


@pytest.mark.parametrize(("kind", "dtype", "seed"), each(4))
def test_names_in_a_library_that_launches_kernels(kind: str, dtype: str, seed: int, tmp_path: Path) -> None:
    for number, names in enumerate(sets(3, seed)):
        nest = named(kind, dtype, names, "fnr")
        folder = write_opencl(tmp_path / str(number), poly.compile(nest, target=device().label))
        files = [folder / "fnr.c", folder / "fnr_check.c"]
        flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-O1"]
        binary = folder / "check"
        succeed(["gcc", *flags, *files, "-o", binary, "-lOpenCL", "-lm"])
        succeed([binary, "--quick"], cwd=folder)
