"""Tuning on each kind of machine of a cluster: a worker there does the whole search, and the records come here.

A search belongs to the machine that it is for: the space, the model and the calibration are those of its CPU. So one of
its workers runs `poly.tune`, and only the result crosses the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from poly.cluster.crew import WorkerCall, connected
from poly.cluster.turns import alone
from poly.errors import PolyError, SearchError
from poly.ir.nest import Nest
from poly.records import Record, Store
from poly.tuning.options import Options
from poly.tuning.problem import problem_key, problems
from poly.tuning.together import tuned


@dataclass(frozen=True)
class Job:
    """What to tune on a machine, without anything that belongs to one."""

    nests: tuple[Nest, ...]
    options: Options
    target: str
    threads: int | None
    sizes: Mapping[str, int]
    at: Mapping[str, int]


@dataclass(frozen=True)
class Told:
    """What a worker tells of one nest: the text of its tuning and its record, or the error."""

    report: str
    record: Record | None = None


def tuned_everywhere(job: Job, workers: Any) -> dict[str, list[Told]]:
    """Tune on one worker of each kind of machine, by the machines' names, and take the records into the store here.

    `Job.options` are for each machine. The workers keep trials and records, too, so the same call goes on there. Raises
    SearchError for options that need this process, and for a cluster as `poly.tune` does.
    """
    if not isinstance(job.options.strategy, str):
        raise SearchError("a strategy of your own runs in this process only: name one of poly's for other machines.")
    with connected(workers) as crew:
        found = crew.each_kind(WorkerCall(tuned_here, (job,), [Told("its workers died")]))
    if job.options.records:
        Store.open().offer(told.record for every in found.values() for told in every if told.record is not None)
    return found


def tuned_here(job: Job) -> list[Told]:
    """Runs on a worker: tune, while nothing else of poly measures or builds on its machine."""
    with alone():
        try:
            tasks = problems(job.nests, job.target, job.threads, dict(job.sizes), job.at)
            kernels = tuned(tasks, replace(job.options, show=False))
        except PolyError as error:
            return [Told(str(error))]
    store = Store.open()
    return [
        Told(str(kernel))
        if isinstance(kernel, SearchError)
        else Told(str(kernel.tuning), store.best(problem_key(task, job.options.cold)))
        for task, kernel in zip(tasks, kernels, strict=True)
    ]
