"""The microkernels' text is C99 and C++11 at once, and no compiler finds anything to warn of.

It is read for flags on the command line, and as a section of a file that is built without any; the optimisers, which
have warnings of their own, see the section.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from headers import AARCH64, AARCH64_CLANG, CLANG, CLANGXX, GCC, GXX, NATIVE, S390X, STRICT, X86_32, Toolchain, need
from own_kernels import lessons

from codegen.package.header.macros import MACROS
from codegen.package.header.sections import closing, has, opening
from microkernels.catalogue import gemm, gemv_source, pack_source, scatter_source
from microkernels.ctext import suffix
from microkernels.dtypes import DType, f32, f64
from microkernels.isa import AVX2, AVX512, ISA, NEON, PORTABLE, host_machine
from microkernels.product import PRODUCTS

STANDARDS = {"c": ("c99",), "c++": ("c++11", "c++20")}
X86 = (AVX512, AVX2, PORTABLE)
ARM = (NEON, PORTABLE)
MACHINES = {AARCH64: ARM, AARCH64_CLANG: ARM, **dict.fromkeys((*X86_32, S390X), (PORTABLE,))}
"""What other machines' compilers are given."""

ROUTINES = (
    "pack",
    "pack_across",
    "pack_along",
    "pack_gather",
    "pack_turned",
    "pack_beside",
    "gemvn",
    "gemvt",
    "store_run",
    "store_apart",
)
WIDTH = "24"
"""Of panels: whole vectors and a part of one, or parts of a single one."""


def sources(isa: ISA, dtype: DType) -> str:
    """Every function there is for an instruction set and type, and a function that calls each."""
    edges, known = gemm(isa, dtype, 5, 2), gemm(isa, dtype, 2, 3)
    columns = known.columns
    others = [gemm(isa, dtype, 2, 1, PRODUCTS[family]) for family in ("min_max", "max_distance", "sum_square")]
    parts = [edges.source(), known.source([2, 1], [columns, columns - 1]), pack_source(isa, dtype)]
    parts += [other.source([2], None) for other in others]
    text = "".join([*parts, gemv_source(isa, dtype), scatter_source(isa, dtype)])
    names = [
        edges.c_name,
        known.c_name,
        *(other.c_name for other in others),
        *(f"{name}_{suffix(isa, dtype)}" for name in ROUTINES),
    ]
    return text + "".join(use(name, text) for name in names)


def use(name: str, text: str) -> str:
    """A function for other files that calls the function `name`, with what has to be constant a constant."""
    found = re.search(rf"void {name}\(([^)]*)\)\n", text)
    assert found, name
    parameters = re.sub(r"int64_t width, ", "", found[1])
    arguments = [WIDTH if word == "width" else word for word in re.findall(r"(\w+)(?:,|$)", found[1])]
    head = f"void use_{name}({parameters})"
    return f"{head};\n{head}\n{{\n    {name}({', '.join(arguments)});\n}}\n"


def whole(isas: Sequence[ISA], dtypes: Sequence[DType], sections: bool) -> str:
    """One file with the text for instruction sets and types; in sections, as headers have, it needs no flags."""
    headers = {"x86_64": "#include <immintrin.h>\n", "aarch64": "#include <arm_neon.h>\n"}
    text = "#include <stdint.h>\n" + "".join({isa.machine: headers.get(isa.machine, "") for isa in isas}.values())
    text += f"{MACROS}\n" if sections else ""
    for isa in isas:
        code = "".join(sources(isa, dtype) for dtype in dtypes)
        text += f"#define {has(isa)} 1\n{opening(isa)}\n{code}{closing(isa)}\n" if sections else code
    return text


def check(toolchain: Toolchain, standard: str, text: str, folder: Path, *flags: str) -> None:
    """Compile a text without a warning."""
    need(toolchain)
    source = folder / ("text.cc" if toolchain.language == "c++" else "text.c")
    source.write_text(text)
    strict = [*STRICT, f"-std={standard}", "-Drestrict=__restrict"]
    done = subprocess.run(
        [*toolchain.command, *strict, *flags, str(source)], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0 and not done.stderr, done.stderr[:4000]


def configurations(toolchains: Sequence[Toolchain]) -> list[tuple[Toolchain, str]]:
    return [(toolchain, standard) for toolchain in toolchains for standard in STANDARDS[toolchain.language]]


needs_x86 = pytest.mark.skipif(host_machine() != "x86_64", reason="the instruction sets of another CPU family")


@needs_x86
@pytest.mark.parametrize("form", ["flags", "sections"])
@pytest.mark.parametrize(("toolchain", "standard"), configurations(NATIVE), ids=str)
def test_no_compiler_warns(toolchain: Toolchain, standard: str, form: str, tmp_path: Path) -> None:
    flags = [flag for flag in AVX512.flags if form == "flags" and not flag.startswith("-mprefer")]
    check(toolchain, standard, whole(X86, (f32, f64), form == "sections"), tmp_path, "-fsyntax-only", *flags)


@needs_x86
@pytest.mark.parametrize(("toolchain", "standard"), [(GXX, "c++20"), (CLANG, "c99")], ids=str)
def test_no_optimiser_warns(toolchain: Toolchain, standard: str, tmp_path: Path) -> None:
    check(toolchain, standard, whole(X86, (f32,), True), tmp_path, "-c", "-O2")


@needs_x86
@pytest.mark.parametrize(
    ("toolchain", "standard"), [(GCC, "c99"), (GXX, "c++20"), (CLANG, "c99"), (CLANGXX, "c++11")], ids=str
)
def test_no_compiler_warns_of_what_is_around_users_texts(toolchain: Toolchain, standard: str, tmp_path: Path) -> None:
    text = "".join(f"{kernel.source()}{use(kernel.function, kernel.source())}" for kernel in lessons())
    check(toolchain, standard, text, tmp_path, "-c", "-O2", *AVX2.flags)


@pytest.mark.parametrize("toolchain", MACHINES, ids=str)
def test_no_other_machine_s_compiler_warns(toolchain: Toolchain, tmp_path: Path) -> None:
    standard, isas = STANDARDS[toolchain.language][0], MACHINES[toolchain]
    check(toolchain, standard, whole(isas, (f32, f64), True), tmp_path, "-fsyntax-only")


@pytest.mark.parametrize("toolchain", [AARCH64_CLANG, X86_32[0]], ids=str)
def test_no_other_machine_s_optimiser_warns(toolchain: Toolchain, tmp_path: Path) -> None:
    """gcc for ARM says nothing in test_microkernels_ladder.py."""
    check(toolchain, "c99", whole(MACHINES[toolchain], (f32,), True), tmp_path, "-c", "-O2")
