"""TVM's MetaSchedule as an entrant: it tunes in a process of its own, and its result is timed with all others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.contender import Contender, Failed, NotInstalled
from benchmarks.problems.convolution import Convolution
from benchmarks.problems.matmul import Matmul
from benchmarks.search.live import TuningEffort
from poly.measure.process import choose, spread

PYTHON = "POLY_TVM_PYTHON"
"""The variable that names a Python with TVM, if it is not this one: TVM conflicts with some packages."""
WORKER = Path(__file__).with_name("tvm_worker.py")


class Tvm:
    """Tunes with `trials` trials. TVM's log has one short sample per trial, so its best is rebuilt and timed here."""

    name = "tvm"

    def __init__(self, trials: int, cpus: tuple[int, ...]) -> None:
        self.efforts: dict[str, TuningEffort] = {}
        self._trials = trials
        self._cpus = cpus
        self._process: subprocess.Popen[str] | None = None

    def enter(self, case: Case, threads: int) -> Contender:
        """Tune, and prepare to be timed. Raises NotInstalled without TVM, Failed if it gives no kernel."""
        arrays = case.problem.arrays(case.dtype)
        with TemporaryDirectory() as folder:
            for name, array in zip("AB", arrays, strict=False):
                np.save(Path(folder, f"{name}.npy"), array)
            order = {"kind": kind(case), "sizes": sizes(case), "trials": self._trials, "threads": threads}
            reply = self._ask({"tune": {**order, "folder": folder, "cpus": choose(self._cpus, threads)}}, threads)
            result = arrays[case.problem.written[0]] + np.load(Path(folder, "C.npy"))
        self.efforts[case.title] = TuningEffort(reply["seconds"], reply["trials"])
        config = f"MetaSchedule, {reply['trials']} trials"
        return Contender(self.name, reply["version"], config, self._run, lambda: result, in_c=False)

    def _run(self, times: int) -> float:
        return float(self._ask({"repeat": times}, 1)["seconds"])

    def close(self) -> None:
        """End TVM's process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _ask(self, order: dict[str, Any], threads: int) -> dict[str, Any]:
        worker = self._process = self._process or self._start(threads)
        assert worker.stdin is not None and worker.stdout is not None, "both are pipes"
        try:
            worker.stdin.write(json.dumps(order) + "\n")
            worker.stdin.flush()
        except BrokenPipeError:
            raise Failed("its process ended") from None
        answer = worker.stdout.readline()
        if not answer:
            raise Failed("its process ended; what it said is on standard error")
        reply: dict[str, Any] = json.loads(answer)
        return reply

    def _start(self, threads: int) -> subprocess.Popen[str]:
        python = os.environ.get(PYTHON, sys.executable)
        probe = subprocess.run([python, "-P", "-c", "import tvm.s_tir"], capture_output=True, text=True, check=False)
        if probe.returncode:
            raise NotInstalled(f"{python} has no TVM; {PYTHON} may name one that has")
        environment = {**os.environ, "TVM_NUM_THREADS": str(threads)}
        with spread(self._cpus):  # its builder may use all cores
            return subprocess.Popen(
                [python, "-P", str(WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                text=True,
            )


def kind(case: Case) -> str:
    """The worker's name for the case's kind of problem."""
    return "gemm" if isinstance(case.problem, Matmul) else "conv"


def sizes(case: Case) -> list[int]:
    """The sizes in the worker's order. Raises Failed for a problem that it doesn't support."""
    match case.problem:
        case Matmul(m, n, k, "NN", 1):
            return [m, n, k]
        case Convolution(c=c, k=k, r=r, stride=stride, layout="NHWC") as layer if layer.is_textbook:
            return [c, k, layer.out, r, stride]
        case _:
            raise Failed(f"TVM is given no {case.title}")
