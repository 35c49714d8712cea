"""Tables as files: one gzipped JSON document for each problem, small enough to be kept with the code.

    { version, problem, dtype, threads, machine, compiler, engine, date, arrays, reference: [traits, values],
      structures: [ { traits: {name: value}, knobs: [name, …],
                      points: [ [[value, …], seconds, [reference, sample, …], …]
                              | [[value, …], seconds, "why it failed"] ] } ] }

A list that begins with `reference` is a visit; its times are microseconds, rounded to four digits. Nothing in a file
depends on when it was written, so the same table gives the same bytes.

    data/spaces/<machine>/    every point of small spaces, on which strategies can be replayed
    data/samples/<machine>/   random points of other spaces, by which the model is judged

A machine is a CPU and an instruction set.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.search.table import ALIGNED, Entry, Origin, Pass, PointKey, Table, Traits
from codegen.system.files import write_file
from poly.errors import RecordError

VERSION = 1
DATA = Path(__file__).with_name("data")
"""The folder of the tables that come with the code."""
SPACES, SAMPLES = "spaces", "samples"
"""The folders of the two kinds of tables."""
SUFFIX = ".json.gz"
ORIGIN = ("machine", "compiler", "engine", "date")


def folder_of(data: Path, kind: str, machine: Mapping[str, Any]) -> Path:
    """The folder of a machine's tables of one kind."""
    return data / kind / re.sub(r"[^a-z0-9]+", "-", f"{machine['cpu']} {machine['isa']}".lower()).strip("-")


def folders(data: Path, kind: str) -> list[Path]:
    """The folders of all machines with tables of one kind, by name."""
    return sorted(one for one in (data / kind).glob("*") if any(one.glob("*" + SUFFIX)))


def path(folder: Path, problem: str) -> Path:
    return folder / (problem.replace(" ", "_") + SUFFIX)


def write(table: Table, folder: Path) -> None:
    """Write a table atomically: a reader, even after a kill, finds the old file or the new one."""
    target = path(folder, table.problem)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_document(table), separators=(",", ":"))
    write_file(target, gzip.compress(text.encode(), mtime=0))


def read(folder: Path, problem: str) -> Table | None:
    """The table of a problem; None if there is no file.

    Raises RecordError if the file is damaged or of another version.
    """
    source = path(folder, problem)
    try:
        document = json.loads(gzip.decompress(source.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, EOFError, ValueError) as error:
        raise RecordError(f"{source} is no table: {error}. Remove it and measure again.") from error
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise RecordError(f"{source} is no table of version {VERSION}. Remove it and measure again.")
    try:
        return _table(document)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise RecordError(f"{source} is damaged: {error!r}. Remove it and measure again.") from error


def tables(folder: Path, problems: Iterable[str]) -> dict[str, Table]:
    """The tables of these problems that there are, by name. Raises RecordError for a damaged one."""
    return {problem: table for problem in problems if (table := read(folder, problem)) is not None}


def _document(table: Table) -> dict[str, Any]:
    groups: dict[tuple[Traits, tuple[str, ...]], list[Any]] = {}
    for point, entry in table.entries.items():
        names = tuple(name for name, _ in point.values)
        groups.setdefault((point.traits, names), []).append(_row(point, entry))
    origin = table.origin
    return {
        "version": VERSION,
        "problem": table.problem,
        "dtype": table.dtype,
        "threads": table.threads,
        "machine": origin.machine,
        "compiler": origin.compiler,
        "engine": origin.engine,
        "date": origin.date,
        "arrays": origin.arrays,
        "reference": [dict(table.reference.traits), dict(table.reference.values)],
        "structures": [
            {"traits": dict(traits), "knobs": names, "points": rows} for (traits, names), rows in groups.items()
        ],
    }


def _row(point: PointKey, entry: Entry) -> list[Any]:
    visits: list[Any] = [[_microseconds(v.reference), *map(_microseconds, v.samples)] for v in entry.passes]
    return [[value for _, value in point.values], round(entry.seconds, 3), *(visits or [entry.failure])]


def _microseconds(seconds: float) -> float | int:
    rounded = float(f"{1e6 * seconds:.4g}")
    return int(rounded) if rounded.is_integer() else rounded


def _table(document: Mapping[str, Any]) -> Table:
    traits, values = document["reference"]
    return Table(
        document["problem"],
        document["dtype"],
        document["threads"],
        Origin(**{name: document[name] for name in ORIGIN}, arrays=document.get("arrays", ALIGNED)),
        PointKey(tuple(traits.items()), tuple(values.items())),
        dict(_entries(document["structures"])),
    )


def _entries(structures: list[Mapping[str, Any]]) -> Iterator[tuple[PointKey, Entry]]:
    for structure in structures:
        traits = tuple(structure["traits"].items())
        for values, seconds, *rest in structure["points"]:
            point = PointKey(traits, tuple(zip(structure["knobs"], values, strict=True)))
            if rest and isinstance(rest[0], str):
                yield point, Entry((), seconds, rest[0])
            else:
                yield point, Entry(tuple(_visit(times) for times in rest), seconds)


def _visit(times: list[float]) -> Pass:
    reference, *samples = (1e-6 * time for time in times)
    return Pass(tuple(samples), reference)
