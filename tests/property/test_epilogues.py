"""What follows a contraction runs on each register tile, in whatever loops it is written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import LARGE

import poly
from microkernels.isa import ISA, ISAS, host
from poly.autoschedule.default import default_schedule
from poly.ir.tree import Band, Micro, Node, Sequence, statements, walk
from poly.model.core import Target
from poly.schedules.schedule import Schedule

HERE = [isa for isa in (ISAS["avx2"], host()) if isa.runs_here()]

EPILOGUES = {
    "bias": "D[i, j] = {t} + b[j]",
    "relu": "D[i, j] = max({t} + b[j], 0)",
    "residual": "D[i, j] = {t} * 0.5 + R[i, j]",
    "turned": "E[j, i] = {t} - b[j]",
    "added": "D[i, j] += {t}",
    "row": "z[i] += {t}",
}


EXTENTS = {"h": "H", "i": "M", "j": "N"}


def source(epilogues: list[str], local: bool, loops: str, batch: bool, start: str = "0") -> str:
    """A product into a local or into C, and what follows: in the product's loops, in its own, or in turned ones.

    The product is added to `start`.
    """
    first = "T" if local else "C"
    at = "[h, i, j]" if batch else "[i, j]"
    lines = [EPILOGUES[name].format(t=first + at) for name in epilogues]
    inside = [f"{first}{at} = {start}", "for k in range(K):", f"    {first}{at} += A{at.replace('j', 'k')} * B[k, j]"]
    nests = {"own": [("i", "j"), *(("i", "j") for _ in lines)], "turned": [("i", "j"), *(("j", "i") for _ in lines)]}
    bodies = [[*inside, *lines]] if loops == "shared" else [inside, *([line] for line in lines)]
    text = ["    T: f32[H, M, N]" if batch else "    T: f32[M, N]"] if local else []
    for around, body in zip(nests.get(loops, [("i", "j")]), bodies, strict=True):
        around = ("h", *around) if batch else around
        for depth, name in enumerate(around):
            text.append("    " * (depth + 1) + f"for {name} in range({EXTENTS[name]}):")
        text += ["    " * (len(around) + 1) + line for line in body]
    shape = "H, M" if batch else "M"
    return "\n".join(
        [
            f"def layer(A: f32[{shape}, K], B: f32[K, N], b: f32[N], R: f32[M, N], C: f32[{shape}, N], "
            "D: f32[M, N], E: f32[N, M], z: f32[M]):",
            *text,
        ]
    )


def layer(
    epilogues: list[str], local: bool, loops: str, batch: bool, sizes: dict[str, int], start: str = "0"
) -> poly.Nest:
    names = {name: poly.sizes(name) for name in sizes}
    return poly.parse(source(epilogues, local, loops, batch, start), names).with_sizes(sizes)


def compared(nest: poly.Nest, made: Schedule, isa: ISA, threads: int) -> None:
    """Run a schedule, and compare all results with the nest's own reference."""
    rng = np.random.default_rng(1)
    shapes = {a.name: tuple(n.constant for n in a.shape) for a in nest.arrays if a.kind == "array"}
    arrays = {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    expected = {name: array.copy() for name, array in arrays.items()}
    nest.reference(**expected)
    poly.compile(nest, schedule=made, target=f"c:{isa.name}", threads=threads)(**arrays)
    for name, array in arrays.items():
        np.testing.assert_allclose(array, expected[name], rtol=2e-4, atol=2e-4, err_msg=name)


def on_tiles(made: Schedule) -> tuple[str, ...]:
    """The statements that run beside a microkernel in the loops over its tiles."""

    def beside(node: Node) -> tuple[str, ...]:
        if not isinstance(node, Sequence) or not any(isinstance(child, Micro) for child in node.children):
            return ()
        micro = next(child for child in node.children if isinstance(child, Micro))
        initial = {micro.initial}
        others = [child for child in node.children if isinstance(child, Band)]
        return tuple(name for child in others for name in statements(child) if name not in initial)

    return next((found for node in walk(made.tree) if (found := beside(node))), ())


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_results_on_tiles(data: st.DataObject) -> None:
    epilogues = data.draw(st.lists(st.sampled_from(list(EPILOGUES)), min_size=1, max_size=3))
    sizes = {name: data.draw(st.integers(1, high)) for name, high in (("M", 40), ("N", 140), ("K", 30))}
    batch = data.draw(st.booleans())
    loops = data.draw(st.sampled_from(["shared", "own", "turned"]))
    start = data.draw(st.sampled_from(["0", "b[j]", "R[i, j]"]))
    nest = layer(epilogues, data.draw(st.booleans()), loops, batch, sizes | ({"H": 2} if batch else {}), start)
    isa, threads = data.draw(st.sampled_from(HERE)), data.draw(st.sampled_from([1, 2]))
    compared(nest, default_schedule(nest, Target.nominal(isa, LARGE, threads)), isa, threads)


@pytest.mark.parametrize("isa", HERE, ids=str)
@pytest.mark.parametrize("loops", ["shared", "own", "turned"])
@pytest.mark.parametrize("local", [True, False], ids=["local", "array"])
def test_they_run_on_each_tile(isa: ISA, loops: str, local: bool) -> None:
    nest = layer(["relu", "residual"], local, loops, False, {"M": 61, "N": 149, "K": 40})
    made = default_schedule(nest, Target.nominal(isa, LARGE, 1))
    assert on_tiles(made) == ("S2", "S3")
    compared(nest, made, isa, 1)


@pytest.mark.parametrize("start", ["0", "b[j]"])
def test_so_does_what_sets_the_results(start: str) -> None:
    """A bias is set on each tile; the microkernel itself begins at 0."""
    made = default_schedule(
        layer([], False, "shared", False, {"M": 61, "N": 149, "K": 40}, start), Target.nominal(host(), LARGE, 1)
    )
    assert on_tiles(made) == (() if start == "0" else ("S0",))


CONVOLUTION = """
def conv(A: f32[P + R - 1, Q + R - 1, K], B: f32[R, R, K, N], b: f32[N], D: f32[P, Q, N]):
    for p in range(P):
        for q in range(Q):
            for j in range(N):
                t: f32 = 0.0
                for r in range(R):
                    for s in range(R):
                        for k in range(K):
                            t += A[p + r, q + s, k] * B[r, s, k, j]
                D[p, q, j] = max(t + b[j], 0)
"""


@pytest.mark.parametrize("taps", [1, 3])
def test_convolutions_on_tiles_of_flattened_rows(taps: int) -> None:
    sizes = {"P": 9, "Q": 7, "R": taps, "K": 20 if taps == 1 else 12, "N": 70}
    nest = poly.parse(CONVOLUTION, {name: poly.sizes(name) for name in sizes}).with_sizes(sizes)
    made = default_schedule(nest, Target.nominal(host(), LARGE, 1))
    assert on_tiles(made) == ("S2",)
    compared(nest, made, host(), 1)


def test_a_local_has_the_memory_of_a_tile() -> None:
    nest = layer(["relu"], True, "own", False, {"M": 300, "N": 200, "K": 40})
    made = default_schedule(nest, Target.nominal(host(), LARGE, 1))
    (kernel,) = (node.kernel for node in walk(made.tree) if isinstance(node, Micro))
    alone = layer([], False, "own", False, {"M": 300, "N": 200, "K": 40})
    plain = default_schedule(alone, Target.nominal(host(), LARGE, 1))
    more = poly.compile(nest, schedule=made).workspace() - poly.compile(alone, schedule=plain).workspace()
    assert 0 < more <= 4 * kernel.rows * kernel.columns + 64


def test_what_reads_far_away_does_not() -> None:
    nest = layer(["residual"], True, "own", False, {"M": 700, "N": 600, "K": 40})
    assert on_tiles(default_schedule(nest, Target.nominal(host(), LARGE, 1))) == ()


def test_a_reduction_in_blocks() -> None:
    sizes = {"M": 13, "N": 70, "K": 3000}
    made = default_schedule(layer(["relu"], False, "own", False, sizes), Target.nominal(host(), LARGE, 1))
    assert on_tiles(made) == ("S2",)
    compared(made.nest, made, host(), 1)
    local = default_schedule(layer(["relu"], True, "own", False, sizes), Target.nominal(host(), LARGE, 1))
    assert on_tiles(local) == ()


TWO_LAYERS = """
def block(X: f32[24, 16, 16], V: f32[80, 24], b: f32[80], W: f32[32, 80], Y: f32[32, 16, 16]):
    T: f32[80, 16, 16]
    for e in range(80):
        for p in range(16):
            for q in range(16):
                t: f32 = b[e]
                for c in range(24):
                    t += X[c, p, q] * V[e, c]
                T[e, p, q] = max(t, 0)
    for k in range(32):
        for p in range(16):
            for q in range(16):
                u: f32 = 0.0
                for e in range(80):
                    u += T[e, p, q] * W[k, e]
                Y[k, p, q] = max(u, 0)
"""


def test_each_of_two_layers_has_tiles_of_its_own() -> None:
    """The second one's loops get other names than those that the first one's tiles have."""
    nest = poly.parse(TWO_LAYERS, {"f32": poly.f32})
    made = default_schedule(nest, Target.nominal(host(), LARGE, 1))
    assert sum(isinstance(node, Micro) for node in walk(made.tree)) == 2
