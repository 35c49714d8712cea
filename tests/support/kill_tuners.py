"""Kill tuners that share a store while they measure, and check what they have left.

    python tests/support/kill_tuners.py 100

Each tuner is a fork of this process that tunes a tiny nest for real, size after size: it compiles candidates, and times
them in its own child process. It reports every trial that the store has taken. SIGKILL ends it a random moment after a
random number of trials; then another one takes its place. Problems are raised; otherwise a line shows the counts.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
from described import calibrate

import poly
from poly import f32
from poly.records import Key, Store, StoredTrial
from poly.records.file import inspect

AT_ONCE = 3
TRIALS, DELAY = 5, 0.4
"""A tuner dies after up to so many trials, and up to so many seconds."""
PATIENCE = 120.0
"""Seconds without a trial after which a tuner is killed anyway; and those that helpers of the dead may need to end."""
TARGET = "c:portable"

N = poly.sizes("N")


@poly.nest
def double(A: f32[N, N], B: f32[N, N]):
    for i in range(N):
        for j in range(N):
            B[i, j] = 2 * A[i, j]


@dataclass
class Tuner:
    """A process that tunes, the pipe through which it reports trials, and the number of trials until it is killed."""

    process: int
    pipe: int
    after: int
    delay: float
    began: float
    told: int = 0
    rest: bytes = b""
    due: float = field(default=float("inf"))


def tune_for_ever(pipe: int, seed: int) -> None:
    """Tune size after size, and report each trial by a line when it is stored."""
    add: Callable[[Store, Key, list[StoredTrial]], None] = Store.add_trials

    def add_and_tell(store: Store, key: Key, trials: list[StoredTrial]) -> None:
        add(store, key, trials)
        os.write(pipe, b"".join(f"{json.dumps([key.digest, t.point, t.samples])}\n".encode() for t in trials))

    Store.add_trials = add_and_tell  # type: ignore[method-assign, assignment]
    lot = Random(seed)
    while True:
        poly.tune(double, N=lot.choice(SIZES), trials=12, seed=seed, target=TARGET, threads=1, show=False)


SIZES = range(8, 40)


def start(lot: Random) -> Tuner:
    reading, writing = os.pipe()
    seed = lot.randrange(1 << 30)
    process = os.fork()
    if process == 0:
        os.close(reading)
        with suppress(BaseException):
            tune_for_ever(writing, seed)
        os._exit(1)
    os.close(writing)
    return Tuner(process, reading, lot.randint(0, TRIALS), lot.uniform(0, DELAY), time.monotonic())


def listen(tuners: list[Tuner], told: list[list[object]]) -> None:
    """Record the tuners' reports for a moment."""
    ready = select.select([tuner.pipe for tuner in tuners], [], [], 0.005)[0]
    for tuner in tuners:
        if tuner.pipe in ready:
            hear(tuner, told)
        if tuner.due == float("inf") and (tuner.told >= tuner.after or time.monotonic() - tuner.began > PATIENCE):
            tuner.due = time.monotonic() + tuner.delay


def hear(tuner: Tuner, told: list[list[object]]) -> bytes:
    found = os.read(tuner.pipe, 1 << 16)
    *lines, tuner.rest = (tuner.rest + found).split(b"\n")
    tuner.told += len(lines)
    told += map(json.loads, lines)
    return found


def kill(tuner: Tuner, told: list[list[object]]) -> None:
    os.kill(tuner.process, signal.SIGKILL)
    status = os.waitpid(tuner.process, 0)[1]
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "a tuner ended by itself"
    while hear(tuner, told):
        pass
    os.close(tuner.pipe)


def killed(count: int, lot: Random) -> list[list[object]]:
    """Kill this many tuners, and return the trials that were reported."""
    told: list[list[object]] = []
    tuners = [start(lot) for _ in range(AT_ONCE)]
    done = 0
    while tuners:
        listen(tuners, told)
        for tuner in [tuner for tuner in tuners if time.monotonic() >= tuner.due]:
            kill(tuner, told)
            tuners.remove(tuner)
            done += 1
            if done + len(tuners) < count:
                tuners.append(start(lot))
    return told


def helpers() -> list[str]:
    """Processes with our cache directory in their environment, but for this one."""
    mark = f"POLY_CACHE_DIR={os.environ['POLY_CACHE_DIR']}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder.name != str(os.getpid()) and mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def look(told: list[list[object]]) -> int:
    """Assert that the store is sound and has all reported trials, and resume it: the number of trials reused."""
    store = Store.open()
    assert inspect(store.path) is None
    keys = {record.key.digest: record.key for record in store.records()}
    kept = {
        digest: [[digest, trial.point, list(trial.samples)] for trial in store.trials(key)]
        for digest, key in keys.items()
    }
    lost = [trial for trial in told if trial[0] in kept and trial not in kept[str(trial[0])]]
    assert not lost, f"{len(lost)} trials are lost, such as {lost[0]}"
    assert store.count().trials >= len(told), f"{store.count()}, and {len(told)} trials were told of"
    size = next(dict(key.sizes)["N"] for key in keys.values())
    kernel = poly.tune(double, N=size, trials=14, target=TARGET, threads=1, show=False)
    a, b = np.ones((size, size), np.float32), np.zeros((size, size), np.float32)
    kernel(a, b)
    assert (b == 2).all()
    return kernel.tuning.reused


def main(count: int) -> None:
    warnings.simplefilter("error")
    calibrate()
    poly.tune(double, N=7, trials=2, target=TARGET, threads=1, show=False)
    told = killed(count, Random(count))
    reused = look(told)
    deadline = time.monotonic() + PATIENCE
    while helpers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not helpers(), helpers()
    print(f"{count} kills, {len(told)} trials told of, none lost; the next tuning reused {reused}; no process is left")


if __name__ == "__main__":
    if "POLY_CACHE_DIR" in os.environ:
        main(int(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="poly-kills-") as folder:  # in the environment of all from the start
            os.environ["POLY_CACHE_DIR"] = folder
            sys.exit(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, *sys.argv]))
