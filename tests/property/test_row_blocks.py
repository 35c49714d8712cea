"""Products in common blocks of rows: chains of products, element-wise loops and sums of rows, passed on in locals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import exp
from textwrap import indent

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from microkernels.isa import ISA, ISAS, host
from poly.autoschedule import default
from poly.autoschedule.rules import row_blocks
from poly.autoschedule.rules.microkernels import with_other_loops
from poly.autoschedule.rules.row_blocks import row_blocked
from poly.ir.tree import Micro, walk
from poly.model.core import Caches, Target
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Parallel, Split

SMALL = Caches(1 << 9, 1 << 10, 1 << 14)
"""Caches in which small locals do not fit."""


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Blocks of few rows, so that small nests have several."""
    monkeypatch.setattr(row_blocks, "LEAST", 7)
    yield


def target(isa: ISA | None = None, threads: int = 1) -> Target:
    return Target.nominal(isa or host(), SMALL, threads)


SOFTMAX = """
    for i in range(M):
        m[i] = t[i, 0]
        for j in range(N):
            m[i] = max(m[i], t[i, j])
    for i in range(M):
        z[i] = 0
        for j in range(N):
            t[i, j] = exp(t[i, j] - m[i])
            z[i] += t[i, j]
"""

BETWEEN = {
    "nothing": "",
    "relu": "    for i in range(M):\n        for j in range(N):\n            t[i, j] = max(t[i, j] + bias[j], 0)\n",
    "softmax": SOFTMAX,
    "sum": "    for i in range(M):\n        z[i] = 0\n        for j in range(N):\n            z[i] += t[i, j]\n",
}

AFTER = {
    "product": """
    for i in range(M):
        for l in range(L):
            D[i, l] = 0
            for j in range(N):
                D[i, l] += t[i, j] * C[j, l]
""",
    "copy": "    for i in range(M):\n        for j in range(N):\n            D[i, j] = t[i, j] + bias[j]\n",
}


def chain(
    between: str,
    after: str,
    turned: bool,
    m: int,
    n: int,
    k: int,
    width: int,
    masked: bool = False,
    heads: int | None = None,
    grouped: bool = False,
) -> poly.Nest:
    """A product, what is done with its rows, and what reads them; `masked` if each row ends at the diagonal.

    The whole is repeated for each of `heads`, which share B and C if they are `grouped`.
    """
    right, shape = ("B[j, k]", "N, K") if turned else ("B[k, j]", "K, N")
    sums = "    z: f32[M]\n    m: f32[M]\n" if between in ("softmax", "sum") else ""
    text = f"""
def chain(D: f32[M, {"L" if after == "product" else "N"}], A: f32[M, K], B: f32[{shape}], C: f32[N, L], bias: f32[N]):
    t: f32[M, N]
{sums}    for i in range(M):
        for j in range(N):
            t[i, j] = 0
            for k in range(K):
                t[i, j] += A[i, k] * {right}
{BETWEEN[between]}{AFTER[after]}"""
    text = text.replace("range(N)", "range(i + 1)") if masked else text
    text = for_each_head(text, grouped) if heads else text
    sizes = {"M": m, "N": n, "K": k, "L": width, **({"H": heads} if heads else {})}
    return poly.parse(text, {**{name: poly.sizes(name) for name in sizes}, "exp": exp}).with_sizes(sizes)


def for_each_head(text: str, grouped: bool) -> str:
    """A chain in a loop over heads, the first dimension of all arrays but the bias, and B and C if `grouped`."""
    own = "DAtzm" if grouped else "DABCtzm"
    declared, loops = text.split("    for i", 1)
    declared = re.sub(rf"\b([{own}]: f32)\[", r"\1[H, ", declared)
    inside = re.sub(rf"\b([{own}])\[", r"\1[h, ", f"    for i{loops}")
    return declared + "    for h in range(H):\n" + indent(inside, "    ")


def compared(nest: poly.Nest, made: Schedule, isa: ISA, threads: int = 1) -> None:
    """Run a schedule on poisoned results, and compare these with the nest's own reference."""
    rng = np.random.default_rng(1)
    shapes = {a.name: tuple(n.constant for n in a.shape) for a in nest.arrays if a.kind == "array"}
    arrays = {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    arrays["D"][:] = np.nan
    expected = {name: array.copy() for name, array in arrays.items()}
    nest.reference(**expected)
    kernel = poly.compile(nest, schedule=made, target=f"c:{isa.name}", threads=threads)
    kernel(**arrays)
    np.testing.assert_allclose(arrays["D"], expected["D"], rtol=2e-4, atol=2e-4)


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_chains_in_blocks_of_rows(data: st.DataObject) -> None:
    between, after = data.draw(st.sampled_from(list(BETWEEN))), data.draw(st.sampled_from(list(AFTER)))
    m, n, k, width = (data.draw(st.integers(low, high)) for low, high in ((22, 50), (20, 70), (2, 12), (2, 40)))
    isa = data.draw(st.sampled_from([one for one in (ISAS["avx2"], host()) if one.runs_here()]))
    threads = data.draw(st.sampled_from([1, 2]))
    masked, heads = data.draw(st.booleans()), data.draw(st.sampled_from([None, 1, 3]))
    turned, grouped = data.draw(st.booleans()), data.draw(st.booleans())
    nest = chain(between, after, turned, m, max(m, n) if masked else n, k, width, masked, heads, grouped)
    made = row_blocked(nest, target(isa, threads))
    if made is None:
        assert masked, "a product over a box is long enough"
        return
    assert any(isinstance(node, Micro) for node in walk(made.tree))
    compared(nest, with_other_loops(made, target(isa, threads)), isa, threads)


@pytest.mark.parametrize("isa", [one for one in (ISAS["avx2"], host()) if one.runs_here()], ids=str)
def test_masked_attention(isa: ISA, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "LEAST", 50)
    nest = chain("softmax", "product", True, 121, 123, 9, 19, masked=True)
    made = row_blocked(nest, target(isa))
    assert made is not None
    assert sum(isinstance(node, Micro) for node in walk(made.tree)) == 2
    compared(made.nest, with_other_loops(made, target(isa)), isa)


@pytest.mark.parametrize(("heads", "least", "grouped"), [(1, 7, False), (3, 7, False), (3, 100, False), (3, 7, True)])
def test_heads(heads: int, least: int, grouped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of rows are made for a single head, too, where a head is one block, and where heads share operands."""
    monkeypatch.setattr(row_blocks, "LEAST", least)
    nest = chain("softmax", "product", True, 47, 53, 9, 19, heads=heads, grouped=grouped)
    made = row_blocked(nest, target(threads=2))
    assert made is not None
    shared = [step.loop for step in made.steps if isinstance(step, Parallel)]
    assert [name.split("_")[0] for name in shared] == ["h" if heads > 1 else "i"]
    cut = {name.split("_")[0] for step in made.steps if isinstance(step, Split) for name, _ in step.sizes}
    assert "h" not in cut
    compared(nest, with_other_loops(made, target(threads=2)), host(), 2)


def test_a_local_has_the_memory_of_a_block() -> None:
    nest = chain("softmax", "product", True, 96, 200, 16, 24)
    made = row_blocked(nest, target())
    assert made is not None
    whole = poly.compile(nest, schedule=poly.schedule(nest), threads=1).workspace()
    assert 0 < poly.compile(nest, schedule=made, threads=1).workspace() < whole / 3


def test_blocks_whose_loops_take_too_much_work_to_find_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a triangle may at open sizes, where no tile of rows and columns divides the other."""
    N, K = poly.sizes("N K")

    @poly.nest
    def upper(A: poly.f32[N, K], B: poly.f32[N, K], D: poly.f32[N, N]) -> None:
        for _ in range(2):
            for i in range(N):
                for j in range(i, N):
                    s = 0.0
                    for k in range(K):
                        s += A[i, k] * B[j, k]
                    D[i, j] += s

    assert default.default_form(upper, target()).traits == default.ROW_BLOCKS
    monkeypatch.setattr(default, "has_loops", lambda *_: False)
    assert default.default_form(upper, target()).traits == default.KERNELS
