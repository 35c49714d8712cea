"""Several processes write one store at the same time; some are killed in the middle of it. Nothing told is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tuning_records import key, record, trial

from poly.records import Store
from poly.records.file import inspect

TRIALS = 25

OWN = 10**6
"""The numbers of one writer's trials begin at a multiple of this."""

WRITER = f"""
import sys
from poly.records import Store
from tuning_records import key, record, trial
store, who = Store.open(sys.argv[1]), int(sys.argv[2])
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    store.add_trials(key(M=1), [trial({OWN} * who + number)])
    store.add_trials(key(M=10 + who), [trial(number), trial(number)])
    store.save(record(key(M=1), minutes=number, seconds=1.0 / (1 + number), schedule='[' + str(who) + ']'))
    print(number, flush=True)
"""


def start(project: Path, store: Store, who: int, count: int = TRIALS, script: str = WRITER) -> subprocess.Popen[str]:
    """A process that waits for a line, then writes."""
    environment = {**os.environ, "PYTHONPATH": f"{project}:{project / 'tests' / 'support'}"}
    command = [sys.executable, "-W", "error", "-c", script, str(store.path), str(who), str(count)]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def go(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "records.sqlite")


def test_tuners_that_write_at_once_lose_nothing(store: Store, project: Path) -> None:
    """The file is made by the first of them, whichever it is."""
    writers = [start(project, store, who) for who in range(3)]
    go(*writers)
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    shared = [int(t.samples[0]) for t in store.trials(key(M=1))]
    assert sorted(shared) == [OWN * who + number for who in range(3) for number in range(TRIALS)]
    for who in range(3):
        assert [n for n in shared if n // OWN == who] == [OWN * who + number for number in range(TRIALS)]
        assert len(store.trials(key(M=10 + who))) == 2 * TRIALS
    best = store.best(key(M=1))
    assert best is not None and best.seconds == 1.0 / TRIALS
    assert inspect(store.path) is None


@pytest.mark.parametrize("told", [1, 12])
def test_a_killed_tuner_loses_at_most_what_was_under_way(store: Store, project: Path, told: int) -> None:
    """SIGKILL between two trials, or in the middle of one: the store is sound, and holds all that was told."""
    victim, survivor = start(project, store, 0, 10**6), start(project, store, 1)
    go(victim, survivor)
    assert victim.stdout is not None
    said = [int(victim.stdout.readline()) for _ in range(told)]
    victim.send_signal(signal.SIGKILL)
    said += [int(line) for line in victim.stdout if line.endswith("\n")]
    victim.communicate()
    survivor.communicate()
    assert (victim.returncode, survivor.returncode) == (-signal.SIGKILL, 0)
    assert inspect(store.path) is None
    shared = [int(t.samples[0]) for t in store.trials(key(M=1))]
    assert len(said) <= len([n for n in shared if n < OWN]) <= len(said) + 1
    pairs = store.trials(key(M=10))
    assert len(pairs) % 2 == 0, "both trials of one call, or none"
    assert len(said) <= len(pairs) // 2 <= len(said) + 1
    assert len([n for n in shared if n >= OWN]) == TRIALS
    assert store.save(record(minutes=1))


def test_a_tuner_killed_while_it_holds_the_lock(store: Store, project: Path) -> None:
    """It dies in the middle of a transaction: the others go on, and nothing of it is seen."""
    script = """
import os, signal, sys
from pathlib import Path
from poly.records.database import write
from poly.records.rows import key_id, put_trial
from tuning_records import key, trial
def die(connection):
    for number in range(1000):
        put_trial(connection, key_id(connection, key(M=1)), trial(number))
    os.kill(os.getpid(), signal.SIGKILL)
write(Path(sys.argv[1]), die)
"""
    store.add_trials(key(M=1), [trial(7)])
    killed = start(project, store, 0, script=script)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert store.trials(key(M=1)) == [trial(7)]
    store.add_trials(key(M=1), [trial(8)])
    assert store.trials(key(M=1)) == [trial(7), trial(8)]


def test_only_one_of_many_moves_a_damaged_file(store: Store, project: Path) -> None:
    """All find the damage at once; one moves the file, and none moves the new one that another has begun."""
    store.path.write_text("damage" * 1000)
    script = WRITER.replace(
        "sys.stdin.readline()", "import warnings; warnings.simplefilter('ignore'); sys.stdin.readline()"
    )
    writers = [start(project, store, who, 5, script) for who in range(3)]
    time.sleep(0.5)
    go(*writers)
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 3
    assert len(store.trials(key(M=1))) == 15
    assert [p.name for p in store.path.parent.glob("*.damaged*")] == ["records.sqlite.damaged-1"]


def test_a_store_crosses_a_fork(store: Store) -> None:
    """Nothing is held open, so parent and child both go on with it."""
    store.save(record())
    child = os.fork()
    if child == 0:
        store.add_trials(record().key, [trial(1)])
        os._exit(0)
    store.add_trials(record().key, [trial(1)])
    assert os.waitpid(child, 0)[1] == 0
    assert store.trials(record().key) == [trial(1), trial(1)]
