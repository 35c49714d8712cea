"""The ways to build a header: compilers, standards, levels, checkers, threads; and few that cover all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from random import Random

from headers import INTEGERS, NATIVE, SANITIZED, STANDARDS, Toolchain, archer

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
