"""`poly bench FILE:NAME --workers`: the same benchmark on each kind of machine of a cluster.

The files cross the network, and one worker of each kind runs the command on them, while nothing else of poly measures
or builds on its machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codegen.system.processes import PYTHON, run, with_own_path
from microkernels.errors import plain
from poly.cluster import WorkerCall, connected
from poly.cluster.turns import alone
from poly.errors import SpecError
from poly.measure.live import own_workplace


@dataclass(frozen=True)
class Errand:
    """The arguments of `poly bench nest`, and the content of the files that they name, which lie in one folder."""

    arguments: tuple[str, ...]
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Reply:
    """What the command printed, errors included, and its exit status."""

    text: str
    status: int


def errand(places: Sequence[str], options: Iterable[str]) -> Errand:
    """The benchmark of some `FILE:NAME`, where a place without a file is the name of a compiler.

    Raises SpecError for two files of the same name, of which a worker could tell only one.
    """
    found: dict[str, Path] = {}
    arguments = []
    for place in places:
        path, colon, name = place.rpartition(":")
        file = Path(path)
        if colon and found.setdefault(file.name, file) != file:
            raise SpecError(f"{plain(place)}: workers get all files in one folder, and two are called {file.name}.")
        arguments.append(f"{file.name}:{name}" if colon else place)
    return Errand((*arguments, *options), {name: path.read_bytes() for name, path in found.items()})


def everywhere(wanted: Errand, workers: str) -> dict[str, Reply]:
    """The replies by the names of the machines. Raises SearchError for a cluster as `poly.tune` does."""
    with connected(workers) as crew:
        return crew.each_kind(WorkerCall(carried_out, (wanted,), Reply("its workers died", 1)))


def carried_out(wanted: Errand) -> Reply:
    """Run the benchmark on this machine."""
    with alone(), own_workplace() as folder:
        for name, content in wanted.files.items():
            (Path(folder) / name).write_bytes(content)
        environment = {**with_own_path(), "POLY_BENCH_FOLDER": folder}
        done = run([*PYTHON, "-c", SCRIPT, "bench", "nest", *wanted.arguments], env=environment)
    return Reply(done.stdout + done.stderr * bool(done.returncode), done.returncode)


SCRIPT = """import os
os.chdir(os.environ.pop("POLY_BENCH_FOLDER"))
from poly.cli import main
main()
"""
"""The command line of poly in the folder of the files."""
