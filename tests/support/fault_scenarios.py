"""Run scenarios with one system call failing, cut short or ending the process, and check the consequences.

    LD_PRELOAD=faults.so FAULTS=faults.so python fault_scenarios.py 0 2

This makes every second attempt, from the first one on; `1 2` makes the others. Each attempt consists of two forks of
this process, which has imported everything: one runs the scenario in its own folder with one fault, and the next one
checks the folder without faults. Problems are printed, and a line of counts for each scenario.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tuning_fakes import NEST, bowl, grid_space
from tuning_records import key, record, trial

import poly
from codegen.errors import ToolchainError
from codegen.system import processes
from codegen.system.files import write_file
from codegen.toolchain import build, compiler
from microkernels.isa import parse_target
from poly import f64
from poly.autoschedule.spaces.space import Space
from poly.compilation import compile_nest
from poly.errors import PolyError
from poly.machine.measured import Bandwidth, Measured, Peak
from poly.records import Record, Store, key_for
from poly.records.exchange import export, load, merge
from poly.records.file import inspect
from poly.search.events import Ask, Trial
from poly.tuning import session

SHIM = ctypes.CDLL(os.environ["FAULTS"])
SHIM.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]
SHIM.fault_count.restype = ctypes.c_long
SHIM.fault_name.argtypes, SHIM.fault_name.restype = [ctypes.c_long], ctypes.c_char_p
NEVER = -1
FAIL, KILL, HALF, HALF_KILL = 1, 2, 3, 4

ERRORS = {
    "create": (errno.ENOSPC, errno.EACCES, errno.EINTR),
    "open": (errno.EACCES, errno.EINTR, errno.EMFILE),
    "mkdir": (errno.ENOSPC, errno.EACCES),
    "write": (errno.ENOSPC, errno.EIO, errno.EINTR),
    "read": (errno.EIO, errno.EINTR),
    "fsync": (errno.EIO, errno.EINTR),
    "rename": (errno.EACCES, errno.EIO),
    "truncate": (errno.ENOSPC, errno.EIO),
    "lock": (errno.ENOLCK, errno.EINTR),
    "mmap": (errno.ENOMEM,),
}
"""The errors with which each kind of call fails, in turn."""
OTHERWISE = (errno.EACCES, errno.EIO)
CHANGES = {"create", "mkdir", "write", "fsync", "truncate", "rename", "unlink", "rmdir", "link", "chmod"}
KINDS = {FAIL: "fails", KILL: "is killed", HALF: "does half", HALF_KILL: "does half and is killed"}
"""Only kills before these calls are tried: a kill before any other call leaves the same state as one before the next of
these, and a kill after a call the same as one before the next call."""
SEEN = 77
"""The exit status of a fork that has reported a problem."""

TARGET = "c:portable"
UNROLLED = '[{"step": "unroll", "args": [], "kwargs": {"i": 2}}]'
ILLEGAL = '[{"step": "tile", "args": [], "kwargs": {"z": 2}}]'

N = poly.sizes("N")


@poly.nest
def double(x: f64[N]):
    for i in range(N):
        x[i] = x[i] * 2


def own(schedule: str) -> Record:
    """A record for the nest."""
    return replace(record(key_for(double, parse_target(TARGET), 1)), schedule=schedule)


def compile_and_call() -> None:
    """Assert that the result is right."""
    x = np.arange(7.0)
    compile_nest(double, target=TARGET, threads=1)(x)
    assert x.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0], f"wrong result {x}"


@dataclass(frozen=True)
class Here:
    """The folder of a scenario. What it reports as `done` must be found afterwards, whatever happens later."""

    folder: Path
    pipe: int
    said: list[str]

    def done(self, what: str) -> None:
        self.said.append(what)
        os.write(self.pipe, f"{what}\n".encode())

    @property
    def store(self) -> Store:
        return Store.open()

    @property
    def file(self) -> Path:
        return self.folder / "out.jsonl"

    @property
    def other(self) -> Store:
        return Store.open(self.folder / "other" / "records.sqlite")


def nothing(here: Here) -> None:
    """A new user."""


def compiled(here: Here) -> None:
    compile_and_call()


def stored(here: Here) -> None:
    here.store.save(record(key(M=1)))
    here.store.add_trials(key(M=1), [trial(1)])


def followed(here: Here) -> None:
    stored(here)
    here.store.save(own(UNROLLED))


def unfit(here: Here) -> None:
    stored(here)
    here.store.save(own(ILLEGAL))


def damaged(here: Here) -> None:
    here.store.path.write_bytes(b"damage" * 1000)


def exported(here: Here) -> None:
    stored(here)
    export(here.store, here.file)
    here.store.save(record(key(M=2)))


def run_compile(here: Here) -> None:
    compile_and_call()


def run_save(here: Here) -> None:
    here.store.save(record(key(M=3)))
    here.done("record")


def run_write(here: Here) -> None:
    run_save(here)
    here.store.add_trials(key(M=3), [trial(1), trial(2)])
    here.done("trials")


def run_clear(here: Here) -> None:
    here.store.clear()


def run_export(here: Here) -> None:
    export(here.store, here.file)
    here.done("export")


def run_merge(here: Here) -> None:
    merge(here.other, here.file)
    here.done("merge")


def run_tune(here: Here) -> None:
    kernel = poly.tune(NEST, trials=2, target=TARGET, threads=1, show=False)
    assert 1 <= kernel.tuning.trials <= 2
    here.done("tune")


def run_file(here: Here) -> None:
    write_file(here.folder / "header.h", "new\n" * 5000)
    here.done("file")


def begun_file(here: Here) -> None:
    (here.folder / "real.h").write_text("old\n")
    (here.folder / "header.h").symlink_to("real.h")


@dataclass(frozen=True)
class Scenario:
    """The preparation, and the part that runs with a fault; with `keeps`, anything stored before must stay.

    With `briefly`, only calls that change something fail, since other scenarios let all calls of the parts fail.
    """

    before: Callable[[Here], None]
    run: Callable[[Here], None]
    keeps: bool = False
    errors: tuple[type[Exception], ...] = (PolyError, ToolchainError)
    briefly: bool = False


SCENARIOS = {
    "first compilation": Scenario(nothing, run_compile),
    "second compilation": Scenario(compiled, run_compile),
    "compilation by a record": Scenario(followed, run_compile, keeps=True),
    "compilation by an unfit record": Scenario(unfit, run_compile, keeps=True),
    "first record": Scenario(nothing, run_save),
    "further records": Scenario(stored, run_write, keeps=True),
    "record in a damaged store": Scenario(damaged, run_save),
    "clear": Scenario(stored, run_clear),
    "export": Scenario(exported, run_export, keeps=True),
    "merge": Scenario(exported, run_merge, keeps=True),
    "tuning": Scenario(stored, run_tune, keeps=True, briefly=True),
    "file": Scenario(begun_file, run_file, errors=(OSError,)),
}


def look(here: Here, scenario: Scenario, done: list[str]) -> None:
    """Assert what must hold after any fault: everything reported as done is there, and everything works."""
    if scenario.run in (run_compile, run_tune):
        compile_and_call()
    if here.store.exists():
        damage = inspect(here.store.path)
        assert damage is None or scenario.before is damaged, f"the store is damaged: {damage}"
    if scenario.keeps:
        assert record(key(M=1)) in here.store.records(), "a record is lost"
        assert here.store.trials(key(M=1)) == [trial(1)], "a trial is lost"
    if "record" in done:
        assert record(key(M=3)) in here.store.records(), "a record that was saved is lost"
    kept = here.store.trials(key(M=3))
    assert kept == [trial(1), trial(2)] if "trials" in done else kept in ([], [trial(1), trial(2)]), f"trials: {kept}"
    if scenario.before is exported:
        count = len(load(here.file))
        assert count == 2 if "export" in done else count in (1, 2), f"{count} records were exported"
        assert len(here.other.records()) in ((1,) if "merge" in done else (0, 1))
    if scenario.before is begun_file:
        found = (here.folder / "header.h").read_text()
        assert found == "new\n" * 5000 or (found == "old\n" and "file" not in done), "the file is neither old nor new"
        assert (here.folder / "header.h").is_symlink()
    if not scenario.briefly:
        scenario.run(here)
    run_write(here)
    assert here.store.trials(key(M=3))[-2:] == [trial(1), trial(2)]


class Table:
    """Measures by a formula."""

    def __init__(self, space: Space, *, cold: bool, seed: int) -> None:
        self.space = space

    def pause(self) -> None:
        pass

    def close(self) -> None:
        pass

    def trials(self, ask: Ask) -> Iterator[Trial]:
        for point in ask.points:
            seconds = bowl(self.space.values(point)).seconds
            yield Trial(point, (seconds,) * 3, (1.1 * seconds,) * 3 if ask.incumbent else ())


class Compiler:
    """A stand-in for gcc: the earlier result for the same text. Writing it may fail too."""

    def __init__(self) -> None:
        self.real = processes.run
        self.made: dict[bytes, bytes] = {}

    def run(
        self, command: tuple[str, ...], seconds: float | None, env: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        target = Path(command[command.index("-o") + 1])
        try:
            text = Path(next(word for word in command if word.endswith(".c"))).read_bytes()
            if text not in self.made:
                assert self.real(command, seconds, env).returncode == 0
                self.made[text] = target.read_bytes()
            with open(target, "wb") as file:
                file.write(self.made[text])
        except OSError as error:
            return subprocess.CompletedProcess(command, 1, "", str(error))
        return subprocess.CompletedProcess(command, 0, "", "")


def forked(work: Callable[[int], None]) -> tuple[int, list[str]]:
    """Run an action in a fork: the exit status, and the lines that it wrote to its pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = SEEN
        try:
            os.close(reading)
            work(writing)
            status = 0
        except BaseException:
            os.write(writing, traceback.format_exc(limit=-5).encode())
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read().decode().splitlines()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


class Attempts:
    """The attempts of one scenario, of which every `of`-th is made, beginning with `share`."""

    def __init__(self, name: str, folder: Path, share: int = 0, of: int = 1) -> None:
        self.scenario = SCENARIOS[name]
        self.template = folder / f"{name} before"
        self.place = folder / name
        self.share, self.of = share, of
        self.count = 0

    def prepare(self) -> None:
        """The files before the scenario; they are copied for each attempt."""
        self.template.mkdir(mode=0o700)
        os.environ["POLY_CACHE_DIR"] = str(self.template)
        self.scenario.before(Here(self.template, NULL, []))
        os.environ["POLY_CACHE_DIR"] = str(self.place)

    def attempt(self, number: int, kind: int, error: int) -> tuple[int, list[str]]:
        """Run the scenario with a fault, and check it afterwards, in another process if the fault kills this one."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.template, self.place, symlinks=True)
        status, said = forked(lambda pipe: self.look(self.faulty(pipe, number, kind, error)))
        if status == -signal.SIGKILL and kind in (KILL, HALF_KILL):
            return forked(lambda _: self.look(said))
        return (status, said) if kind in (FAIL, HALF) else (status, [*said, "it was not killed"])

    def faulty(self, pipe: int, number: int, kind: int, error: int) -> list[str]:
        """Run the scenario with a fault, and report what is done to the pipe. Our own errors count as success."""
        done: list[str] = []
        SHIM.fault_arm(str(self.place).encode(), number, kind, error)
        try:
            self.scenario.run(Here(self.place, pipe, done))
        except self.scenario.errors as told:
            assert len(str(told)) > 20, f"an error without words: {told!r}"
        finally:
            SHIM.fault_disarm()
        return done

    def calls(self) -> list[str]:
        """The names of the system calls of the scenario."""

        def work(pipe: int) -> None:
            self.faulty(NULL, NEVER, FAIL, 0)
            names = (SHIM.fault_name(number).decode() for number in range(SHIM.fault_count()))
            os.write(pipe, "".join(f"{name}\n" for name in names).encode())

        shutil.copytree(self.template, self.place, symlinks=True)
        status, names = forked(work)
        assert status == 0, "\n".join(names)
        return names

    def look(self, done: list[str]) -> None:
        look(Here(self.place, NULL, []), self.scenario, done)

    def run(self) -> Iterator[str]:
        """The problems of all attempts."""
        self.prepare()
        names = self.calls()
        chosen = [n for n, name in enumerate(names) if name in CHANGES or not self.scenario.briefly]
        every = [(number, *fault) for number in chosen for fault in faults(number, names[number])]
        for number, kind, error in every[self.share :: self.of]:
            self.count += 1
            status, said = self.attempt(number, kind, error)
            if status or "it was not killed" in said:
                code = errno.errorcode.get(error, "")
                told = "\n".join(said)
                yield f"call {number}, {names[number]}, {KINDS[kind]} {code}: ended with {status}\n{told}"


def faults(number: int, name: str) -> Iterator[tuple[int, int]]:
    """The faults that a call can have."""
    errors = ERRORS.get(name, OTHERWISE)
    yield FAIL, errors[number % len(errors)]
    if name in CHANGES:
        yield KILL, 0
    if name in ("read", "write"):
        yield HALF, 0
    if name == "write":
        yield HALF_KILL, 0


NULL = os.open(os.devnull, os.O_WRONLY)


def warm(folder: Path) -> None:
    """Run everything once, with the real compiler, so that nothing is read from elsewhere or computed later."""
    here = Here(folder / "warm", NULL, [])
    os.environ["POLY_CACHE_DIR"] = str(here.folder)
    followed(here)
    compile_and_call()
    for run in (run_write, run_export, run_merge, run_tune):
        run(here)
    shutil.rmtree(here.folder)
    compile_and_call()


def stand_in() -> None:
    """Replace code that is slow or not ours by something short."""
    made: Any = Compiler()
    rates: Any = lambda machine: Measured(  # noqa: E731
        (Peak("f32", 1, 50.0),), tuple(Bandwidth(level, 1, 20.0, 10.0) for level in ("L1", "L2", "L3", "memory"))
    )
    build.processes = made
    compiler._ask = lambda command, seconds: "gcc 0"
    session.measured = rates  # type: ignore[attr-defined]
    session._space = lambda told: replace(grid_space(), sizes=told.at)
    session.LiveMeasurer = Table  # type: ignore[assignment, misc, attr-defined]


def main(share: int, of: int, names: Iterable[str]) -> None:
    warnings.simplefilter("ignore")
    stand_in()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="poly-faults-", dir=memory if memory.is_dir() else None) as folder:
        warm(Path(folder))
        for name in names:
            attempts = Attempts(name, Path(folder), share, of)
            for problem in attempts.run():
                print(f"{name}: {problem}", flush=True)
            print(f"{name}: {attempts.count} attempts", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or SCENARIOS)
