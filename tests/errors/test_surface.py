"""Whatever is passed through a public door, the call ends in a result or in a PolyError with a clear message.

A call that doesn't fit a function's signature (no such parameter, too many) is Python's own TypeError; errors of the
caller's own objects, KeyboardInterrupt and MemoryError pass through as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import ARRAYS, VALUES, Fault, Own, fault, fresh
from shared_nests import matmul

import poly
from poly import f32
from poly.autoschedule import derive
from poly.blas import routines, write_blas
from poly.explanation import explained
from poly.machine import Bandwidth, Measured, Peak
from poly.model.rates import from_machine
from poly.schedules.steps import STEPS
from poly.tuning import session

pytestmark = pytest.mark.slow

Array = np.ndarray[Any, Any]
M, N, K = poly.sizes("M N K")


@poly.nest
def two(A: f32[M, N], X: f32[M, N], Y: f32[M, N]):
    for i in range(M):
        for j in range(N):
            X[i, j] = A[i, j]
    for p in range(M):
        for q in range(N):
            Y[p, q] = X[p, q]


@poly.nest
def summed(A: f32[M, N], X: f32[M]):
    for i in range(M):
        w = X[i]
        for j in range(N):
            w += A[i, j]
        X[i] = w


SIZES = {"M": 4, "N": 4, "K": 4}
LEVELS = ("L1", "L2", "L3", "memory")
OWN = "static void matmul_f32_portable_2x4(void)\n{\n}\n"
TILE = {"i": 2, "j": 4}
RATES = Measured((Peak("f32", 1, 100.0), Peak("f64", 1, 50.0)), tuple(Bandwidth(at, 1, 50.0, 40.0) for at in LEVELS))


C_LOOPS = "void f(double x[N]) { for (int i = 0; i < N; i++) x[i] = 0; }"


@dataclass(frozen=True)
class Door:
    """A public function with arguments that fit."""

    name: str
    call: Callable[..., Any]
    positional: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)

    def calls(self) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
        """Each argument in turn replaced by each hostile value."""
        for value in VALUES:
            for place in range(len(self.positional)):
                arguments = list(self.positional)
                arguments[place] = fresh(value)
                yield f"{self.name}, argument {place} = {value}", tuple(arguments), self.keywords
            for key in self.keywords:
                yield f"{self.name}, {key} = {value}", self.positional, {**self.keywords, key: fresh(value)}


@cache
def kernel() -> poly.Kernel:
    return poly.compile(matmul, records=False)


@cache
def small() -> poly.Kernel:
    return poly.compile(two, records=False, target="c:portable", threads=1)


def operands() -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.random((4, 4)).astype(np.float32) for _ in range(3)]


def steps() -> list[Door]:
    made = poly.schedule(two)
    product = poly.schedule(matmul).tile(i=6, j=16)
    tuned = product.microkernel("gemm_avx512_6x16")
    return [
        Door("tile", made.tile, (), {"i": 4, "j": 4}),
        Door("split", made.split, (), {"i": 4}),
        Door("interchange", made.interchange, ("i", "j")),
        Door("order", made.order, ("j i",)),
        Door("flatten", made.flatten, ("i", "j")),
        Door("fuse", made.fuse, ("S0", "S1"), {"at": "j"}),
        Door("distribute", made.distribute, ("i",), {"behind": None, "last": None}),
        Door("enclose", made.enclose, ("k",), {"at": None, "S0": "i // 4", "S1": "i // 4"}),
        Door("skew", made.skew, ("j",), {"by": "i", "factor": 1}),
        Door("shift", made.shift, ("j",), {"by": 1, "statement": None}),
        Door("reverse", made.reverse, ("j",)),
        Door("parallel", made.parallel, ("i",)),
        Door("groups", made.groups, ("i", "j")),
        Door("items", made.groups("i").items, (), {"j": 4}),
        Door("vectorize", made.vectorize, ("j",)),
        Door("unroll", made.unroll, (), {"j": 4}),
        Door(
            "pack",
            tuned.pack,
            ("A",),
            {"at": None, "statement": None, "role": None, "memory": "global", "pad": 0, "buffers": 1},
        ),
        Door("part", made.part, ("S0",), {"i": 4}),
        Door("part by a condition", made.part, ("S0",), {"where": "i > 2", "into": "T"}),
        Door("accumulate", poly.schedule(summed).accumulate, ("w", "X")),
        Door("substitute", poly.schedule(summed).substitute, ("w",)),
        Door("materialize", product.materialize, ("S0", "A[i, k] * B[k, j]"), {"into": "u"}),
        Door("privatize", made.privatize, ("X", "i"), {"into": "u"}),
        Door("reorder_storage", made.reorder_storage, ("X", 1, 0), {"into": "u"}),
        Door("rfactor", poly.schedule(product.nest.with_sizes({"K": 9})).rfactor, ("S0",), {"k": 4, "into": "u"}),
        Door("split_iterator", poly.schedule(product.nest).split_iterator, ("S0",), {"k": 4}),
        Door("microkernel", product.microkernel, ("gemm_avx512_6x16",), {"statement": None, "initial": None}),
        Door("loops", made.loops, ("bAb",), {"blocks": {"b": 64}}),
        Door("loops' blocks", lambda b: made.loops("bAb", blocks={"b": b}), (64,)),
        Door("apply", made.apply, ([],)),
        Door("apply one", lambda step: made.apply([step]), (made.tile(i=4).steps[0],)),
        Door("on", made.on, (two,)),
        Door("from_json", poly.Schedule.from_json, (two, made.tile(i=4).to_json())),
    ]


PARSED = "def f(x: f32[N]):\n    for i in range(N):\n        x[i] = 1\n"


def functions(folder: Path) -> list[Door]:
    made = poly.schedule(matmul)
    told = {"target": "c:portable", "threads": 1, "sizes": {}, "M": 4}
    return [
        Door("sizes", poly.sizes, ("M N",)),
        Door("nest", poly.nest, (lambda x: x,), {"reassociate": True}),
        Door("parse", poly.parse, (PARSED, {"N": 3}), {"function": "f", "reassociate": True}),
        Door("from_c", poly.from_c, (C_LOOPS, "f"), {"include": [], "define": {"N": 3}, "reassociate": True}),
        Door("einsum", poly.einsum, ("mk,kn->mn",), {"dtype": f32, "reassociate": True, "m": 4}),
        Door("einsum's order", poly.einsum, ("m,m,m",), {"shapes": [(4,)] * 3, "optimize": [(0, 1), (0, 1)]}),
        Door("an extent", lambda e: poly.einsum("m...->m...", shapes=[(e, e)]), (4,)),
        Door("an operand", lambda a, out: poly.einsum("m", a, out=out), (np.ones(4), np.ones(4))),
        Door(
            "compile",
            poly.compile,
            (matmul,),
            {"schedule": None, "records": False, "compiler": None, "flags": ["-O1"], **told},
        ),
        Door("dependences", poly.dependences, (matmul,)),
        Door("schedule", poly.schedule, (matmul,)),
        Door("microkernel", poly.microkernel, (matmul,), {"c": OWN, "isa": "portable", "tile": TILE, "needs": {}}),
        Door("microkernel's tile", lambda i: poly.microkernel(matmul, c=OWN, isa="avx2", tile={"i": i, "j": 4}), (2,)),
        Door("explain", poly.explain, (made,), {**told, "N": 4, "K": 4}),
        Door("compare", poly.compare, (made, made), {**told, "N": 4, "K": 4}),
        Door("space", poly.space, (matmul,), {"coarse": False, **told}),
        Door(
            "write_header",
            poly.write_header,
            (folder / "made.h", small()),
            {"prefix": "own", "isas": ("portable",), "threads": "none", "dense": False},
        ),
        Door("write_header of a list", lambda one: poly.write_header(folder / "made.h", [one]), (small(),)),
        Door(
            "write_blas",
            write_blas,
            (folder / "blas.h", ["gemv"]),
            {"prefix": "own", "isas": ["portable"], "threads": "none"},
        ),
        Door("kernel.write_header", small().write_header, (folder / "made.h",), {"prefix": "own", "isas": None}),
        Door(
            "write_package",
            lambda path, made, called, version, flags: poly.write_package(
                path, made, name=called, version=version, isas=["portable"], flags=flags
            ),
            (folder / "made", small(), "own", "1.0", []),
        ),
        Door("write_opencl", poly.write_opencl, (folder, kernel())),
        Door("nest.with_sizes", matmul.with_sizes, (SIZES,)),
        Door("nest.statement", matmul.statement, ("S0",)),
        Door("nest.array", matmul.array, ("A",)),
        Door("kernel.workspace", kernel().workspace, (), {"threads": 1, **SIZES}),
        Door("kernel.arguments", kernel().arguments, tuple(operands()), {"threads": 1}),
        Door("kernel.prepack", kernel().prepack, ("B", operands()[1])),
        Door("kernel.torch_op", small().torch_op, ("own::two",), {"backward": None}),
        Door("machine.cache", poly.machine().cache, (1,)),
        Door("machine.share", poly.machine().share, (poly.machine().caches[0],)),
    ]


def tunings() -> list[Door]:
    choices = {"strategy": "droplet", "trials": 1, "seconds": 1.0, "start": "model", "cold": False, "seed": 0}
    told = {"target": "c:portable", "threads": 1, "sizes": {"N": 4}, "at": {"K": 4}, "records": False, "show": False}
    told |= {"compiler": None, "flags": ()}
    return [Door("tune", poly.tune, (matmul,), {**choices, **told, "M": 4})]


def faults(doors: list[Door]) -> list[Fault]:
    found = (fault(name, door.call, *args, **keywords) for door in doors for name, args, keywords in door.calls())
    return [one for one in found if one is not None]


def told(found: list[Fault]) -> str:
    return "\n".join(map(str, found))


def test_every_step_takes_any_value() -> None:
    assert not (found := faults(steps())), told(found)


def test_every_function_takes_any_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(explained, "measured", lambda machine: RATES)
    monkeypatch.setattr(routines, "routines", cache(routines.routines))
    for module in (explained, derive):
        monkeypatch.setattr(module, "rates", lambda isa, threads: from_machine(RATES, isa, threads))
    assert not (found := faults(functions(tmp_path))), told(found)


def test_a_tuning_takes_any_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_: Any) -> None:
        raise Own

    monkeypatch.setattr(session.TuningSession, "__init__", begin)
    assert not (found := faults(tunings())), told(found)


def test_every_public_name_has_a_door(tmp_path: Path) -> None:
    """A new function, or a new step, must be tried here as well."""
    doors = [door.name for door in (*functions(tmp_path), *steps(), *tunings())]
    values = {
        name for name in poly.__all__ if not callable(getattr(poly, name)) or inspect.isclass(getattr(poly, name))
    }
    assert set(poly.__all__) - values - {"machine"} <= set(doors)
    assert set(doors) >= STEPS


# --- calls ----------------------------------------------------------------------------------------------------------

Way = Callable[[Callable[..., Any], list[Any]], Any]
WAYS: dict[str, Way] = {
    "by position": lambda call, arrays: call(*arrays),
    "by name": lambda call, arrays: call(**dict(zip("ABC", arrays, strict=True))),
    "prepared": lambda call, arrays: call.arguments(*arrays),
}


def callables() -> dict[str, Callable[..., Any]]:
    fixed = poly.compile(matmul, records=False, **SIZES)
    return {"nest": matmul, "reference": matmul.reference, "open kernel": kernel(), "fixed kernel": fixed}


def call_fault(
    name: str, call: Callable[..., Any], way: Way, place: int, spoil: Callable[[Array], Any]
) -> Fault | None:
    """A call with one odd array is refused with nothing changed, or its result is right."""
    arrays: list[Any] = operands()
    arrays[place] = spoil(arrays[place])
    before = [_values(array) for array in arrays]
    refused = []

    def called() -> None:
        try:
            way(call, arrays)
        except poly.PolyError:
            refused.append(True)
            raise

    found = fault(name, called)
    if found or way is WAYS["prepared"]:
        return found
    after = [_values(array) for array in arrays]
    if not refused and all(values.shape == (4, 4) for values in before):
        before[2] = before[2] + before[0] @ before[1]
    elif not refused:
        before[2] = after[2]  # an operand that only the kernel can read: what it should be is not known here
    same = [np.allclose(new, old, equal_nan=True) for new, old in zip(after, before, strict=True)]
    return None if all(same) else Fault(name, f"the arrays are not as they should be: {same}")


def _values(value: Any) -> Array:
    """A copy of an array's elements; nothing where it is none, or too large to be one."""
    if (
        not issubclass(type(value), np.ndarray)
        or value.dtype.hasobject
        or value.dtype.kind not in "fiub"
        or value.dtype.itemsize > 8
    ):
        return np.zeros(0)
    plain = np.ndarray.view(value, np.ndarray)
    return plain.copy() if all(extent < 100 for extent in plain.shape) else np.zeros(0)


def test_every_array_is_taken_or_refused() -> None:
    found = [
        call_fault(f"{kind} {label}, {'ABC'[place]} = {odd}", call, way, place, spoil)
        for kind, call in callables().items()
        for label, way in WAYS.items()
        if label != "prepared" or isinstance(call, poly.Kernel)
        for odd, spoil in ARRAYS.items()
        for place in range(3)
    ]
    assert not any(found), told([one for one in found if one])
