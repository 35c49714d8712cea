"""The ways to build a header: compilers, standards, levels, checkers, threads; and a few that cover all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from random import Random

from headers import INTEGERS, NATIVE, SANITIZED, STANDARDS, Toolchain, archer

LEVELS = ("-O0", "-O2", "-O3", "-Os")
CHECKERS = {
    "none": (),
    "link": ("-flto",),
    "memory": (*SANITIZED, "-g"),
    "integers": INTEGERS,
    "races": ("-fsanitize=thread", "-g"),
}
"""The checkers besides the compiler's warnings, and their flags."""
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
        """Only clang checks integers, and has an OpenMP that ThreadSanitizer understands."""
        needs_clang = self.checker == "integers" or (self.checker, self.threads) == ("races", "openmp")
        return self.standard in STANDARDS[self.toolchain.language] and (self.toolchain.is_clang or not needs_clang)

    @property
    def flags(self) -> tuple[str, ...]:
        """clang converts -1 to unsigned when it counts the iterations of an empty OpenMP loop."""
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
        """All pairs of its choices."""
        choices = (self.toolchain, self.standard, self.level, self.checker, self.threads)
        return set(combinations(enumerate(choices), 2))


STANDARD = tuple(standard for group in STANDARDS.values() for standard in group)
CHOICES = list(product(NATIVE, STANDARD, LEVELS, CHECKERS, THREADS))
BUILDS = [way for choices in Random(0).sample(CHOICES, len(CHOICES)) if (way := Build(*choices)).exists]
"""In random order, so that among equally good ones any may be taken."""


def covering(builds: list[Build]) -> list[Build]:
    """Some of the builds that cover all pairs of choices, found greedily: always the build with the most new pairs."""
    pairs = {build: build.pairs for build in builds}
    left, chosen = set().union(*pairs.values()), []
    while left:
        chosen.append(max(builds, key=lambda build: len(left & pairs[build])))
        left -= pairs[chosen[-1]]
    return chosen
