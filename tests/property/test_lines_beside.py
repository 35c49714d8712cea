"""Recurrences along independent lines run in the lanes of many lines at once, whatever else is done for each line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly

LINES = 16
"""The lines in a block of the default schedule."""


@dataclass(frozen=True)
class Sweep:
    """A tridiagonal solve of each line: forward, then backward, over `n` lines of `m` elements.

    `across` is whether lines go down the columns of the result; `local` whether a scalar carries the forward sweep.
    """

    n: int
    m: int
    across: bool
    local: bool
    dtype: str = "f64"

    @property
    def text(self) -> str:
        """The loops, with something before, between and behind the recurrences."""
        n, m, t = self.n, self.m, self.dtype

        def y(place: str) -> str:
            return f"Y[{place}, i]" if self.across else f"Y[i, {place}]"

        shape = f"{m}, {n}" if self.across else f"{n}, {m}"
        before, after = ("s", [f"{' ' * 12}s = P[i, j]"]) if self.local else ("P[i, j - 1]", [])
        lines = [
            f"def sweep(A: '{t}[{n}, {m}]', C: '{t}[{m}]', P: '{t}[{n}, {m}]', Y: '{t}[{shape}]'):",
            f"    for i in range({n}):",
            "        P[i, 0] = 0.5",
            *(["        s = 0.5"] if self.local else []),
            f"        for j in range(1, {m}):",
            f"            P[i, j] = C[j] / (A[i, j] + 0.25 * {before})",
            *after,
            f"        {y(str(m - 1))} = 1.0",
            f"        for j in range({m} - 2, -1, -1):",
            f"            {y('j')} = P[i, j] * {y('j + 1')} + A[i, j]",
        ]
        return "\n".join(lines)

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The inputs, and outputs full of NaN, all of which are written."""
        random, shape = np.random.default_rng(5), (self.m, self.n) if self.across else (self.n, self.m)
        dtype = np.float64 if self.dtype == "f64" else np.float32
        inputs = random.random((self.n, self.m)) + 0.5, random.random(self.m) + 0.5
        outputs = np.full((self.n, self.m), np.nan), np.full(shape, np.nan)
        return tuple(array.astype(dtype) for array in (*inputs, *outputs))


def check(sweep: Sweep, threads: int = 1, target: str = "c") -> str:
    """The results are those of the loops as written; the text of the schedule."""
    nest = poly.parse(sweep.text)
    kernel = poly.compile(nest, threads=threads, target=target)
    expected, got = sweep.arrays(), sweep.arrays()
    nest.reference(*expected)
    kernel(*got)
    for want, have in zip(expected, got, strict=True):
        np.testing.assert_allclose(have, want, rtol=64 * np.finfo(want.dtype).eps)
    return str(kernel.schedule)


@given(
    st.builds(
        Sweep,
        st.integers(1, 2 * LINES + 1),
        st.integers(1, 2 * LINES + 1),
        st.booleans(),
        st.booleans(),
        st.sampled_from(["f32", "f64"]),
    ),
    st.sampled_from([1, 2]),
)
@settings(max_examples=12, deadline=None)
def test_results_at_any_size(sweep: Sweep, threads: int) -> None:
    check(sweep, threads)


@pytest.mark.parametrize("across", [True, False])
@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("target", ["c", "c:avx2"])
def test_recurrences_go_into_lanes_of_lines(across: bool, local: bool, target: str) -> None:
    text = check(Sweep(2 * LINES + 3, 51, across, local), target=target)
    inner = [line for line, after in zip(text.splitlines(), text.splitlines()[1:], strict=False) if "P[" in after]
    assert "for i_tile in range(3):" in text
    assert any("vectorize" in line for line in inner), text


def test_lines_whole_pages_apart_stay_one_after_the_other() -> None:
    """Their elements would all lie at the same place of their pages."""
    assert "_tile" not in check(Sweep(2 * LINES, 512, across=False, local=False))
    assert "_tile" in check(Sweep(2 * LINES, 520, across=False, local=False))


def test_lines_that_depend_on_one_another_stay_as_they_are() -> None:
    nest = poly.parse(
        "def sweep(A: 'f64[37, 51]'):\n"
        "    for i in range(1, 37):\n"
        "        A[i, 0] = A[i - 1, 50]\n"
        "        for j in range(1, 51):\n"
        "            A[i, j] = 0.5 * A[i, j - 1] + A[i - 1, j]\n"
    )
    kernel = poly.compile(nest, threads=1)
    assert str(kernel.schedule) == str(poly.schedule(nest))
    expected, got = (np.random.default_rng(2).random((37, 51)) for _ in range(2))
    nest.reference(expected)
    kernel(got)
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_backward_loops_turn_as_forward_ones_do() -> None:
    """What runs down the columns goes along the rows inside, in either direction."""
    texts = []
    for loop, before in (("range(1, 40)", "j - 1"), ("range(38, -1, -1)", "j + 1")):
        nest = poly.parse(
            f"def columns(A: 'f64[40, 70]'):\n"
            f"    for i in range(70):\n"
            f"        for j in {loop}:\n"
            f"            A[j, i] += 0.5 * A[{before}, i]\n"
        )
        expected, got = (np.random.default_rng(2).random((40, 70)) for _ in range(2))
        nest.reference(expected)
        kernel = poly.compile(nest, threads=1)
        kernel(got)
        np.testing.assert_allclose(got, expected, rtol=1e-13)
        texts.append(str(kernel.schedule).splitlines()[1])
    assert texts == ["    for i in range(70):  # vectorize"] * 2
