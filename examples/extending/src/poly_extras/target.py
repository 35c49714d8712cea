"""A target: kernels for small code, by the compiler and flags that suit it."""

from __future__ import annotations

from poly.extending import OwnTarget

SIZE = OwnTarget("size", isa="c:portable", flags=("-Os", "-fno-unroll-loops"))
