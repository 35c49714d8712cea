"""The model judged by tables of sampled points: on several machines, by their own calibration, another, and none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from small_space import CASE, FACTS, ORIGIN, full_table, seconds, small_space

from benchmarks.case import Case
from benchmarks.cli import bench
from benchmarks.search import model, origins, store
from benchmarks.search.origins import Host
from benchmarks.search.table import Table, key
from microkernels.isa import ISAS
from poly.autoschedule.spaces.space import Space, Values
from poly.machine import Machine
from poly.model.cost import Cost
from poly.model.rates import Rates


def guessing(guess: dict[tuple[str, int | None, int | None], float]) -> Space:
    """The small space with a model that predicts these seconds; its choice is the least of them."""
    space = small_space()

    def known(order: str):  # type: ignore[no-untyped-def]
        return lambda values: Cost(guess[order, values["rows"], values["depth"]])

    structures = tuple(replace(s, predict=known(dict(s.traits)["order"])) for s in space.structures)
    made = replace(space, structures=structures)
    return replace(made, choice=made.ranked()[0])


def guesses(space: Space, seconds_of) -> dict[tuple[str, int | None, int | None], float]:  # type: ignore[no-untyped-def]
    found = {}
    for point in space:
        values: Values = space.values(point)
        order = dict(space.structures[point.structure].traits)["order"]
        found[order, values["rows"], values["depth"]] = seconds_of(point)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_rank_of_a_model_is_that_of_its_order_whatever_its_scale(seed: int) -> None:
    space, random = small_space(), Random(seed)
    table = full_table(space, noise=0.0)
    bent = guesses(space, lambda point: 3 + 7 * seconds(space, point) ** 3)
    right, wrong = guessing(bent), guessing({at: 1 / value for at, value in bent.items()})
    assert model.judge(table, right).rank == pytest.approx(1, abs=0.01)
    assert model.judge(table, wrong).rank == pytest.approx(-1, abs=0.01)
    shuffled = list(bent.values())
    random.shuffle(shuffled)
    assert abs(model.judge(table, guessing(dict(zip(bent, shuffled, strict=True)))).rank) < 0.6


def test_a_model_without_an_order_has_no_rank() -> None:
    space = small_space(blind=True)
    assert model.judge(full_table(space), space).rank == 0.0


def test_first_choice_is_judged_among_the_points_that_were_measured() -> None:
    space = small_space()
    full = full_table(space, noise=0.0)
    gone = {key(space, space.choice)}
    judged = model.judge(replace(full, entries={p: e for p, e in full.entries.items() if p not in gone}), space)
    assert judged.choice == pytest.approx(1)
    assert judged.default in gone, "the default is that of the whole space"
    assert len(judged.predictions) == len(space) - 1


def test_two_halves_of_noise_do_not_agree_and_those_of_measurements_do() -> None:
    space = small_space()
    assert model.judge(full_table(space, noise=0.002), space).repeated > 0.95
    flat = replace(full_table(space, noise=0.0), entries=flat_entries(space))
    assert model.judge(flat, space).repeated < 0.6


def flat_entries(space: Space):  # type: ignore[no-untyped-def]
    """The entries of points that are all equally fast, with noise."""
    random = Random(3)
    known = full_table(space, noise=0.0).entries
    return {
        point: replace(entry, passes=tuple(replace(v, samples=(random.gauss(1, 0.1),)) for v in entry.passes))
        for point, entry in known.items()
    }


def test_kinds_are_told_by_what_is_packed() -> None:
    space = small_space()
    first, second = space.structures
    packed = replace(second, traits=(*second.traits[:1], ("left", "panels"), ("right", "whole")))
    mixed = replace(space, structures=(first, packed))
    kinds = model.by_kind([model.judge(full_table(mixed), mixed)])
    assert {kind: sum(map(len, problems)) for kind, problems in kinds.items()} == {
        "nothing packed": 15,
        "left packed": 0,
        "right packed": 0,
        "both packed": 15,
    }


def test_the_substitute_is_another_cpu_of_the_same_instruction_set_if_there_is_one() -> None:
    known = origins.cpus()
    for one in known:
        other = origins.nearest_other(one.machine)
        assert not origins.alike(other.machine, one.machine)
        same = [c for c in known if c.machine.isa == one.machine.isa and not origins.alike(c.machine, one.machine)]
        assert (other.machine.isa == one.machine.isa) == bool(same)
        speeds = origins.uncalibrated(one.machine).tiles.speeds
        assert bool(speeds) == bool(same), "tiles of another instruction set say nothing"


def test_an_unknown_cpu_is_taken_for_the_most_similar_one() -> None:
    for one in origins.cpus():
        unknown = replace(one.machine, cpu="nobody has seen it")
        assert origins.nearest_other(unknown).machine.isa == one.machine.isa


@pytest.fixture
def samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two machines, one of which poly describes, with tables of two problems; before calibration the model is blind."""
    described = origins.cpus()[0].machine
    known = {**FACTS, "cpu": described.cpu, "isa": described.isa.name}
    for facts in (FACTS, known):
        for number, name in enumerate(("gemm 64x64x64", "conv 07")):
            origin = replace(ORIGIN, machine={**facts, "cores": 1 + number})
            table: Table = replace(full_table(small_space(), name), origin=origin)
            store.write(table, store.folder_of(tmp_path, store.SAMPLES, facts))
    monkeypatch.setattr(origins.Host, "space", space_by_cores)
    return tmp_path


def space_by_cores(host: Host, case: Case, threads: int, rates: Rates | None = None) -> Space:
    """A blind model before calibration, as its rates are then nominal."""
    return small_space(blind=rates is not None and rates != host.rates(threads))


def test_every_machine_has_a_verdict(samples: Path) -> None:
    done = CliRunner().invoke(bench, ["search", "--data", str(samples), "--runs", "0", "--json", "-"])
    assert done.exit_code == 0, done.output
    unknown, known = sorted(json.loads(done.stdout)["model"], key=lambda one: one["described"])
    assert (unknown["described"], known["described"]) == (False, True)
    assert "nothing of the model was fitted to it" in done.stderr
    assert unknown["origin"]["machine"]["cpu"] == "made up"
    for one in (unknown, known):
        figures = {figure["name"]: figure for figure in one["figures"]}
        assert figures["first choice"]["value"] == pytest.approx(1, abs=0.02)
        assert figures["rank correlation, median"]["value"] > 0.9
        assert figures["rank correlation, uncalibrated"]["value"] == 0
        assert [problem["problem"] for problem in one["problems"]] == ["gemm 64x64x64", "conv 07"]
        assert all(problem["before calibration"]["rank correlation"] == 0 for problem in one["problems"])
    goals = [one["figures"][0]["goal"] for one in (unknown, known)]
    assert goals == [0.97, 0.98]


def test_one_problem_is_judged_by_one_calibration(samples: Path) -> None:
    done = CliRunner().invoke(bench, ["search", "conv 07", "--data", str(samples), "--runs", "0", "--json", "-"])
    assert done.exit_code == 0, done.output
    assert [len(one["problems"]) for one in json.loads(done.stdout)["model"]] == [1, 1]


def test_another_calibration_is_that_of_another_table() -> None:
    def tabled(cores: int) -> Table:
        machine = {**FACTS, "peaks": [{"dtype": "f32", "threads": 1, "gflops": 100.0 * cores}]}
        return replace(full_table(small_space(), f"gemm {cores}"), origin=replace(ORIGIN, machine=machine))

    asked: list[tuple[str, float]] = []

    def space(host: Host, case: Case, threads: int, rates: Rates) -> Space:
        asked.append((case.size, dict(rates.flops)["f32"] / 1e11))
        return small_space()

    cases = {f"gemm {n}": replace(CASE, size=f"gemm {n}") for n in (1, 2)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(origins.Host, "space", space)
        found = model.verdict({f"gemm {n}": tabled(n) for n in (1, 2)}, cases)
    assert [[one.problem for one in others] for others in found.again] == [["gemm 1", "gemm 2"]]
    assert asked[:4] == [("gemm 1", 1.0), ("gemm 2", 2.0), ("gemm 1", 2.0), ("gemm 2", 1.0)]


def test_machines_have_folders_by_cpu_and_instruction_set(tmp_path: Path) -> None:
    machine = Machine("AMD EPYC (family 25, model 17)", ISAS["avx2"], 2, ())
    facts = {"cpu": machine.cpu, "isa": machine.isa.name}
    folder = store.folder_of(tmp_path, store.SAMPLES, facts)
    assert folder == tmp_path / "samples" / "amd-epyc-family-25-model-17-avx2"
    assert store.folders(tmp_path, store.SAMPLES) == []
    store.write(full_table(small_space(), "conv 07"), folder)
    assert store.folders(tmp_path, store.SAMPLES) == [folder]


def test_the_tables_that_come_with_the_code_say_where_they_are_from() -> None:
    for kind in (store.SPACES, store.SAMPLES):
        for folder in store.folders(store.DATA, kind):
            table = store.tables(folder, [name_of(path) for path in sorted(folder.glob("*" + store.SUFFIX))[:1]])
            (origin,) = [one.origin for one in table.values()]
            assert store.folder_of(store.DATA, kind, origin.machine) == folder
            assert origins.described(origin.machine).measured.tiles is not None


def name_of(path: Path) -> str:
    """The problem of a table's file, whose name has single words."""
    return path.name.removesuffix(store.SUFFIX).replace("_", " ")
