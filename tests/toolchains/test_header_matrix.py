"""Headers of random nests, at odd sizes, by compilers, standards, levels, checkers and ways to run threads.

Each pair of choices meets in one of the headers that are tried. `POLY_MATRIX=full` tries every combination.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from random import Random

import pytest
from classic_nests import conv1d
from header_nests import KINDS, wide
from headers import (
    CLANG,
    GCC,
    GXX,
    HERE,
    INTEGERS,
    NATIVE,
    SANITIZED,
    STANDARDS,
    Toolchain,
    archer,
    build,
    header,
    implementation,
    run,
)
from hypothesis import HealthCheck, Phase, given, seed, settings
from random_nests import nests

import poly

FULL = os.environ.get("POLY_MATRIX") == "full"

LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
CHECKERS = {
    "none": (),
    "link": ("-flto",),
    "memory": (*SANITIZED, "-g"),
    "integers": INTEGERS,
    "races": ("-fsanitize=thread", "-g"),
}
"""What looks at the program beside the compiler's warnings, and the flags that say so."""
THREADS = ("none", "pthreads", "openmp")

RANDOM = 25
ODD = (1, 3, 5, 7, 13, 31)
"""The sizes of a kernel that has sizes of its own."""


@dataclass(frozen=True)
class Build:
    """One way to compile a header."""

    toolchain: Toolchain
    standard: str
    level: str
    checker: str
    threads: str

    def __str__(self) -> str:
        return "-".join((str(self.toolchain), self.standard, self.level[1:], self.checker, self.threads))

    @property
    def exists(self) -> bool:
        """clang alone checks integers, and has an OpenMP that tells ThreadSanitizer what it does."""
        needs_clang = self.checker == "integers" or (self.checker, self.threads) == ("races", "openmp")
        return self.standard in STANDARDS[self.toolchain.language] and (self.toolchain.is_clang or not needs_clang)

    @property
    def flags(self) -> tuple[str, ...]:
        """clang takes -1 for unsigned where it counts an OpenMP loop that has no iterations."""
        openmp = ("-fopenmp",) if self.threads == "openmp" else ()
        if openmp and self.checker == "integers":
            openmp += ("-fno-sanitize=implicit-integer-sign-change",)
        checked = ("-Wno-pass-failed",) if self.checker == "integers" else ()  # such loops can't be vectorised
        return (f"-std={self.standard}", self.level, *CHECKERS[self.checker], *checked, *openmp)

    @property
    def environment(self) -> dict[str, str]:
        return archer() if (self.checker, self.threads) == ("races", "openmp") else {}

    @property
    def pairs(self) -> set[tuple[tuple[int, object], ...]]:
        """Every two of its choices."""
        choices = (self.toolchain, self.standard, self.level, self.checker, self.threads)
        return set(combinations(enumerate(choices), 2))


STANDARD = tuple(standard for group in STANDARDS.values() for standard in group)
CHOICES = list(product(NATIVE, STANDARD, LEVELS, CHECKERS, THREADS))
BUILDS = [way for choices in Random(0).sample(CHOICES, len(CHOICES)) if (way := Build(*choices)).exists]
"""In an order by lot, so that where many are equally good any is taken."""


def covering(builds: list[Build]) -> list[Build]:
    """Some of the builds, with every pair of choices that is in any of them: always the one with the most new pairs."""
    pairs = {build: build.pairs for build in builds}
    left, chosen = set().union(*pairs.values()), []
    while left:
        chosen.append(max(builds, key=lambda build: len(left & pairs[build])))
        left -= pairs[chosen[-1]]
    return chosen


FOUND = [
    (RANDOM + KINDS.index(wide), Build(GXX, "c++11", "-O3", "none", "openmp")),
    (RANDOM + KINDS.index(conv1d), Build(GCC, "c11", "-O2", "races", "none")),
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


def test_every_random_header_is_tried() -> None:
    assert len(TRIED) >= RANDOM


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
    return random_nest(number) if number < RANDOM else KINDS[number - RANDOM]


@pytest.mark.parametrize(("number", "way"), TRIED, ids=str)
def test_header(number: int, way: Build, tmp_path: Path) -> None:
    nest = subject(number)
    own = {size: ODD[(number + at) % len(ODD)] for at, size in enumerate(nest.sizes)}
    sizes = (dict.fromkeys(nest.sizes, 61),) if way.checker == "races" else ({}, own)
    isas = HERE[number % len(HERE) :][: None if way.checker in ("none", "link") else 1]
    header(tmp_path, nest, sizes=sizes, threads=way.threads, isas=isas)
    binary = build(way.toolchain, implementation(nest.name, "SELFTEST"), tmp_path, *way.flags)
    assert run(way.toolchain, binary, "--quick", **way.environment).endswith("\nPASS\n")
