"""The text of a header: kept ones, the same bytes in every process, and how much of it there is."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from header_nests import axpy
from headers import CLANG, GCC, Toolchain, build, header, implementation, succeed
from shared_nests import matmul

import poly
from codegen.package.header.text import header_text
from poly.embed.write import make
from poly.kernel import Kernel

TUNED = {"M": 512, "K": 512, "N": 512}
SIXTEEN = {"M": 16, "K": 16, "N": 16}
"""A text that is made on any machine: no model has a say in it."""


def product_of_sixteen() -> Kernel:
    plain = poly.schedule(matmul.with_sizes(SIXTEEN)).order("i k j").vectorize("j")
    return poly.compile(plain.nest, schedule=plain, target="c:portable", threads=1)


def sums() -> Kernel:
    return poly.compile(axpy, schedule=poly.schedule(axpy).parallel("i"), target="c:portable", threads=2)


GOLDEN = {
    "matmul_16": lambda: make("matmul_16", [product_of_sixteen()], isas=["portable"]),
    "axpy": lambda: make("axpy", [sums()], isas=["portable"], threads="openmp"),
}
"""Small enough to be read: the parts of a file around one kernel."""


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str, project: Path) -> None:
    """The text is as kept, but for the self-test's; POLY_UPDATE_GOLDEN=1 keeps what it is now."""
    path = project / "tests" / "golden" / f"{name}.h"
    text = header_text(replace(GOLDEN[name](), version="0.0", machine="a machine"))
    text = re.sub(r"(#if defined\((\w+_SELFTEST)\)\n).*(#endif /\* \2 \*/)", r"\1...\n\3", text, flags=re.DOTALL)
    if os.environ.get("POLY_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), "the text has changed; if it should, run with POLY_UPDATE_GOLDEN=1"


@pytest.mark.slow
def test_every_process_writes_the_same_bytes(project: Path, tmp_path: Path) -> None:
    """Python hashes text differently in each; no set or dictionary may leave its order in the file."""
    script = "import sys, headers, pathlib; from header_nests import wide; from shared_nests import matmul; "
    script += "headers.header(pathlib.Path(sys.argv[1]), matmul, wide, name='both')"
    texts = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        environment = os.environ | {
            "PYTHONHASHSEED": seed,
            "POLY_CACHE_DIR": str(folder),
            "POLY_RECORDS": str(folder / "r"),
        }
        paths = os.pathsep.join([str(project), str(project / "tests" / "support")])
        succeed([sys.executable, "-c", script, folder], env=environment | {"PYTHONPATH": paths})
        texts.append((folder / "both.h").read_bytes())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("sizes", [({},), (TUNED,), ({}, TUNED)], ids=["any", "tuned", "both"])
def test_a_header_of_a_product_is_no_book(sizes: tuple[dict[str, int], ...], tmp_path: Path) -> None:
    """With every instruction set in it, and its self-test, scheduled for one thread: 140 KB."""
    path = header(tmp_path, matmul, sizes=sizes, threads_of=1, threads="openmp")
    assert path.stat().st_size <= 140 << 10
    assert max(map(len, path.read_text().splitlines())) <= 120, "columns"


@pytest.mark.parametrize("toolchain", [GCC, CLANG], ids=str)
def test_a_small_kernel_is_small(toolchain: Toolchain, tmp_path: Path) -> None:
    """The code of a 16x16x16 product, for each instruction set that the file has for this CPU."""
    header(tmp_path, matmul, sizes=(SIXTEEN,), threads_of=1)
    made = build(toolchain, implementation("matmul"), tmp_path, "-O2", "-c")
    lines = [line.split() for line in succeed(["nm", "-S", "--defined-only", made]).splitlines()]
    code = {name: int(size, 16) for _, size, kind, name in (line for line in lines if len(line) == 4) if kind in "tT"}
    for isa in ("avx512", "avx2", "portable"):
        own = {name: size for name, size in code.items() if name.endswith(f"_{isa}")}
        assert sum(own.values()) <= 4096, own
