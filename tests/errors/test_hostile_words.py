"""Names that mean something to C, OpenCL or generated text: a nest may have any of them, in every sort of text.

The words are harvested from generated texts (`hostile_nests.words`) and from the compilers, and put into nests by lot.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headers import CLANG, CLANGXX, GCC, GXX, Toolchain, at_any_level, need, quick, succeed
from hostile_nests import KINDS, NEUTRAL, ROLES, SHAPES, arguments, named, plausible, words
from opencl_device import device

import poly
from codegen.names import c_name, function_name
from poly.embed import write_header
from poly.embed.opencl import write_opencl

pytestmark = pytest.mark.slow

INCLUDED = (
    "math",
    "immintrin",
    "stdint",
    "stddef",
    "stdlib",
    "stdio",
    "string",
    "time",
    "float",
    "errno",
    "pthread",
    "complex",
)
"""Headers of C that generated texts include, or that a user includes before one."""
BY_HAND = (
    *("M_", "M", "FP", "I", "NULL", "errno", "INFINITY_", "NAN_", "imin", "fmaf", "int64_t", "uint", "float4", "half"),
    *("private", "new", "new_", "new__", "this", "class_", "unix", "linux", "restrict_", "constant", "kernel", "FILE"),
    *("c0", "c1", "S0", "S0_tile", "item", "group", "v", "left", "lane", "given", "call"),
    *("cl_mem", "get_group_id", "barrier", "CLK_LOCAL_MEM_FENCE", "uint64_t", "try_imin", "stdin", "printf", "status"),
    *("align64", "my_A", "all_x", "A_ld", "A_panels", "A_sum", "A_value", "i_tile", "threads", "workspace", "tile"),
)


def accepted(name: str) -> bool:
    """Whether the front end takes a name, by the words that it refuses with their line."""
    try:
        named("product", "f32", (name, *NEUTRAL[1:]), "nest")
    except (poly.SpecError, SyntaxError, AttributeError):  # of `poly`, which the nests' text needs itself
        return False
    return not name.lower().startswith(("hhq_", "pfx_", "fnq"))


def sets(count: int, seed: int) -> list[tuple[str, ...]]:
    """Names for all roles, by lot: words of generated texts, also as the texts make them of the other names."""
    rng = random.Random(seed)
    found = []
    known = [*words(), *BY_HAND * 8]
    while len(found) < count:
        names: list[str] = []
        while len(names) < len(ROLES):
            name = plausible(rng.choice(known), names)
            if name not in names and name != "nest" and accepted(name):
                names.append(name)
        rng.shuffle(names)
        found.append(tuple(names))
    return found


def each(seed: int) -> list[Any]:
    return [pytest.param(kind, dtype, seed, id=f"{kind}-{dtype}") for kind in KINDS for dtype in ("f32", "i32")]


def wanted(nest: Any) -> list[Any]:
    """What the loops as written make of the arguments."""
    right = list(arguments(nest))
    with np.errstate(all="ignore"):
        nest.reference(*right)
    return right


def check(call: Any, nest: Any, right: list[Any], told: str, strided: bool = False) -> None:
    """A call does what the loops as written do; `strided`: rows lie further apart than they must."""
    got = arguments(nest)
    if strided:
        got = [_apart(value) for value in got]
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
    for number, names in enumerate(sets(2, seed)):
        nest = named(kind, dtype, names, "nest")
        known, right = dict(zip(nest.sizes, SHAPES.values(), strict=True)), wanted(nest)
        kernel = poly.compile(nest, **known) if number else poly.compile(nest, threads=2)
        check(kernel, nest, right, f"{names}")
        check(kernel, nest, right, f"strided {names}", strided=True)


@pytest.mark.parametrize(("kind", "dtype", "seed"), each(2))
def test_names_in_opencl(kind: str, dtype: str, seed: int) -> None:
    for names in sets(2, seed):
        nest = named(kind, dtype, names, "nest")
        check(poly.compile(nest, target=device().label), nest, wanted(nest), f"{names}")


@pytest.mark.parametrize(("kind", "dtype", "seed"), each(3)[::2])
def test_names_in_headers(kind: str, dtype: str, seed: int, tmp_path: Path) -> None:
    """C99 and C++11 without a warning, and the self-test runs right."""
    for number, names in enumerate(sets(1, seed)):
        nest = named(kind, dtype, names, "nest")
        threads = ("openmp", "pthreads", "none")[list(KINDS).index(kind)]
        kernel, options = poly.compile(nest, threads=2), {"threads": threads, "isas": ["avx2"]}
        path = at_any_level(write_header(tmp_path / f"h{number}.h", kernel, prefix="hhq", **options))
        for toolchain, standard in ((GCC, "c99"), (GXX, "c++11"), (CLANG, "c11")):
            need(toolchain)
            flags = ["-Wall", "-Wextra", "-Werror", f"-std={standard}", "-D", "HHQ_SELFTEST", "-D", "HHQ_DEBUG"]
            succeed([*toolchain.command, *flags, "-x", toolchain.language, path, "-fsyntax-only"])
        binary = tmp_path / f"try{number}"
        succeed(["gcc", *quick(GCC), "-x", "c", "-D", "HHQ_SELFTEST", path, "-o", binary, "-lm", "-pthread"])
        assert succeed([binary, "--quick"]).endswith("\nPASS\n"), names


@pytest.mark.parametrize(("kind", "dtype", "seed"), each(4)[1::2])
def test_names_in_a_library_that_launches_kernels(kind: str, dtype: str, seed: int, tmp_path: Path) -> None:
    for number, names in enumerate(sets(1, seed)):
        nest = named(kind, dtype, names, "fnr")
        folder = write_opencl(tmp_path / str(number), poly.compile(nest, target=device().label))
        files = [folder / "fnr.c", folder / "fnr_check.c"]
        flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-O1"]
        binary = folder / "check"
        succeed(["gcc", *flags, *files, "-o", binary, "-lOpenCL", "-lm"])
        succeed([binary, "--quick"], cwd=folder)


@pytest.mark.parametrize("toolchain", [GCC, GXX, CLANG, CLANGXX], ids=str)
def test_no_name_is_a_macro(toolchain: Toolchain) -> None:
    """Of the C headers that stand before generated text; a name of a function is none with arguments either."""
    need(toolchain)
    text = "".join(f"#include <{name}.h>\n" for name in INCLUDED)
    defined = succeed([*toolchain.command, "-x", toolchain.language, "-dM", "-E", "-"], input=text)
    macros = re.findall(r"^#define (\w+)(\(?)", defined, re.M)
    assert len(macros) > 400
    names = {name for name, _ in macros}
    plain = {name for name, bracket in macros if not bracket}
    assert not [name for name in plain if c_name(name) in plain]
    assert not [name for name in names if function_name(name) in names]


def test_different_names_stay_different() -> None:
    pool = [name + "_" * more for name in {*words(), *BY_HAND} for more in range(3)]
    assert len({c_name(name) for name in pool}) == len(set(pool))


def test_functions_of_a_header_may_be_called_as_what_it_is_made_of(tmp_path: Path) -> None:
    """Nests with the names of the header's own functions, which give way."""
    text = write_header(
        tmp_path / "plain.h", poly.compile(named("rows", "f32", NEUTRAL, "fnq")), prefix="hhq"
    ).read_text()
    own = sorted({word.removeprefix("hhq_") for word in re.findall(r"\bhhq_[a-z]\w*", text)})
    public = ("status", "isa", "status_text", "isa_in_use", "force_isa")
    own = [word for word in own if function_name(f"hhq_{word}") == f"hhq_{word}" and "fnq" not in word]
    names = {"nothing", "overlap", "aligned", *random.Random(0).sample(sorted({*own} - {*public}), 5)}
    nests = [named("rows", "f32", NEUTRAL, name) for name in sorted(names)]
    path = write_header(tmp_path / "all.h", [poly.compile(nest) for nest in nests], prefix="hhq", isas=["portable"])
    for toolchain in (GCC, GXX):
        flags = ["-Wall", "-Wextra", "-Werror", "-D", "HHQ_IMPLEMENTATION", "-fsyntax-only"]
        succeed([*toolchain.command, *flags, "-x", toolchain.language, path])
