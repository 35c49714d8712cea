"""TVM in a process of its own: tunes one problem with MetaSchedule, then runs its result as often as ordered.

It runs as a script, in any Python with TVM, and imports nothing of poly. Orders come as lines of JSON:

    {"tune": {"kind": "gemm", "sizes": [m, n, k], "trials": 64, "threads": 1, "cpus": [1], "folder": …}}
                   -> {"seconds": …, "trials": …, "version": …}
    {"repeat": 10} -> {"seconds": …} of ten calls together

The folder holds the inputs, `A.npy` and `B.npy`; the result is written there as `C.npy`.
Products are `C = A B`; convolutions are channel-last, of one image that is already padded, with the sizes c, k, out, r
and stride.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import tvm
from tvm import te
from tvm.s_tir import meta_schedule

FEWEST = 16
"""The most trials between two updates of the cost model; TVM's default is more than all trials may be."""
PATIENCE = 120.0
"""The time limit of a build or a run, in seconds: its process starts by importing TVM."""


def gemm(m: int, n: int, k: int) -> tuple[Any, ...]:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    step = te.reduce_axis((0, k), name="k")
    return a, b, te.compute((m, n), lambda i, j: te.sum(a[i, step] * b[step, j], axis=step), name="C")


def conv(c: int, k: int, out: int, r: int, stride: int) -> tuple[Any, ...]:
    wide = stride * (out - 1) + r
    image, weights = te.placeholder((1, wide, wide, c), name="X"), te.placeholder((r, r, c, k), name="W")
    across, down, channel = (te.reduce_axis((0, n), name=name) for n, name in ((r, "r"), (r, "s"), (c, "c")))

    def value(n: Any, p: Any, q: Any, feature: Any) -> Any:
        pixel = image[n, p * stride + across, q * stride + down, channel]
        return te.sum(pixel * weights[across, down, channel, feature], axis=[across, down, channel])

    return image, weights, te.compute((1, out, out, k), value, name="Y")


KINDS: dict[str, Callable[..., tuple[Any, ...]]] = {"gemm": gemm, "conv": conv}


def tune(wanted: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The best kernel's function, and the total seconds, the trials made, and TVM's version."""
    tensors = KINDS[wanted["kind"]](*wanted["sizes"])
    module = tvm.IRModule({"main": te.create_prim_func(tensors)})
    cpu = tvm.target.codegen.llvm_get_system_cpu()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": wanted["threads"]})
    trials = wanted["trials"]
    start = perf_counter()
    with TemporaryDirectory() as folder:
        database = meta_schedule.tune_tir(
            module,
            target,
            folder,
            trials,
            num_trials_per_iter=min(trials, FEWEST),
            builder=meta_schedule.builder.LocalBuilder(timeout_sec=PATIENCE),
            runner=meta_schedule.runner.LocalRunner(timeout_sec=PATIENCE),
            seed=1,
        )
        schedule = meta_schedule.tir_integration.compile_tir(database, module, target)
        if schedule is None:
            raise SystemExit(f"none of TVM's {trials} trials could be built and run")
        built = tvm.compile(schedule.mod, target)
        seconds = perf_counter() - start
        made = len(database)
    return built["main"], {"seconds": seconds, "trials": made, "version": tvm.__version__}


def arguments(folder: str, function: Any, wanted: dict[str, Any]) -> list[Any]:
    """The tensors of a call, whose result is written to the folder."""
    inputs = [np.load(Path(folder, f"{name}.npy")) for name in "AB"]
    *_, output = KINDS[wanted["kind"]](*wanted["sizes"])
    result = np.zeros([int(extent) for extent in output.shape], np.float32)
    tensors = [tvm.runtime.tensor(array) for array in (*inputs, result)]
    function(*tensors)
    np.save(Path(folder, "C.npy"), tensors[-1].numpy())
    return tensors


def main() -> None:
    """Follow orders until there are no more. TVM's output goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    everywhere = os.sched_getaffinity(0)
    function: Any = None
    tensors: list[Any] = []
    for line in sys.stdin:
        order = json.loads(line)
        if "tune" in order:
            os.sched_setaffinity(0, everywhere)
            function, answer = tune(order["tune"])
            tensors = arguments(order["tune"]["folder"], function, order["tune"])
            os.sched_setaffinity(0, order["tune"]["cpus"])
        else:
            start = perf_counter()
            for _ in range(order["repeat"]):
                function(*tensors)
            answer = {"seconds": perf_counter() - start}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
