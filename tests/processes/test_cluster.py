"""Tuning with the workers of a local cluster of two processes, one of which is killed in the middle."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import poly
from poly import commands, f32
from poly.autoschedule.spaces.space import Point, Space
from poly.cluster import crew as crews
from poly.cluster.crew import Crew, WorkerCall, builders, measurers
from poly.cluster.member import announce
from poly.errors import SearchError
from poly.records import Store, key_for
from poly.records.key import machine_name
from poly.search.events import Ask, Search
from poly.tuning.elsewhere import Job, tuned_everywhere
from poly.tuning.options import Options

distributed = pytest.importorskip("distributed")

LOOPS = """import poly
from poly import f32

M, N = poly.sizes("M N")

@poly.nest
def product(A: f32[M, N], B: f32[N]):
    for i in range(M):
        for j in range(N):
            B[j] += A[i, j]
"""

M, N, K = poly.sizes("M N K")


@poly.nest
def product(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLY_RECORDS", str(tmp_path / "records.sqlite"))


def kill(client: Any, address: str) -> None:
    """Kill a worker as a crash of its machine would; its nanny starts another one."""
    pid = client.run(os.getpid, workers=[address])[address]
    os.kill(pid, signal.SIGKILL)


def test_a_killed_worker_loses_no_trial(client: Any) -> None:
    """The worker that measured the first points, and has their arrays, is gone for the later ones."""

    def interrupted(space: Space, start: Point, random: Random) -> Search:
        yield Ask((start,))
        (station,) = measurers(space.isa)(Crew(client).members())
        kill(client, station.address)
        yield Ask(tuple(point for point in space.sample(3, random) if point != start))

    kernel = poly.tune(product, M=40, N=48, K=24, threads=1, strategy=interrupted, workers=client, show=False)
    nest = product.with_sizes({"M": 40, "N": 48, "K": 24})
    stored = Store.open().trials(key_for(nest, poly.machine().isa, 1))
    assert len(stored) == kernel.tuning.trials >= 3 and not kernel.tuning.failures
    assert all(trial.samples for trial in stored)
    random = np.random.default_rng(0)
    a, b, c = random.random((40, 24), np.float32), random.random((24, 48), np.float32), np.zeros((40, 48), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_what_a_dead_worker_was_doing_is_done_by_another(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results come in order; what kills each worker that gets it is given up."""
    monkeypatch.setattr(crews, "TRIES", 2)
    workers = Crew(client)
    before = {member.address for member in workers.members()}
    calls = [WorkerCall(pow, (2, n), None) for n in range(4)]
    dying = WorkerCall(os._exit, (1,), "it died")
    slow = WorkerCall(time.sleep, (0.5,), "lost")
    results = list(workers.results([calls[0], dying, slow, slow, *calls[1:]], lambda members: members))
    assert results == [1, "it died", None, None, 2, 4, 8]
    assert {member.address for member in workers.members()} != before


def test_the_address_is_enough_and_several_nests_share_the_workers(client: Any) -> None:
    kernels = poly.tune(
        [(product, {"M": 24, "N": 32, "K": 16}), (product, {"M": 16, "N": 16, "K": 40})],
        threads=1,
        trials=4,
        workers=client.scheduler.address,
        show=False,
    )
    assert sum(kernel.tuning.trials for kernel in kernels) == 4
    assert all(kernel.origin == "record" for kernel in kernels)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("engine", "1234567890", r"the worker tcp://.* has another poly: .*\n?.*Install the same one everywhere"),
        ("machine_name", "another CPU", r"no worker runs on a machine like this one \(another CPU\).*they run on"),
        ("compiler_name", "tcc 0.9", "no worker can build for .* with tcc 0.9"),
    ],
)
def test_workers_that_do_not_fit_are_told(
    client: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setattr(crews, name, lambda: value)
    with pytest.raises(SearchError, match=message):
        poly.tune(product, M=8, N=8, K=8, threads=1, trials=2, workers=client, show=False)


def test_a_cluster_that_cannot_be_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "CONNECTING", 0.2)
    for workers, message in (
        ("tcp://127.0.0.1:9", "cannot be reached"),
        ("no such thing", "cannot be reached"),
        (3, "must be a cluster's address"),
    ):
        with pytest.raises(SearchError, match=message):
            poly.tune(product, M=8, N=8, K=8, threads=1, trials=2, workers=workers, show=False)


def test_a_machine_has_one_measurer_and_all_builders() -> None:
    isa = poly.machine().isa
    here = replace(announce("a", 2), host="first")
    others = (
        replace(here, address="b", slots=1),
        replace(here, address="c", host="second"),
        replace(here, address="d", host="third", machine="another CPU"),
        replace(here, address="e", host="fourth", compiler="tcc 0.9", isas=frozenset()),
    )
    members = (here, *others)
    assert {member.address for member in measurers(isa)(members)} == {"a", "c"}
    assert [member.address for member in builders(isa)(members)] == ["a", "a", "b", "c", "c", "d", "d"]


def test_each_kind_of_machine_tunes_for_itself_and_the_records_come_here(client: Any, tmp_path: Path) -> None:
    """The workers have the store of the environment in which they started, which is another one than that here."""
    nest = product.with_sizes({"M": 20, "N": 20, "K": 12})
    job = Job((nest, poly.einsum("i,i->i", i=8)), Options(trials=2), "c", 1, {}, {})
    found = tuned_everywhere(job, client)
    (every,) = found.values()
    assert list(found) == [machine_name()] and all("trials" in told.report for told in every)
    here = Store.open()
    assert here.path.parent == tmp_path and {record.key.name for record in here.records()} >= {"product"}
    assert poly.compile(nest, threads=1).origin == "record"


def test_a_strategy_of_ones_own_stays_here(client: Any) -> None:
    job = Job((product,), Options(strategy=lambda *_: iter(())), "c", 1, {}, {})
    with pytest.raises(SearchError, match="runs in this process only"):
        tuned_everywhere(job, client)
    (told,) = next(iter(tuned_everywhere(Job((product,), Options(), "c", 1, {}, {}), client).values()))
    assert "nothing says what M, K, N should be" in told.report and told.record is None


def test_a_header_of_each_kind_of_machine_is_that_made_there(client: Any, tmp_path: Path) -> None:
    file = tmp_path / "loops.py"
    file.write_text(LOOPS)
    made = ["header", f"{file}:product", "--isa=portable", "--threads=none", "--prefix=p"]
    there = CliRunner().invoke(
        commands.poly, [*made, "-o", str(tmp_path / "out.h"), "--workers", client.scheduler.address]
    )
    assert there.exit_code == 0, there.output
    assert CliRunner().invoke(commands.poly, [*made, "-o", str(tmp_path / "out.h")]).exit_code == 0
    path = Path(there.output.strip())
    assert path.parent == tmp_path and path.name.startswith("out-")
    assert path.read_text() == (tmp_path / "out.h").read_text()
