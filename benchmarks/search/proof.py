"""The whole evaluation from stored tables: the landscapes, every problem's score, and the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.case import Case
from benchmarks.search import origins, store
from benchmarks.search.figures import Figure, figures, seconds_to_rank
from benchmarks.search.landscape import Landscape, landscape, missing
from benchmarks.search.problems import whole
from benchmarks.search.scores import Score, score


@dataclass(frozen=True)
class Tables:
    """The measured spaces of some problems, and notes on what they lack or no longer have."""

    lands: tuple[Landscape, ...]
    notes: tuple[str, ...]
    rank_seconds: float


@dataclass(frozen=True)
class Proof:
    """What the tables say about the search."""

    scores: tuple[Score, ...]
    figures: tuple[Figure, ...]


def load(folder: Path, cases: Mapping[str, Case]) -> Tables | None:
    """The tables of these problems, with the spaces that the model derives for the machine of the measurements.

    None if there are none. Raises RecordError for a damaged one.
    """
    wanted = [name for name in whole() if name in cases]
    tables = store.tables(folder, wanted)
    if not tables:
        return None
    spaces = {
        name: origins.described(table.origin.machine).space(cases[name], table.threads)
        for name, table in tables.items()
    }
    unmeasured = [name for name in wanted if name not in tables]
    notes = [f"not measured: {', '.join(unmeasured)}"] if unmeasured else []
    for name, table in tables.items():
        lacking, gone = missing(table, spaces[name])
        if lacking or gone:
            notes.append(
                f"{name}: {lacking} of {len(spaces[name])} points were not measured"
                + f"; {gone} measured points are no longer in the space, and left out" * bool(gone)
            )
    lands = tuple(landscape(table, spaces[name]) for name, table in tables.items())
    return Tables(lands, tuple(notes), seconds_to_rank(spaces.values()))


def prove(tables: Tables, seeds: Sequence[int], announce: Callable[[str], None], rival: bool = False) -> Proof:
    """Run every strategy on every problem, once for each seed; `announce` is called with each problem's name.

    With `rival`, PolyDL's ranking is evaluated too.
    """
    scores = []
    for land in tables.lands:
        announce(land.problem)
        scores.append(score(land, tables.lands, seeds, rival))
    return Proof(tuple(scores), tuple(figures(scores, tables.rank_seconds)))


def document(tables: Tables, proof: Proof) -> dict[str, Any]:
    """The object that `--json` writes."""
    origin = tables.lands[0].table.origin
    return {
        "origin": asdict(origin),
        "notes": list(tables.notes),
        "figures": [{**asdict(figure), "name": figure.name.strip(), "met": figure.met} for figure in proof.figures],
        "problems": [_problem(score) for score in proof.scores],
    }


def _problem(score: Score) -> dict[str, Any]:
    runs = {"droplet, stopping by itself": score.tuned, **score.runs}
    return {
        "problem": score.problem,
        "points": score.points,
        "failed": score.failed,
        "model's choice": score.choice,
        "model's choice, of the table's least time": score.plain,
        "model's top 5 %": score.top,
        "droplet from the origin": asdict(score.origin),
        "after transfer": score.transfer,
        "PolyDL's ranking": score.polydl and {"choice": score.polydl[0], "top 5 %": score.polydl[1]},
        "strategies": {
            name: {"quality": found.quality, "measurements": found.measurements, "seconds": found.seconds}
            for name, found in runs.items()
        },
    }
