"""OpenCL devices: what is listed, what a trial in another process says of each, and names that find them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from opencl_device import device

from codegen.errors import ToolchainError
from codegen.opencl import advice, devices, survey
from codegen.opencl.devices import find, isa_of, usable
from codegen.opencl.probe import MARK, DeviceFacts, Probed, Verdict, probe
from codegen.opencl.survey import Finding, findings
from microkernels.errors import TargetError
from poly.commands import machine as machine_command
from poly.machine import Bandwidth, Measured, Peak
from poly.machine.opencl import opencl_facts, opencl_table

CPU = DeviceFacts(
    place=(0, 0),
    platform="Some Platform",
    platform_version="OpenCL 3.0",
    name="a CPU of eight",
    vendor="ACME",
    driver="1.0",
    version="OpenCL 3.0",
    kind="cpu",
    extensions=("cl_khr_fp64",),
    units=8,
    local_bytes=32 << 10,
    max_items=4096,
    vector_floats=8,
    sub_group=0,
    memory_bytes=8 << 30,
    buffer_bytes=2 << 30,
    alignment=128,
)
GPU = replace(
    CPU,
    place=(1, 0),
    platform="GPU Platform",
    name="ACME 4000",
    kind="gpu",
    extensions=("cl_khr_fp16",),
    units=80,
    vector_floats=1,
    sub_group=64,
)
TWIN = replace(GPU, place=(1, 1))
PLATFORMS = ("Some Platform", "GPU Platform")


def told(*facts: DeviceFacts, platforms: tuple[str, ...] = PLATFORMS) -> Probed:
    return Probed(platforms, facts, tuple(Verdict(f.place, shares_memory=f.kind == "cpu") for f in facts))


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[[Probed], None]:
    """Makes the survey say what a made-up probe found."""

    def use(probed: Probed) -> None:
        monkeypatch.setattr(devices, "survey", lambda: findings(probed))

    return use


def test_gpus_come_before_cpus_and_names_find_them(pretend: Callable[[Probed], None]) -> None:
    pretend(told(CPU, GPU, TWIN))
    assert [d.label for d in usable()] == ["opencl:ACME 4000", "opencl:ACME 4000#2", "opencl:a CPU of eight"]
    assert find("opencl").name == find("opencl:gpu").name == find("opencl:GPU platform").name == "ACME 4000"
    assert find("opencl:cpu").name == find("opencl:some plat").name == find("opencl:EIGHT").name == "a CPU of eight"
    for found in usable():
        assert find(found.label) == found


def test_twins_are_told_apart(pretend: Callable[[Probed], None]) -> None:
    pretend(told(GPU, TWIN))
    first, second = usable()
    assert first != second and (first.place, second.place) == ((1, 0), (1, 1))


def test_an_unknown_name_is_told_with_those_there_are(pretend: Callable[[Probed], None]) -> None:
    broken = replace(GPU, problem="the device is not available")
    pretend(told(CPU, broken))
    with pytest.raises(TargetError) as caught:
        find("opencl:gpu")
    assert str(caught.value) == (
        "no usable OpenCL device is 'opencl:gpu': there is 'opencl:a CPU of eight'; 'opencl' takes the first of them. "
        "Not usable: ACME 4000 (GPU Platform): the device is not available."
    )
    with pytest.raises(TargetError, match="'c:avx2' is no OpenCL device"):
        find("c:avx2")


def test_where_none_can_be_used_each_reason_is_told_once_with_the_remedy(pretend: Callable[[Probed], None]) -> None:
    problem = "building and running a small kernel failed: error: unknown target CPU 'generic'"
    pretend(
        Probed(PLATFORMS[:1], (CPU, replace(CPU, place=(0, 1))), (Verdict((0, 0), problem), Verdict((0, 1), problem)))
    )
    with pytest.raises(TargetError) as caught:
        find("opencl")
    message = str(caught.value)
    assert message.startswith(f"no OpenCL device can be used here: a CPU of eight (Some Platform): {problem}. ")
    assert message.count(problem) == 1
    assert "apt install pocl-opencl-icd" in message and "OCL_ICD_VENDORS" in message


def test_a_platform_without_devices_and_a_device_that_was_not_tried_are_findings() -> None:
    found = findings(Probed(PLATFORMS, (CPU,)))
    assert [(f.platform, f.name, f.usable) for f in found] == [
        ("Some Platform", "a CPU of eight", False),
        ("GPU Platform", "", False),
    ]
    assert found[1].problem == "the platform has no device here"


@pytest.mark.parametrize(
    ("facts", "name", "sub_group"),
    [
        (replace(CPU, vector_floats=16), "opencl512", 0),
        (CPU, "opencl256", 0),
        (replace(CPU, vector_floats=4), "opencl128", 0),
        (GPU, "openclgpu", 64),
        (replace(GPU, sub_group=0, vendor="NVIDIA Corporation"), "openclgpu", 32),
        (replace(GPU, kind="other"), "openclgpu", 64),
    ],
)
def test_a_device_is_its_vectors_and_its_limits(facts: DeviceFacts, name: str, sub_group: int) -> None:
    isa = isa_of(facts)
    assert (isa.name, isa.sub_group, isa.units) == (name, sub_group, facts.units)
    assert (isa.local_bytes, isa.max_items) == (32 << 10, 4096)
    assert (isa.f64, isa.f16) == ("cl_khr_fp64" in facts.extensions, "cl_khr_fp16" in facts.extensions)


CHILD = """
import json, os, sys, time
MARK, LISTED, WAYS = {mark!r}, {listed!r}, {ways!r}
def say(message):
    print(MARK + json.dumps(message), flush=True)
print("a driver's greeting")
say({{"listed": LISTED}})
for place, way in WAYS:
    if place in json.loads(sys.argv[1]):
        continue
    say({{"trying": place}})
    if way == "crashes":
        print("LLVM ERROR: no such CPU", file=sys.stderr, flush=True)
        os.abort()
    if way == "leaves":
        sys.exit(3)
    if way == "hangs":
        time.sleep(600)
    say({{"verdict": {{"place": place, "problem": "", "shares_memory": True}}}})
"""


def child(ways: list[tuple[list[int], str]], *facts: DeviceFacts) -> tuple[str, ...]:
    """A command that behaves as drivers do."""
    listed = json.loads(json.dumps(asdict(Probed(PLATFORMS, facts))))
    return (sys.executable, "-c", CHILD.format(mark=MARK, listed=listed, ways=ways))


@pytest.mark.parametrize(
    ("way", "problem"),
    [
        ("crashes", "building and running a small kernel crashed (SIGABRT): LLVM ERROR: no such CPU"),
        ("leaves", "building and running a small kernel ended the process (exit status 3)"),
        ("hangs", "building and running a small kernel did not end within 3 seconds"),
    ],
)
def test_a_driver_that_crashes_or_hangs_is_passed_over_and_the_next_one_tried(way: str, problem: str) -> None:
    probed = probe(child([([0, 0], way), ([1, 0], "works")], CPU, GPU), seconds=3)
    assert probed.facts == (CPU, GPU)
    assert probed.verdicts == (Verdict((0, 0), problem), Verdict((1, 0), shares_memory=True))
    assert probed.lasting is (way != "hangs")


def test_a_loader_that_crashes_is_told() -> None:
    command = (sys.executable, "-c", "import os; os.abort()")
    assert probe(command).problem == "asking OpenCL for its platforms crashed (SIGABRT)"
    assert probe(("/no/such/python",)).problem.startswith("asking OpenCL for its platforms failed: /no/such/python")


def test_the_probe_tries_the_real_device() -> None:
    tested = device()
    probed = probe()
    assert Verdict(tested.place, shares_memory=tested.shares_memory) in probed.verdicts
    assert next(facts for facts in probed.facts if facts.place == tested.place).driver == tested.driver


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing is kept yet, and what this test keeps no other one finds."""
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path))
    survey._survey.cache_clear()
    yield
    survey._survey.cache_clear()


@pytest.mark.usefixtures("own_cache")
def test_what_was_tried_is_kept_while_drivers_stay_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def driver(version: str) -> None:
        """From now on OpenCL lists one device with this driver."""
        listed = Probed(PLATFORMS[:1], (replace(CPU, driver=version),))
        monkeypatch.setattr(survey, "_here", lambda: listed)
        monkeypatch.setattr(
            survey, "probe", lambda: tries.append(version) or replace(listed, verdicts=(Verdict((0, 0)),))
        )
        survey._survey.cache_clear()

    driver("1.0")
    before = survey.survey()
    assert [finding.usable for finding in before] == [True]
    survey._survey.cache_clear()
    assert survey.survey() == survey.survey() == before
    assert tries == ["1.0"]
    driver("2.0")
    assert survey.survey() != before
    assert survey.survey(anew=True) == survey.survey()
    assert tries == ["1.0", "2.0", "2.0"]


@pytest.mark.usefixtures("own_cache")
def test_a_device_that_hung_is_tried_again_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    hung = Probed(PLATFORMS[:1], (CPU,), (Verdict((0, 0), "building did not end within 9 seconds"),))
    monkeypatch.setattr(survey, "probe", lambda: hung)
    assert [finding.usable for finding in survey.survey()] == [False]
    survey._survey.cache_clear()
    monkeypatch.setattr(survey, "probe", lambda: replace(hung, verdicts=(Verdict((0, 0)),)))
    assert [finding.usable for finding in survey.survey()] == [True]


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"platforms": 1}', '{"facts": [], "verdicts": []}'])
def test_a_damaged_entry_is_no_entry(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(survey, "get", lambda key: text)
    assert survey._kept("key") is None


def test_without_a_cache_directory_devices_are_tried_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: str) -> str:
        raise ToolchainError("no cache directory")

    monkeypatch.setattr(survey, "get", fail)
    monkeypatch.setattr(survey, "put", fail)
    assert survey._kept("key") is None
    survey._keep("key", "text")


@pytest.mark.usefixtures("own_cache")
def test_without_pyopencl_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise survey.PackageNotFoundError(name)

    monkeypatch.setattr(survey, "version", missing)
    assert survey.survey(anew=True) == survey.survey()
    with pytest.raises(TargetError, match="pyopencl, which poly needs, is not installed: pip install pyopencl"):
        find("opencl")


def test_without_a_platform_the_message_says_where_the_loader_looked(tmp_path: Path, project: Path) -> None:
    """In a process of its own: the loader reads the files once."""
    (tmp_path / "gone.icd").write_text("libgone.so.1\n")
    code = (
        "from codegen.opencl.devices import find, usable\nfrom microkernels.errors import TargetError\n"
        "try:\n    found = find('opencl:gone')\nexcept TargetError as error:\n    print(error)\n"
    )
    environment = {**os.environ, "OCL_ICD_VENDORS": str(tmp_path), "POLY_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], cwd=project, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if "no usable OpenCL device is" not in done.stdout:  # a platform comes with pyopencl's wheel
        assert f"{tmp_path / 'gone.icd'} names libgone.so.1: it cannot be loaded (libgone.so.1: " in done.stdout
        assert "apt install pocl-opencl-icd" in done.stdout


def test_an_nvidia_driver_without_its_icd_file_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    assert advice.nvidia_remedy((tmp_path,)) == []
    library = tmp_path / "libnvidia-opencl.so.1"
    library.write_text("")
    (remedy,) = advice.nvidia_remedy((tmp_path,))
    assert str(library) in remedy and "OCL_ICD_VENDORS=" in remedy
    (tmp_path / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")
    assert advice.nvidia_remedy((tmp_path,)) == []


def test_a_part_of_the_compute_units() -> None:
    whole = device()
    if whole.isa.units < 2 or whole.isa.is_gpu:
        pytest.skip("the device has one compute unit, or cannot be divided")
    part = whole.with_units(1)
    assert (part.isa.units, part.label, part.handle.max_compute_units) == (1, f"{whole.label}@1", 1)
    assert find(part.label) == part != whole
    assert whole.with_units(whole.isa.units) is whole
    for wrong in (0, whole.isa.units + 1):
        with pytest.raises(TargetError, match=f"has {whole.isa.units} compute units; got {wrong}"):
            whole.with_units(wrong)


def test_a_device_that_is_gone_is_told() -> None:
    gone = replace(device(), driver="another")
    with pytest.raises(TargetError, match="is gone: `poly machine` lists what there is"):
        assert gone.handle


def test_the_machine_lists_devices_and_reasons(pretend: Callable[[Probed], None]) -> None:
    probed = Probed(PLATFORMS, (CPU, GPU), (Verdict((0, 0), "it crashed"), Verdict((1, 0))))
    pretend(probed)
    facts = opencl_facts(findings(probed), usable())
    assert [(f["target"], f["problem"]) for f in facts] == [("opencl:ACME 4000", ""), (None, "it crashed")]
    assert json.loads(json.dumps(facts))[0]["isa"]["units"] == 80
    assert list(opencl_table(findings(probed), usable())) == [
        "OpenCL      opencl:ACME 4000",
        "                GPU Platform, driver 1.0; ACME; 8.6 GB of memory",
        "                openclgpu: 80 compute units, 32 KiB of local memory, groups of up to 4096 items, "
        "sub-groups of 64; f32, f16",
        "            not usable: a CPU of eight (Some Platform): it crashed",
    ]


def test_the_machine_without_devices_says_what_to_do() -> None:
    lines = list(opencl_table([Finding("", "", "the package pyopencl is not installed")], ()))
    assert lines[0] == "OpenCL      not usable: the package pyopencl is not installed"
    assert "apt install pocl-opencl-icd" in lines[-1]


def test_poly_machine_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = device()
    rates = Measured((Peak("f32", 1, 100.0),), (Bandwidth("L1", 1, 200.0, 150.0),))
    monkeypatch.setattr(machine_command, "measured", lambda machine, anew: rates)
    shown = CliRunner().invoke(machine_command.command, [])
    assert shown.exit_code == 0 and tested.label.partition("@")[0] in shown.output
    facts = json.loads(CliRunner().invoke(machine_command.command, ["--json"]).output)
    assert tested.driver in {found["driver"] for found in facts["opencl"] if not found["problem"]}
