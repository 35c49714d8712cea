"""Searches for OpenCL devices: candidates built and run in a process that may die of them, records of a device."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import doc_nests
import numpy as np
import pytest
from artificial import MATMUL, SIZES, is_good, point, tiled_space
from click.testing import CliRunner
from opencl_device import TARGET, device

import poly
from codegen.opencl.values import DeviceProgram
from microkernels.isa import ISA
from poly import commands
from poly.autoschedule.spaces.space import Space
from poly.compiled import translate_device
from poly.ir.nest import Nest
from poly.measure import builder
from poly.measure.live import LiveMeasurer
from poly.opencl_kernel import OpenCLKernel
from poly.records import Key, Store, key_for
from poly.records.exchange import export, merge
from poly.records.key import machine_name
from poly.schedules.schedule import Schedule
from poly.search.events import Ask, Trial

ELEMENTS = 20 * 16
SIZE = {"M": 40, "N": 48, "K": 24}


@pytest.fixture(scope="module", autouse=True)
def needs_device() -> None:
    device()


def on_device(nest: Nest, loop: str) -> Space:
    """Points 0, 1, … tile a loop by 2, 3, …, as kernels for the device."""
    here = device()
    return replace(tiled_space(nest, loop), isa=here.isa, threads=here.isa.units, device=here)


def measure(space: Space, *numbers: int, incumbent: int | None = None, **how: object) -> list[Trial]:
    with LiveMeasurer(space, **how) as measurer:
        return measurer.measure(Ask(tuple(map(point, numbers)), None if incumbent is None else point(incumbent)))


def spoil(monkeypatch: pytest.MonkeyPatch, begins: Mapping[int, str]) -> None:
    """From now on the kernels of these points begin with these statements."""

    def spoiled(schedule: Schedule, isa: ISA) -> DeviceProgram:
        good = translate_device(schedule, isa)
        tile = re.search(r"tile\(\w+=(\d+)\)", repr(schedule))
        assert tile is not None
        code = begins.get(SIZES.index(int(tile[1])), "")
        source, count = re.subn(r"(__kernel [^{;]*\)\s*{\n)", lambda match: f"{match[0]}{code}\n", good.source)
        assert count
        return replace(good, source=source)

    monkeypatch.setattr(builder, "translate_device", spoiled)


def test_trials_alone_and_in_turn_with_the_incumbent() -> None:
    space = on_device(MATMUL, "i")
    with LiveMeasurer(space) as measurer:
        (alone,) = measurer.measure(Ask((point(0),)))
        one, other = measurer.measure(Ask((point(0), point(1)), point(0)))
    assert is_good(alone), alone.failure
    assert is_good(one) and len(one.rival) == len(one.samples)
    assert is_good(other) and len(other.rival) == len(other.samples)


@pytest.mark.parametrize(("nest", "sizes"), [(doc_nests.wave, {"T": 6, "N": 30}), (doc_nests.solve, {"N": 20})])
def test_nests_that_work_on_their_own_results(nest: Nest, sizes: dict[str, int]) -> None:
    """Arrays that a call reads and writes get their first values back before each sample."""
    space = poly.space(nest, target=TARGET, sizes=sizes)
    with LiveMeasurer(space, samples=2) as measurer:
        (trial,) = measurer.measure(Ask((space.choice,)))
    assert is_good(trial), trial.failure


WRONG = {
    1: ("*(volatile __global int *)8 = 1;", r"^crashed: Segmentation fault \(SIGSEGV\)|clWaitForEvents failed"),
    2: ("for (volatile int n = 0;; n = 0);", r"^hangs: it was stopped after \S+ seconds"),
    3: ("C[7] += 1;", r"^wrong result: C\[0, 7\] is -?\d+\.\d+, not -?\d+\.\d+$"),
    4: ("C[7] = NAN;", r"^wrong result: C\[0, 7\] is -?nan, not -?\d+\.\d+$"),
    5: (f"C[{ELEMENTS}] = 0;", r"^wrote beside the array C$"),
    6: ("C[-1] = 0;", r"^wrote beside the array C$"),
    7: ("unknown words;", r"^does not compile: the OpenCL compiler of (.|\n)*unknown"),
}
"""What a kernel begins with, and what is said of it then."""


def test_what_candidates_do_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure says so, and what comes next is measured."""
    monkeypatch.setattr("poly.measure.timer.BUILDING", 5.0)
    spoil(monkeypatch, {number: code for number, (code, _) in WRONG.items()})
    *bad, good = measure(on_device(MATMUL, "i"), *WRONG, 0, samples=2, patience=2.5)
    for (_, reason), trial in zip(WRONG.values(), bad, strict=True):
        assert re.search(reason, trial.failure), trial.failure
        assert trial.samples == trial.rival == ()
    assert is_good(good), good.failure


def test_schedules_of_the_space_are_right() -> None:
    space = poly.space(doc_nests.matmul, target=TARGET, sizes={"M": 37, "N": 70, "K": 45})
    assert space.device == device()
    with LiveMeasurer(space, samples=1) as measurer:
        trials = measurer.measure(Ask((space.choice, *space.sample(3, Random(0)))))
    assert [trial.failure for trial in trials] == [""] * 4


def test_cold_caches() -> None:
    (trial,) = measure(on_device(MATMUL, "i"), 0, samples=2, cold=True)
    assert is_good(trial), trial.failure


def test_a_tuned_kernel_is_right_and_its_record_is_followed() -> None:
    kernel = poly.tune(doc_nests.matmul, target=TARGET, sizes=SIZE, trials=2)
    assert isinstance(kernel, OpenCLKernel)
    assert kernel.tuning.trials == 2
    found = poly.compile(doc_nests.matmul, target=TARGET, sizes=SIZE)
    assert (found.origin, found.schedule.steps) == ("record", kernel.tuning.schedule.steps)
    assert poly.compile(doc_nests.matmul, sizes=SIZE).origin == "model"
    rows, columns, depth = SIZE.values()
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((rows, depth)), generator.standard_normal((depth, columns))
    c = np.zeros((rows, columns))
    found(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=0, atol=1e-13 * depth)


def test_a_record_serves_one_device_and_driver() -> None:
    kernel = poly.tune(doc_nests.matmul, target=TARGET, sizes=SIZE, trials=1)
    nest, here, store = kernel.nest, device(), Store.open()

    def key_on(**changes: str) -> Key:
        return key_for(nest, here.isa, here.isa.units, replace(here, **changes))

    assert store.best(key_on()) == kernel.record
    assert key_on().machine != machine_name()
    assert key_on() != key_for(nest, here.isa, here.isa.units)
    for other in ({"driver": "0"}, {"version": "0"}, {"name": "another"}, {"platform": "another"}):
        assert store.best(key_on(**other)) is None
    assert store.neighbours(key_on(driver="0"), 4) == [kernel.record]
    assert store.neighbours(key_on(name="another"), 4) == []
    other_size = doc_nests.matmul.with_sizes(SIZE | {"M": 80})
    assert store.neighbours(key_for(other_size, here.isa, here.isa.units, here), 4) == [kernel.record]


def test_the_command_tells_the_device_and_its_records_travel(tmp_path: Path) -> None:
    (tmp_path / "nests.py").write_text(Path(doc_nests.__file__).read_text())
    sizes = [word for name, value in SIZE.items() for word in ("--size", f"{name}={value}")]
    command = ["tune", f"{tmp_path / 'nests.py'}:matmul", *sizes, "--target", TARGET, "--trials", "1"]
    here = device()
    told = run(*command, "--quiet")
    assert f"{here.name} ({here.platform}, driver {here.driver})" in told.splitlines()[0]
    facts = json.loads(run(*command, "--quiet", "--json"))
    assert facts["device"]["driver"] == here.driver
    (listed,) = json.loads(run("records", "list", "--json"))
    assert listed["key"]["target"] == here.isa.name
    assert here.name in run("records", "list")
    assert re.search(
        rf"driver +{re.escape(here.version)}, driver {re.escape(here.driver)}", run("records", "show", "1")
    )
    assert export(Store.open(), tmp_path / "mine.jsonl") == 1
    run("records", "clear", "--yes")
    assert run("records", "list").startswith("no records")
    taken = merge(Store.open(), tmp_path / "mine.jsonl")
    assert (taken.new, taken.elsewhere) == (1, 0)
    assert poly.compile(doc_nests.matmul, target=TARGET, sizes=SIZE).origin == "record"


def run(*words: str) -> str:
    """What a command prints, that ends well."""
    result = CliRunner().invoke(commands.poly, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_part_of_the_compute_units_is_a_target_of_its_own() -> None:
    whole = device()
    if whole.isa.units == 1 or whole.isa.is_gpu:
        pytest.skip("the device has one compute unit, or cannot be divided")
    with pytest.raises(poly.ArgumentError, match=f"{re.escape(whole.label)}@1"):
        poly.tune(doc_nests.matmul, target=TARGET, sizes=SIZE, threads=1, trials=1)
    space = poly.space(doc_nests.matmul, target=f"{whole.label}@1", sizes=SIZE)
    assert space.threads == 1
