"""Strategies replayed on a table, and what is made of it: scores, figures, the report, the picture."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import mean

import pytest
from click.testing import CliRunner
from small_space import BEST, CASE, FACTS, ORIGIN, full_table, seconds, small_space

from benchmarks.cli import bench
from benchmarks.search import figures, origins, store
from benchmarks.search.figures import Figure
from benchmarks.search.landscape import Landscape, halves, landscape, missing
from benchmarks.search.picture import by_measurements, by_seconds
from benchmarks.search.proof import Tables, prove
from benchmarks.search.runs import Replay, Runs, SearchRun, SearchStep, repeated, run
from benchmarks.search.scores import best_of_nearest, score
from benchmarks.search.table import Entry, Pass, Table, key
from poly.autoschedule.spaces.space import Point, Space
from poly.errors import SearchError
from poly.ir.nest import Nest
from poly.search.events import Ask
from poly.search.stopping import Budget
from poly.search.strategies import strategies

WORST = Point(0, (3, 0))


def land(noise: float = 0.002, name: str = "gemm 8x8x8", space: Space | None = None) -> Landscape:
    found = space or small_space()
    return landscape(full_table(found, name, noise), found)


def without(table: Table, space: Space, *points: Point) -> Table:
    gone = {key(space, point) for point in points}
    return replace(table, entries={point: entry for point, entry in table.entries.items() if point not in gone})


def test_a_landscape_has_the_measured_points_alone() -> None:
    space = small_space()
    table = without(full_table(space), space, Point(1, (0, 0)), WORST)
    found = landscape(table, space)
    assert len(found.space) == len(space) - 2
    assert missing(table, space) == (2, 0)
    assert found.space.choice == BEST


def test_points_are_matched_by_what_they_say_not_by_number() -> None:
    space = small_space()
    swapped = replace(space, structures=space.structures[::-1], choice=Point(0, (2, 2)), steady=(Point(0, (2, 2)),))
    found = landscape(full_table(space), swapped)
    assert found.space.steady == swapped.steady
    ratio = found.seconds[Point(1, (3, 0))] / found.seconds[Point(0, (2, 2))]
    assert ratio == pytest.approx(seconds(space, WORST) / seconds(space, BEST), rel=0.03)


def test_a_structure_without_measured_points_is_none_of_the_landscape() -> None:
    space = replace(small_space(), steady=(Point(0, (0, 0)), Point(1, (2, 2))))
    found = landscape(without(full_table(space), space, *(p for p in space if p.structure == 0)), space)
    assert found.space.steady == (Point(0, (2, 2)),)
    assert [dict(structure.traits)["order"] for structure in found.space.structures] == ["columns inside"]
    assert found.space.choice == Point(0, (2, 2))


def test_the_models_next_best_is_the_choice_where_that_failed() -> None:
    space = small_space()
    table = full_table(space)
    found = landscape(replace(table, entries={**table.entries, key(space, BEST): Entry((), 0.1, "crash")}), space)
    assert found.qualities[BEST] == found.plain[BEST] == 0.0
    assert found.space.choice == space.ranked()[1]


def test_a_table_of_another_space_has_too_few_points() -> None:
    space = small_space()
    with pytest.raises(SearchError, match="fewer than two points of the space as it is now"):
        landscape(without(full_table(space), space, *list(space)[1:]), space)


def test_qualities_are_speeds_relative_to_the_best() -> None:
    found = land(noise=0.0)
    best = seconds(found.space, BEST)
    for point in found.space:
        assert found.qualities[point] == pytest.approx(best / seconds(found.space, point), rel=1e-6)


def test_the_best_of_a_table_is_not_judged_by_its_luck() -> None:
    """Of points that are all equally fast, none may look better than the others by much, on average."""
    space = small_space()
    random = Random(1)
    entries = {
        key(space, point): Entry(tuple(Pass((random.gauss(1, 0.05),), 1.0) for _ in range(4)), 0.1) for point in space
    }
    found = landscape(Table("flat", "f32", 1, ORIGIN, key(space, BEST), entries), space)
    assert mean(found.plain.values()) < 0.96
    assert mean(found.qualities.values()) > mean(found.plain.values()) + 0.02


def test_halves_of_visits_and_of_a_single_one() -> None:
    first, second = halves({BEST: [(1.0,), (2.0,), (3.0,), (4.0,)], WORST: [(1.0, 2.0, 3.0, 4.0)]})
    assert (first[BEST], second[BEST]) == ([(1.0,), (3.0,)], [(2.0,), (4.0,)])
    assert (first[WORST], second[WORST]) == ([(1.0, 2.0)], [(3.0, 4.0)])


def test_replay_draws_from_one_visit_and_tells_failures() -> None:
    space = small_space()
    table = full_table(space)
    visits = (Pass((1.0, 1.1), 1.0), Pass((2.0, 2.1), 1.0))
    table = replace(
        table,
        entries={
            key(space, BEST): Entry(visits, 0.5),
            key(space, Point(1, (1, 1))): Entry(visits, 0.5),
            key(space, WORST): Entry((), 0.2, "it hangs"),
        },
    )
    found = landscape(table, space)
    best, other, failed = (p for want in (BEST, Point(1, (1, 1)), WORST) for p in found.space if p == want)
    replay = Replay(found, found.sides[0], Random(0))
    for _ in range(10):
        alone, broken = replay.measure(Ask((best, failed)))
        assert broken.failure == "it hangs" and not broken.samples
        assert set(alone.samples) <= {1.0, 1.1} or set(alone.samples) <= {2.0, 2.1}
        (paired,) = replay.measure(Ask((other,), best))
        assert len(paired.samples) == len(paired.rival) >= 3
        assert max(paired.samples) / min(paired.samples) < 1.2, "of one visit"
        assert max(paired.rival) / min(paired.samples) < 1.2, "the rival's of the same round"


def test_a_replays_clock_counts_the_compiler_once() -> None:
    found = land()
    replay = Replay(found, found.sides[0], Random(0))
    replay.measure(Ask((BEST,)))
    assert replay.clock() == pytest.approx(0.25)
    replay.measure(Ask((BEST,)))
    assert replay.clock() == pytest.approx(0.25 + 5 * 0.002, rel=0.05)


def test_clear_comparisons_are_short() -> None:
    found = land()
    (clear,) = Replay(found, found.sides[0], Random(0)).measure(Ask((WORST,), BEST))
    (faster,) = Replay(found, found.sides[0], Random(0)).measure(Ask((BEST,), WORST))
    assert len(clear.samples) < len(faster.samples)


@pytest.mark.parametrize("name", strategies())
def test_every_strategy_runs_on_a_table(name: str) -> None:
    found = land()
    made = run(found, name, Budget(trials=12, gain=None), seed=1)
    assert made == run(found, name, Budget(trials=12, gain=None), seed=1)
    assert 1 <= made.measurements <= 12
    assert [step.seconds for step in made.steps] == sorted(step.seconds for step in made.steps)
    assert made.quality > 0.5


def test_droplet_finds_the_best_from_both_ends() -> None:
    found = land(space=small_space(blind=True))
    assert repeated(found, "droplet-origin", Budget(trials=30, gain=None), range(3)).quality > 0.99
    assert repeated(found, "droplet", Budget(trials=30, gain=None), range(3), start=WORST).quality > 0.99


def test_a_run_tells_when_it_was_good_enough() -> None:
    steps = tuple(SearchStep(float(n), quality) for n, quality in enumerate((0.0, 0.6, 0.6, 0.97)))
    made = SearchRun(steps, 0.97)
    assert (made.reached(0.5), made.reached(0.95), made.reached(0.99)) == (2, 4, 4)
    assert Runs((made, SearchRun(steps[:2], 0.6), SearchRun(steps[:3], 0.7))).quality == 0.7


def test_nothing_found_is_a_run_of_quality_zero() -> None:
    space = small_space()
    table = full_table(space)
    broken = {p: replace(e, passes=(), failure="crash") for p, e in table.entries.items()}
    found = landscape(replace(table, entries={**broken, **{k: table.entries[k] for k in list(broken)[:2]}}), space)
    worst = next(p for p in found.space if not found.entries[p].passes)
    made = run(found, "model", Budget(trials=1, gain=None), seed=0, start=worst)
    assert made.quality == 0.0


def test_a_score_and_what_random_needs() -> None:
    found = land()
    made = score(found, [found], range(3))
    assert made.points == 30 and made.failed == 0
    assert made.choice == pytest.approx(1.0, abs=0.01)
    assert made.top >= made.choice
    assert made.transfer is None
    assert set(made.runs) == set(strategies())
    enough = found.as_good_as(made.origin.quality)
    assert made.origin.random_needs == pytest.approx(31 / (enough + 1))


def test_transfer_starts_from_the_nearest_sizes_of_the_same_nest() -> None:
    here, near, far = (land(name=f"gemm {n}", space=replace(small_space(), nest=sized(n))) for n in (8, 16, 512))
    found = list(best_of_nearest(here, [far, here, near]))
    assert found == [key(other.space, min(other.seconds, key=other.seconds.__getitem__)) for other in (near, far)]
    assert score(here, [far, here, near], range(2)).transfer == pytest.approx(1.0, abs=0.02)


def sized(n: int) -> Nest:
    return CASE.nest().with_sizes({"M": n, "N": n, "K": n})


def test_figures_stand_beside_their_goals() -> None:
    lands = tuple(land(name=f"gemm {n}", space=replace(small_space(), nest=sized(n))) for n in (8, 16))
    made = prove(Tables(lands, (), 0.5), range(2), lambda problem: None)
    by_name = {figure.name.strip(): figure for figure in made.figures}
    assert by_name["model's first choice"].met
    assert by_name["seconds to rank 1000 points"].value == 0.5
    assert by_name["5 measurements after transfer, of full tuning"].met
    assert not Figure("seconds", 3.0, 2.0, at_least=False).met
    assert not Figure("speed", 0.9, 0.97).met
    assert figures.mean([0.5, 2.0]) == pytest.approx(1.0)
    assert figures.mean([0.0, 2.0]) == 0.0


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with tables of two problems, whose space is the made-up one; points of a third one are sampled."""
    names = {"gemm 256x256x2048": store.SPACES, "conv 02": store.SPACES, "gemm 64x64x64": store.SAMPLES}
    for name, kind in names.items():
        store.write(full_table(small_space(), name), store.folder_of(tmp_path, kind, FACTS))
    monkeypatch.setattr(origins.Host, "space", lambda *_: small_space())
    return tmp_path


def test_the_report_from_outside(tables: Path, tmp_path: Path) -> None:
    arguments = ["search", "--data", str(tables), "--runs", "2", "gemm 256x256x2048", "conv"]
    picture = tmp_path / "lines.svg"
    done = CliRunner().invoke(bench, [*arguments, "--json", "-", "--plot", str(picture)])
    assert done.exit_code == 0, done.output
    head = "2 problems, 60 points, 4 visits each: made up, portable, 1 thread, cc 1.0, poly 0.1.0, NumPy's own arrays"
    rows = ("model's first choice", "≥ 0.97", "met", "droplet-origin", "gemm 256x256x2048")
    for expected in (head, *rows, "not measured: conv 01, conv 03", "another one"):
        assert expected in done.stderr
    (made,) = json.loads(done.stdout)["search"]
    assert [problem["points"] for problem in made["problems"]] == [30, 30]
    assert made["origin"]["machine"]["cpu"] == "made up"
    assert {"name", "value", "goal", "met"} <= set(made["figures"][0])
    drawn = picture.read_text()
    for expected in ("droplet", "random", "measurements", "2 problems, 60 schedules"):
        assert expected in drawn


def test_the_machine_of_the_tables(tables: Path) -> None:
    done = CliRunner().invoke(bench, ["search", "--data", str(tables), "--machine"])
    assert done.exit_code == 0
    assert "samples, made-up-portable" in done.output
    assert "CPU         made up" in done.output
    assert "L1     32 KiB     8" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["conv 99"], "unknown problem 'conv 99': there are gemm, conv, einsum, gemm 128x2048x4096"),
        ([], "no table of these problems lies in"),
        (["--plot", "lines.gif"], "the name must end in .png, .svg, .pdf"),
    ],
)
def test_wrong_use_is_told_in_one_message(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(bench, ["search", "--data", str(tmp_path), *arguments])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_curves_rise_from_the_first_result_to_the_end() -> None:
    found = land(noise=0.01)
    made = score(found, [], range(3))
    for curve in (by_measurements([made], "random"), by_seconds([made], "random")):
        places, _, means, _ = zip(*curve, strict=True)
        assert list(places) == sorted(places)
        assert means[-1] > means[0]
        assert means[-1] == pytest.approx(mean(each.steps[-1].quality for each in made.runs["random"].runs), rel=0.02)
