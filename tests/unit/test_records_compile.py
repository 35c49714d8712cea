"""poly.compile follows the record of its nest, says so, and never fails because of the store."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuning_records import record

import poly
from codegen.errors import ToolchainError
from microkernels.isa import parse_target
from poly import Kernel, Nest, SpecError, f32
from poly.errors import RecordWarning
from poly.records import Store, key_for

M, N, K = poly.sizes("M N K")
TARGET = "c:portable"
TUNED = '[{"step": "split", "args": [], "kwargs": {"k": 4}}, {"step": "unroll", "args": [], "kwargs": {"k": 2}}]'
SIZES = {"M": 6, "N": 5, "K": 7}


@poly.nest
def product(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def outside(A: f32[M]):
    for i in range(M):
        A[i + 1] = 1.0


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty cache directory."""
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("POLY_RECORDS")
    return Store.open()


def tuned(nest: Nest, threads: int = 1, schedule: str = TUNED) -> Any:
    """A record for a nest here."""
    return replace(record(), key=key_for(nest, parse_target(TARGET), threads), schedule=schedule)


def compiled(nest: Nest = product, **more: Any) -> Kernel:
    return poly.compile(nest, **{"target": TARGET, "threads": 1, **more})


def check(kernel: Kernel) -> None:
    """The kernel computes what the loops say."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.random(shape, np.float32) for shape in ((6, 7), (7, 5), (6, 5)))
    expected = c + a @ b
    kernel(a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5)


def test_without_records_the_model_chooses(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poly.records.key_for", pytest.fail)
    kernel = compiled(**SIZES)
    assert (kernel.origin, kernel.record) == ("model", None)
    assert not store.exists()
    check(kernel)


def test_a_record_is_followed(store: Store) -> None:
    fixed = product.with_sizes(SIZES)
    kept = tuned(fixed)
    store.save(kept)
    for kernel in (compiled(**SIZES), compiled(fixed), compiled(sizes=SIZES)):
        assert (kernel.origin, kernel.record) == ("record", kept)
        assert kernel.schedule.to_json() == TUNED
        assert "unroll" in kernel.source
        check(kernel)
    assert kernel.source != compiled(records=False, **SIZES).source


@pytest.mark.parametrize("more", [{"M": 7}, {"threads": 2}, {"target": "c"}, {"records": False}])
def test_a_record_serves_its_own_problem_only(store: Store, more: dict[str, Any]) -> None:
    store.save(tuned(product.with_sizes(SIZES)))
    if poly.machine().isa.name == "portable" and more.get("target"):
        pytest.skip("this machine has no better instruction set")
    assert compiled(**{**SIZES, **more}).origin == "model"


def test_a_record_of_the_open_nest_serves_the_open_nest(store: Store) -> None:
    store.save(replace(tuned(product), at=(("K", 512),)))
    kernel = compiled()
    assert kernel.origin == "record"
    assert kernel.schedule.to_json() == TUNED
    check(kernel)
    assert compiled(**SIZES).origin == "model"


def test_an_einsum_with_sizes_and_one_without_share_a_record(store: Store) -> None:
    made = poly.einsum("mk,kn->mn", m=6, k=7, n=5)
    store.save(tuned(made))
    assert compiled(made).origin == "record"
    assert compiled(poly.einsum("mk,kn->mn"), M=6, K=7, N=5).origin == "record"


def test_a_given_schedule_comes_first(store: Store) -> None:
    fixed = product.with_sizes(SIZES)
    store.save(tuned(fixed))
    kernel = compiled(schedule=poly.schedule(product), **SIZES)
    assert (kernel.origin, kernel.record) == ("given", None)
    assert kernel.schedule.to_json() == "[]"


def test_arrays_with_strides_take_the_same_schedule(store: Store) -> None:
    store.save(tuned(product.with_sizes(SIZES)))
    kernel = compiled(**SIZES)
    assert kernel.strided.schedule.to_json() == TUNED
    assert kernel.strided.origin == "record"
    a, b, c = np.ones((12, 7), np.float32)[::2], np.ones((7, 5), np.float32), np.zeros((6, 5), np.float32)
    kernel(a, b, c)
    assert (c == 7).all()


def test_a_nest_that_is_called_follows_its_record(store: Store) -> None:
    @poly.nest
    def called(A: f32[M], B: f32[M]):
        for i in range(M):
            B[i] = A[i]

    host = replace(record(), key=key_for(called.with_sizes({"M": 9}), poly.machine().isa, poly.machine().cores))
    store.save(replace(host, schedule='[{"step": "unroll", "args": [], "kwargs": {"i": 3}}]'))
    out = np.zeros(9, np.float32)
    called(np.ones(9, np.float32), out)
    assert (out == 1).all()
    (served,) = called._kernels.values()
    assert served.kernel.origin == "record"


def test_a_kept_kernel_is_not_replayed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled by this engine was proven then; the record's text is enough to find it."""
    store.save(tuned(product.with_sizes(SIZES)))
    compiled(**SIZES)
    monkeypatch.setattr("poly.compiled.Schedule.from_json", pytest.fail)
    check(compiled(**SIZES))


@pytest.mark.parametrize(
    "schedule",
    [
        '[{"step": "tile", "args": [], "kwargs": {"row": 6}}]',  # no such loop
        '[{"step": "parallel", "args": ["k"], "kwargs": {}}]',  # illegal
        '[{"step": "teleport", "args": [], "kwargs": {}}]',
        '[{"step": "microkernel", "args": ["gemm_avx9000_6x16"], "kwargs": {}}]',
        '[{"step": "tile", "args": [], "kwargs": {"i": 6, "j": 64}},'
        ' {"step": "microkernel", "args": ["gemm_avx512_6x64"], "kwargs": {}}]',  # of another instruction set
        '[{"step": "order", "args": [5], "kwargs": {}}]',
        '[{"step": ["tile"], "args": [], "kwargs": {}}]',
    ],
)
def test_a_schedule_that_does_not_fit_any_more_is_left_out(store: Store, schedule: str) -> None:
    store.save(tuned(product.with_sizes(SIZES), schedule=schedule))
    told = r"^record 1 of product, K=7 M=6 N=5 .* does not fit this poly: .*tune again"
    with pytest.warns(RecordWarning, match=told):
        kernel = compiled(**SIZES)
    assert (kernel.origin, kernel.record) == ("model", None)
    check(kernel)


def test_a_damaged_store_is_a_warning(store: Store) -> None:
    store.path.write_text("damage" * 1000)
    with pytest.warns(RecordWarning, match="were moved to records.sqlite.damaged-1"):
        assert compiled(**SIZES).origin == "model"
    with warnings.catch_warnings(action="error"):
        assert compiled(**SIZES).origin == "model"


def test_a_store_that_cannot_be_used_is_a_warning(store: Store) -> None:
    store.path.mkdir()
    with pytest.warns(RecordWarning, match=r"cannot be used: .*The model chooses the schedule\.$"):
        check(compiled(**SIZES))


def test_records_false_reads_nothing(store: Store) -> None:
    store.path.write_text("damage" * 1000)
    with warnings.catch_warnings(action="error"):
        assert compiled(records=False, **SIZES).origin == "model"
    assert store.path.read_text().startswith("damage")


def test_without_a_compiler_the_source_can_still_be_had(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(tuned(product.with_sizes(SIZES)))
    monkeypatch.setenv("POLY_CC", "no-such-compiler")
    with warnings.catch_warnings(action="error"):
        kernel = compiled(**SIZES)
    assert kernel.origin == "model"
    with pytest.raises(ToolchainError, match="no-such-compiler"):
        check(kernel)


def test_another_compiler_is_another_problem(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(tuned(product.with_sizes(SIZES)))
    monkeypatch.setenv("POLY_CC", "cc -fno-tree-vectorize")
    assert compiled(**SIZES).origin == "model"


def test_a_wrong_nest_is_told_as_before(store: Store) -> None:
    store.save(tuned(outside, schedule="[]"))
    with pytest.raises(SpecError, match="outside"):
        compiled(outside)
