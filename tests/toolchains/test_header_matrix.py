"""Headers of random nests and of each kind of nest, at odd sizes, by compilers, standards, levels, checkers, threads.

Each pair of choices meets in one of the headers that are tried. `POLY_MATRIX=full` tries every combination.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from classic_nests import conv1d
from header_builds import BUILDS, Build, covering
from header_nests import KINDS, wide
from headers import (
    CHECKED_FLOPS,
    CLANG,
    GCC,
    GXX,
    HERE,
    build,
    header,
    implementation,
    run,
)
from hypothesis import HealthCheck, Phase, given, seed, settings
from random_nests import nests

import poly
from poly.embed.trials import FLOPS

FULL = os.environ.get("POLY_MATRIX") == "full"


RANDOM = 11
"""The number of random nests: as many builds as cover all pairs take each of them, and each kind of nest."""
EACH = KINDS[::-1]
"""The kinds, so that the large ones meet builds that take less time."""
ODD = (1, 3, 5, 7, 13, 31)
"""The sizes of a kernel that has sizes of its own."""


FOUND = [
    (RANDOM + EACH.index(wide), Build(GXX, "c++11", "-O3", "none", "openmp")),
    (RANDOM + EACH.index(conv1d), Build(GCC, "c11", "-O2", "races", "none")),
]
"""Builds that warned once: of AVX-512 intrinsics, and of arrays that all have one dimension."""
TRIED = list(enumerate(BUILDS)) if FULL else [*enumerate(covering(BUILDS)), *FOUND]


COMPLAINTS = {"memory": "heap-buffer-overflow", "integers": "unsigned integer overflow", "races": "data race"}
FAULTS = {
    "memory": "#include <stdlib.h>\n"
    "int main(int n, char **a) { char *p = (char *)malloc((size_t)n); p[n] = **a; free(p); }",
    "integers": "static unsigned less(unsigned a, unsigned b) { return a - b; }\n"
    "int main(int n, char **a) { return a && less(1, 1 + (unsigned)n) == 0; }",
    "races": "int main(void) { int sum = 0;\n#pragma omp parallel num_threads(2)\n  sum++;\nreturn 0 * sum; }",
}


@pytest.mark.parametrize("checker", FAULTS)
def test_checkers_see_faults(checker: str, tmp_path: Path) -> None:
    way = Build(CLANG, "c99", "-O0", checker, "openmp")
    binary = build(way.toolchain, FAULTS[checker] + "\n", tmp_path, *way.flags)
    done = subprocess.run([binary], capture_output=True, text=True, env=os.environ | way.environment)
    assert done.returncode != 0
    assert re.search(COMPLAINTS[checker], done.stderr), done.stderr


def test_every_nest_is_tried() -> None:
    assert len(TRIED) >= RANDOM + len(KINDS)


def random_nest(number: int) -> poly.Nest:
    """One that is the same each time; hypothesis begins with the smallest of all."""
    found: list[poly.Nest] = []

    @seed(number)
    @settings(max_examples=3, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(nests(any_size=True))
    def draw(nest: poly.Nest) -> None:
        found.append(nest)

    draw()
    return found[-1]


def subject(number: int) -> poly.Nest:
    """Random nests, and after them one of each kind."""
    number %= RANDOM + len(KINDS)
    return random_nest(number) if number < RANDOM else EACH[number - RANDOM]


@pytest.mark.parametrize(("number", "way"), TRIED, ids=str)
def test_header(number: int, way: Build, tmp_path: Path) -> None:
    nest = subject(number)
    own = {size: ODD[(number + at) % len(ODD)] for at, size in enumerate(nest.sizes)}
    sizes = (dict.fromkeys(nest.sizes, 61),) if way.checker == "races" else ({}, own)
    isas = HERE[number % len(HERE) :][: 2 if way.checker in ("none", "link") else 1]
    flops = FLOPS if way.checker in ("none", "link") else CHECKED_FLOPS
    header(tmp_path, nest, sizes=sizes, threads=way.threads, isas=isas, flops=flops)
    binary = build(way.toolchain, implementation(nest.name, "SELFTEST"), tmp_path, *way.flags)
    assert run(way.toolchain, binary, "--quick", **way.environment).endswith("\nPASS\n")
