"""Random sums over results before: in blocks, in lanes or in order, with terms in any order, they give the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import poly
from microkernels.isa import ISAS
from poly import f64
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest
from poly.ir.reference import reference
from poly.ir.tree import bands

N = poly.sizes("N")
HEAD = "def nest(w: f64[N], b: f64[N, N], c: f64[N]):"
TARGETS = [f"c:{name}" for name in ("avx512", "avx2") if ISAS[name].runs_here()] or ["c:portable"]
SIZES = (4, 36, 68, 71, 139)
BEFORE = ("", "w[{own}] = 0.25", "w[{own}] *= 0.5", "c[i] = w[{own}]")
BEHIND = ("", "w[{own}] += c[i]", "c[i + 1] = w[{own}]")
LOOKING = ("i - k - 1 + {by}", "k + {by}", "i - k + {by}")
FACTORS = ("b[k, i]", "b[i, k]", "b[k + 1, i] * c[k]", "c[i - k]")
TERMS = ("w[i]", "w[i - 1] * c[i]", "w[i - 2] * b[i, 0]", "c[i + 1]", "0.1 * w[i - 3]")


def parsed(lines: list[str]) -> Nest:
    text = "\n".join([HEAD, *("    " + line for line in lines)])
    return parse_text(Source(text, "random", 1), {"N": N, "f64": f64})


@st.composite
def sums(draw: st.DrawFn) -> Nest:
    """A loop whose iterations add up what those before have added up, perhaps with statements around."""
    by = draw(st.integers(0, 2))
    own = f"i + {by}"
    before, behind = (draw(st.sampled_from(lines)).format(own=own) for lines in (BEFORE, BEHIND))
    looking = draw(st.sampled_from(LOOKING)).format(by=by)
    start = draw(st.sampled_from(["0", "1", "2"]))
    line = f"w[{own}] {draw(st.sampled_from(['+=', '-=']))} {draw(st.sampled_from(FACTORS))} * w[{looking}]"
    inside = [before, f"for k in range({start}, i):", f"    {line}", behind]
    return parsed(["for i in range(1, N - 3):", *(f"    {text}" for text in inside if text)])


@st.composite
def orders(draw: st.DrawFn) -> Nest:
    """A recurrence by several terms, in any order."""
    some = draw(st.permutations(TERMS))[: draw(st.integers(3, len(TERMS)))]
    terms = some if "w[i]" in some else ["w[i]", *some]
    signs = [
        "" if at == 0 else "+ " if term == "w[i]" else draw(st.sampled_from(["+ ", "- "]))
        for at, term in enumerate(terms)
    ]
    return parsed(["for i in range(3, N - 1):", f"    w[i] = {' '.join(map(str.__add__, signs, terms))}"])


def check(nest: Nest, target: str, exact: bool = False) -> poly.Kernel:
    kernel = poly.compile(nest, target=target, threads=1, records=False)
    for size in SIZES:
        draw = np.random.default_rng(size)
        arrays = [draw.uniform(-1, 1, shape) / over for shape, over in ((size, 1), ((size, size), size), (size, size))]
        expected = [array.copy() for array in arrays]
        reference(nest, tuple(expected))
        kernel(*arrays)
        for got, wanted in zip(arrays, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0 if exact else 1e-11, atol=0 if exact else 1e-13)
    return kernel


@settings(deadline=None, max_examples=8, suppress_health_check=list(HealthCheck))
@given(nest=sums(), target=st.sampled_from(TARGETS))
def test_sums_over_results_before(nest: Nest, target: str) -> None:
    check(nest, target)


@settings(deadline=None, max_examples=4, suppress_health_check=list(HealthCheck))
@given(nest=orders())
def test_terms_in_any_order(nest: Nest) -> None:
    check(nest, TARGETS[0])
    check(replace(nest, reassociate=False), TARGETS[0], exact=True)


def test_what_earlier_blocks_add_has_lanes() -> None:
    nest = parsed(["for i in range(1, N):", "    for k in range(i):", "        w[i] += b[k, i] * w[i - k - 1]"])
    made = check(nest, TARGETS[0]).schedule
    assert any(band.vectorize for band in bands(made.tree))
    assert poly.schedule(nest).apply(made.steps) == made
    assert not any(
        band.vectorize for band in bands(poly.compile(replace(nest, reassociate=False), records=False).schedule.tree)
    )
