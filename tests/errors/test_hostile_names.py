"""Names of sizes, arrays and loops that the engine uses itself: each nest does what it does under plain names."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opencl_device import TARGET, device

import poly
from microkernels.isa import ISAS
from poly.autoschedule.default import default_schedule
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest
from poly.measure.trusted import Rows, only
from poly.model.host import here
from poly.schedules.schedule import Schedule
from poly.working_sets import footprints, working_sets

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TEXT_READERS = {"Set", "BasicSet", "UnionSet", "Map", "BasicMap", "UnionMap", "Aff", "PwAff", "MultiAff", "PwMultiAff"}
TEXT_READERS |= {"MultiPwAff", "UnionPwAff", "MultiUnionPwAff", "UnionPwMultiAff", "Schedule", "Constraint", "Point"}

Names = Mapping[str, str]
"""What each plain name of a nest is called instead."""


@dataclass(frozen=True)
class Case:
    """Loops under plain names, the steps of a schedule, and a call."""

    loops: str
    sizes: Mapping[str, int]
    steps: Callable[[Schedule, Callable[[str], str]], Schedule]
    fixed: bool = False
    target: str = "c"

    @property
    def words(self) -> list[str]:
        """The names that a user chose: sizes, arguments, locals and loops."""
        body = ast.parse(self.loops).body[0]
        found = [arg.arg for arg in body.args.args] + [n.id for n in ast.walk(body) if isinstance(n, ast.Name)]
        return [name for name in dict.fromkeys([*self.sizes, *found]) if name not in ("f64", "f32", "range")]

    def nest(self, names: Names) -> Nest:
        text = re.sub(r"[A-Za-z_]\w*", lambda word: names.get(word.group(), word.group()), self.loops)
        known = {names[size]: poly.sizes(names[size]) for size in self.sizes}
        made = parse_text(Source(text, "hostile", 1), {**known, "f64": poly.f64, "f32": poly.f32, "range": range})
        return made.with_sizes({names[n]: v for n, v in self.sizes.items()}) if self.fixed else made

    def schedule(self, names: Names) -> Schedule:
        """The case's schedule; `i_tile` is made from the loop's own name, and so is `i_j`."""

        def named(text: str) -> str:
            stem, tile, number = re.fullmatch(r"(\w+?)(_tile)?(\d*)", text).groups()
            return "_".join(names.get(part, part) for part in stem.split("_")) + (tile or "") + number

        return self.steps(poly.schedule(self.nest(names)), named)

    def run(self, names: Names, strided: bool = False) -> list[np.ndarray]:
        """All arrays after a call, by which they may be parts of larger ones."""
        made = self.schedule(names)
        threads = None if self.target.startswith("opencl") else 2
        kernel = poly.compile(made.nest, schedule=made, threads=threads, target=self.target)
        arrays, rng = [], np.random.default_rng(0)
        plain = self.nest({word: word for word in self.words})
        for argument in plain.arguments:
            shape = [extent.evaluate(self.sizes) for extent in argument.shape]
            whole = rng.integers(-4, 5, [*shape[:-1], shape[-1] + 3 * strided]).astype(argument.dtype.numpy_name)
            arrays.append(whole[..., : shape[-1]])
        kernel(*arrays)
        return arrays


def tiled_copy(s: Schedule, n: Callable[[str], str]) -> Schedule:
    return s.tile(**{n("i"): 4, n("j"): 5}).pack(n("A"), at=n("i_tile")).parallel(n("i_tile"))


def tiled_product(s: Schedule, n: Callable[[str], str]) -> Schedule:
    tiled = s.tile(**{n("i"): 4, n("j"): 4}).order(" ".join(map(n, ("j_tile", "i_tile", "i", "j", "k"))))
    packed = tiled.microkernel(KERNEL).pack(n("A"), at=n("i_tile")).pack(n("B"), at=n("j_tile"))
    return packed.parallel(n("j_tile"))


def flat(s: Schedule, n: Callable[[str], str]) -> Schedule:
    return s.flatten(n("i"), n("j")).split(**{n("i_j"): 7}).unroll(**{n("i_j"): 3})


def skewed(s: Schedule, n: Callable[[str], str]) -> Schedule:
    return s.skew(n("i"), by=n("t")).tile(**{n("t"): 3, n("i"): 4})


def parted(s: Schedule, n: Callable[[str], str]) -> Schedule:
    return s.part(s.nest.statements[0].name, **{n("i"): 4}).split(**{n("i"): 4})


def lanes(s: Schedule, n: Callable[[str], str]) -> Schedule:
    return s.split(**{n("j"): 6}).vectorize(n("j"))


def shared_sums(s: Schedule, n: Callable[[str], str]) -> Schedule:
    return s.groups(n("i")).items(**{n("j"): 4})


def shared_box(s: Schedule, n: Callable[[str], str]) -> Schedule:
    grouped = s.tile(**{n("i"): 4, n("j"): 8}).groups(n("i_tile"), n("j_tile")).items(**{n("i"): 4, n("j"): 4})
    return grouped.pack(n("A"), at=n("j_tile"), memory="local", pad=1)


def waiting(s: Schedule, n: Callable[[str], str]) -> Schedule:
    return s.items(**{n("i"): 4, n("j"): 4})


KERNEL = "gemm_portable_4x4"
PRODUCT = """
def product(A: f64[M, K], B: f64[K, N], C: f64[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]
"""
CASES = {
    "box": Case(
        "def moved(A: f64[M, N], B: f64[N, M]):\n    for i in range(M):\n        for j in range(N):\n"
        "            B[j, i] = A[i, j]\n",
        {"M": 11, "N": 13},
        tiled_copy,
    ),
    "cross": Case(
        "def cross(A: f64[M + 2, N + 2], B: f64[M, N]):\n    for i in range(M):\n        for j in range(N):\n"
        "            if i + 1 < M or j > 2:\n"
        "                B[i, j] = A[i, j + 1] + A[i + 2, j + 1] + A[i + 1, j] + A[i + 1, j + 2]\n",
        {"M": 9, "N": 11},
        tiled_copy,
    ),
    "conditions": Case(
        "def some(A: f64[M, N], B: f64[M, N]):\n    for i in range(0, M, 2):\n        for j in range(N):\n"
        "            if (i + j) % 3 != 1 or not i // 2 >= j:\n                B[i, j] = A[i, j] + i\n"
        "            else:\n                B[i, j] = M\n",
        {"M": 9, "N": 11},
        lambda s, n: s.interchange(n("i"), n("j")),
    ),
    "panels": Case(PRODUCT, {"M": 9, "N": 18, "K": 7}, tiled_product, target="c:portable"),
    "known panels": Case(PRODUCT, {"M": 9, "N": 18, "K": 7}, tiled_product, fixed=True, target="c:portable"),
    "flatten": Case(
        "def flat(A: f64[M, N], B: f64[M, N]):\n    for i in range(M):\n        for j in range(N):\n"
        "            B[i, j] = 2.0 * A[i, j]\n",
        {"M": 5, "N": 6},
        flat,
        fixed=True,
    ),
    "skew": Case(
        "def skewed(A: f64[T, N]):\n    for t in range(1, T):\n        for i in range(1, N - 1):\n"
        "            A[t, i] = A[t - 1, i - 1] + A[t - 1, i] + A[t - 1, i + 1]\n",
        {"T": 6, "N": 12},
        skewed,
    ),
    "part": Case(
        "def solve(L: f64[N, N], x: f64[N]):\n    for i in range(N):\n        for j in range(i):\n"
        "            x[i] -= L[i, j] * x[j]\n",
        {"N": 10},
        parted,
    ),
    "lanes": Case(
        "def sums(A: f64[M, N], s: f64[M]):\n    for i in range(M):\n        v = 0.0\n        for j in range(N):\n"
        "            v += A[i, j]\n        s[i] = v\n",
        {"M": 4, "N": 20},
        lanes,
    ),
}
DEVICE = {
    "partial sums": Case(
        "def sums(A: f32[M, N], s: f32[M]):\n    for i in range(M):\n        s[i] = 0.0\n        for j in range(N):\n"
        "            s[i] += A[i, j]\n",
        {"M": 9, "N": 11},
        shared_sums,
        target=TARGET,
    ),
    "local box": Case(
        "def moved(A: f32[M, N], B: f32[N, M]):\n    for i in range(M):\n        for j in range(N):\n"
        "            B[j, i] = A[i, j]\n",
        {"M": 11, "N": 13},
        shared_box,
        target=TARGET,
    ),
    "barriers": Case(
        "def steps(A: f32[N + 2], B: f32[N + 2]):\n    for t in range(T):\n        for i in range(N):\n"
        "            B[i] = A[i] + A[i + 1]\n        for j in range(N):\n            A[j] = B[j] - B[j + 1]\n",
        {"N": 11, "T": 3},
        waiting,
        fixed=True,
        target=TARGET,
    ),
}
OWN = """
x0 x1 d0 d1 s0 s1 t0 o0 v w l h x c0 c1 c2 e0 i0 i1 p0 p1 copy pack tile copy_ start lane lanes at left item group S0 S1
S0_0 S0_1 S0_tile S0_near S0_start S0_end S0_join barrier barrier_1 barrier_0 imin imax workspace threads
i_tile j_tile k_tile t_tile i_j i_2 i_tile2 i_3 j_2 A_box A_box_0 A_box_1 A_box_2 A_box_start0 A_box_start1 A_box_turn
A_box_copy A_0 A_1 A_copy A_panels B_panels A_pack i_A k_A i_j_tile i__6 i_j__6 A_value s_sum A_lanes f32_shares sizes
"""
"""Names of the engine's own sets, loops, copies and variables, for nests whose loops and arrays have plain names."""


@st.composite
def renamings(draw: st.DrawFn, cases: Mapping[str, Case]) -> tuple[str, dict[str, str]]:
    """A case and names for it: some words of it get a name from `OWN`, each its own.

    None is called as the tiles of another one are, since a case's steps would then mean other loops: `i_tile` beside i.
    """
    which = draw(st.sampled_from(sorted(cases)))
    words = cases[which].words
    fresh = [name for name in OWN.split() if name not in words and name.removesuffix("_tile") not in words]
    chosen = draw(st.lists(st.sampled_from(words), min_size=1, max_size=4, unique=True))
    names = draw(st.lists(st.sampled_from(fresh), min_size=len(chosen), max_size=len(chosen), unique=True))
    return which, {word: word for word in words} | dict(zip(chosen, names, strict=True))


def plain_names(case: Case) -> dict[str, str]:
    return {word: word for word in case.words}


@given(renamings(CASES), st.booleans())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_names_run_alike(drawn: tuple[str, Names], strided: bool) -> None:
    """Every element of every array, after packs, tiles, lanes, microkernels and parts."""
    case, names = CASES[drawn[0]], drawn[1]
    for wanted, got in zip(case.run(plain_names(case), strided), case.run(names, strided), strict=True):
        np.testing.assert_array_equal(got, wanted)


@given(renamings(DEVICE))
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_names_run_alike_on_a_device(drawn: tuple[str, Names]) -> None:
    device()
    case, names = DEVICE[drawn[0]], drawn[1]
    for wanted, got in zip(case.run(plain_names(case)), case.run(names), strict=True):
        np.testing.assert_array_equal(got, wanted)


@given(renamings(CASES))
@settings(max_examples=9, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_names_touch_alike(drawn: tuple[str, Names]) -> None:
    """Working sets and footprints are those of the nest under plain names."""
    case, names = CASES[drawn[0]], drawn[1]
    plain, other = touched(case, plain_names(case)), touched(case, names)
    assert plain == other and plain[1]


def touched(case: Case, names: Names) -> tuple[list[str], list[int]]:
    made = case.schedule(names)
    if made.nest.sizes:
        made = made.on(made.nest.with_sizes({names[size]: value for size, value in case.sizes.items()}))
    sizes = sorted(str((reuse.kind, reuse.sizes)) for reuse in working_sets(made))
    return sizes, [found.footprint.bytes for found in footprints(made)]


def choice(case: Case, names: Names) -> tuple[int, list[str], int]:
    """The points of the space, and the steps and lines of the model's choice."""
    nest = case.nest(names)
    points = len(poly.space(nest, threads=1))  # first, since it may calibrate the machine
    made = default_schedule(nest, here(ISAS["avx2"], 1))
    return points, [step.name for step in made.steps], len(str(made).splitlines())


@cache
def plain_choice(name: str) -> tuple[int, list[str], int]:
    return choice(CASES[name], plain_names(CASES[name]))


@given(renamings(CASES))
@settings(max_examples=9, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_names_are_chosen_for_alike(drawn: tuple[str, Names]) -> None:
    """The space of schedules is as large, and the model's choice has the same steps and text."""
    name, names = drawn
    assert choice(CASES[name], names) == plain_choice(name)


ROWS = {name: case for name, case in CASES.items() if name != "lanes"}
"""The cases that write one array alone."""


@given(renamings(ROWS), st.integers(1, 4))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_some_rows_of_any_array(drawn: tuple[str, Names], step: int) -> None:
    """The rows that vouch for a candidate are as many."""
    case, names = CASES[drawn[0]], drawn[1]
    counts = []
    for given_names in (plain_names(case), names):
        nest = case.nest(given_names)
        known = nest.with_sizes({given_names[n]: case.sizes[n] for n in case.sizes if given_names[n] in nest.sizes})
        array = known.statements[-1].target.array
        kept = only(known, Rows(array, 0, step))
        counts.append([statement.domain.count_val().to_python() for statement in kept.statements])
    assert counts[0] == counts[1] and sum(counts[0])


def test_shown_loops_are_apart_from_sizes() -> None:
    """A size that is called like a loop over tiles stays what it is in the text."""
    made = CASES["box"].schedule(plain_names(CASES["box"]) | {"M": "i_tile"})
    assert "for i_tile_ in range((i_tile + 3) // 4):" in str(made)
    assert "range(4*i_tile_, min(i_tile, 4*i_tile_ + 4))" in str(made)


def test_isl_reads_no_text_with_names_in_it() -> None:
    """Only texts that stand in the program as they are go into isl's notation."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("poly", "codegen")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and is_reader(node.func)
        and not all(isinstance(a, ast.Constant) for a in node.args)
    ]
    assert not found, f"build these sets from spaces (poly/ir/sets.py): {', '.join(found)}"


def is_reader(function: ast.expr) -> bool:
    """`isl.Set` and the like, called to read a text."""
    match function:
        case ast.Attribute(value=ast.Name("isl"), attr=name):
            return name in TEXT_READERS
        case ast.Attribute(attr="read_from_str"):
            return True
    return False
