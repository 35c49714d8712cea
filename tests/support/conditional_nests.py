"""Nests whose statements each have a different condition, which is hard for isl."""

from __future__ import annotations

import poly
from poly import f64
from poly.frontends.python import parse_text
from poly.frontends.source import Source

N = poly.sizes("N")


def conditional(*lines: str) -> poly.Nest:
    """Statements with different conditions in two loops."""
    body = [f"      if {condition}:\n        {line}" for condition, line in zip(lines[::2], lines[1::2], strict=True)]
    head = "def nest(X: f64[3 * N + 30], Y: f64[N + 30, N + 30]):\n  for i in range(N):\n    for j in range(N):\n"
    return parse_text(Source(head + "\n".join(body), "random", 1), {"N": N, "f64": f64})


def twelve() -> poly.Nest:
    lines: list[str] = []
    for k in range(12):
        first = f"({3 + k % 3} * i + {2 + k % 4} * j) % {7 if k % 2 else 5} == {k % 5}"
        lines += [f"{first} or (i + {k % 5 + 1} * j) % 11 == 3", f"Y[i + {k % 3}, j + {k % 2}] = Y[i, j] + {k}.0"]
    return conditional(*lines)
