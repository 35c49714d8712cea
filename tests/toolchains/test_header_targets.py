"""Every instruction set is run, here or under emulation, and the one that was asked for is the one in use."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from header_nests import KINDS
from header_programs import CLIMB, program
from headers import (
    AARCH64,
    AARCH64_CLANG,
    CLANG,
    GCC,
    NUMBERS,
    S390X,
    X86_32,
    Toolchain,
    at_any_level,
    build,
    header,
    implementation,
    need,
    need_isa,
    once,
    quick,
    run,
)
from shared_nests import matmul

from microkernels.isa import ISAS

EMULATED = (AARCH64, AARCH64_CLANG, S390X, *X86_32)
BEST = {AARCH64: "neon", AARCH64_CLANG: "neon"}
"""What a call takes there by itself; elsewhere the portable kernels."""
Products = Callable[[Toolchain], Path]
SMALL = {"K": 21, "L": 10, "M": 13, "N": 38, "T": 5}


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> Products:
    """Builds the program that climbs sizes, once for each compiler in a run of the tests."""

    @cache
    def built(toolchain: Toolchain) -> Path:
        need(toolchain)
        folder = tmp_path_factory.mktemp("products")
        header(folder, matmul)
        text = implementation("matmul") + program(CLIMB, "openmp")
        asked = (toolchain, text, (folder / "matmul.h").read_text())
        return once("program", asked, lambda path: shutil.copy(build(toolchain, text, folder, "-O2"), path))

    return built


@pytest.mark.parametrize("toolchain", [GCC, CLANG], ids=str)
@pytest.mark.parametrize("isa", [name for name in NUMBERS if name != "neon"])
def test_each_instruction_set_here(isa: str, toolchain: Toolchain, products: Products) -> None:
    """Every size up to twice a register tile and one more."""
    need_isa(isa)
    printed = run(toolchain, products(toolchain), str(NUMBERS[isa]), "29", "130")
    assert printed.startswith(f"isa {NUMBERS[isa]}: ")


def test_a_call_takes_the_best_one_here(products: Products) -> None:
    best = next(name for name, isa in ISAS.items() if isa.runs_here())
    assert run(GCC, products(GCC)).startswith(f"isa {NUMBERS[best]}: ")


@pytest.mark.parametrize("toolchain", EMULATED, ids=str)
def test_products_on_other_machines(toolchain: Toolchain, products: Products) -> None:
    binary = products(toolchain)
    best = BEST.get(toolchain, "portable")
    assert run(toolchain, binary, "0", "17", "25").startswith(f"isa {NUMBERS[best]}: ")
    assert run(toolchain, binary, str(NUMBERS["portable"])).startswith("isa 1: ")


@pytest.mark.parametrize("toolchain", EMULATED, ids=str)
def test_what_a_machine_lacks_is_refused(toolchain: Toolchain, products: Products) -> None:
    binary = products(toolchain)
    for isa in {"neon", "avx2", "avx512"} - {BEST.get(toolchain)}:
        done = subprocess.run([*toolchain.runner, binary, str(NUMBERS[isa])], capture_output=True, text=True)
        assert done.returncode == 2
        assert "instruction set" in done.stdout


@pytest.mark.parametrize("toolchain", [AARCH64, S390X, X86_32[0]], ids=str)
def test_nests_of_every_kind_on_other_machines(toolchain: Toolchain, tmp_path: Path) -> None:
    """At small sizes: of open ones the self-test tries large ones too, and emulation is slow.

    What these machines don't run is left out; products have it.
    s390x has vectors here, which its compiler otherwise takes apart for half a minute; products are built without.
    """
    need(toolchain)
    fixed = [nest.with_sizes({name: SMALL[name] for name in nest.sizes}) for nest in KINDS]
    at_any_level(header(tmp_path, *fixed, name="kinds", threads="pthreads", isas=["neon"]))
    flags = ("-march=z14",) if toolchain is S390X else ()
    binary = build(toolchain, implementation("kinds", "SELFTEST"), tmp_path, *quick(toolchain), *flags)
    assert run(toolchain, binary, "--quick").endswith("\nPASS\n")
