"""The machine's description from files as Linux writes them, and the probes' figures kept on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from codegen.system.cache import get, put
from microkernels import isa
from microkernels.dtypes import f32
from poly.machine import Bandwidth, Cache, Machine, Measured, Peak, facts, machine, measured, nearest_level, table
from poly.machine.calibration import _bandwidths, _key, footprints
from poly.machine.cores import cgroup_quota
from poly.machine.description import cpu_name
from poly.machine.probes import probes
from poly.machine.topology import (
    FALLBACK,
    common_caches,
    core_kinds,
    cpu_list,
    cpu_numbers,
    memory_nodes,
    read_caches,
    size_text,
)

L1 = Cache(1, 32 << 10, 8, 64, 1)
L3 = Cache(3, 32 << 20, 16, 64, 8)
SMALL = Machine("some CPU", isa.PORTABLE, 2, (L1, L3))
RATES = Measured(
    (Peak("f32", 1, 100.0), Peak("f32", 2, 190.0)),
    (Bandwidth("L1", 1, 200.0, 150.0), Bandwidth("L1", 2, 400.0, 300.0)),
)


def write_cache(folder: Path, index: int, **fields: str) -> None:
    (folder / f"index{index}").mkdir(parents=True)
    for name, value in fields.items():
        (folder / f"index{index}" / name).write_text(value + "\n")


def test_caches_are_read_as_linux_lists_them(tmp_path: Path) -> None:
    write_cache(
        tmp_path,
        0,
        level="1",
        type="Data",
        size="48K",
        ways_of_associativity="12",
        coherency_line_size="64",
        shared_cpu_list="0",
    )
    write_cache(tmp_path, 1, level="1", type="Instruction", size="32K")
    write_cache(
        tmp_path,
        2,
        level="3",
        type="Unified",
        size="32M",
        ways_of_associativity="16",
        coherency_line_size="64",
        shared_cpu_list="0-3,8-11",
    )
    assert read_caches(tmp_path) == (Cache(1, 48 << 10, 12, 64, 1), Cache(3, 32 << 20, 16, 64, 8))


def test_what_a_virtual_machine_leaves_out_is_filled_in(tmp_path: Path) -> None:
    write_cache(tmp_path, 0, level="2", type="Unified", size="1024K", ways_of_associativity="0")
    assert read_caches(tmp_path) == (Cache(2, 1 << 20, 8, 64, 1),)
    assert read_caches(tmp_path / "missing") == FALLBACK


def write_cpu(system: Path, cpu: int, first: str, second: str, pair: str, everyone: str, capacity: str = "") -> None:
    """A CPU with a first level of its own, a second one that the CPUs `pair` share, and a third one for `everyone`."""
    folder = system / "cpu" / f"cpu{cpu}" / "cache"
    write_cache(folder, 0, level="1", type="Data", size=first, shared_cpu_list=f"{cpu}")
    write_cache(folder, 1, level="2", type="Unified", size=second, shared_cpu_list=pair)
    if everyone:
        write_cache(folder, 2, level="3", type="Unified", size="30M", shared_cpu_list=everyone)
    if capacity:
        (folder.parent / "cpu_capacity").write_text(f"{capacity}\n")


def hybrid(system: Path) -> Path:
    """Two fast CPUs, four slow ones that share a second level, and two slow ones without a third level."""
    for cpu in (0, 1):
        write_cpu(system, cpu, "48K", "1280K", f"{cpu}", "0-5")
    for cpu in (2, 3, 4, 5):
        write_cpu(system, cpu, "32K", "2M", "2-5", "0-5")
    for cpu in (6, 7):
        write_cpu(system, cpu, "32K", "2M", "6-7", "")
    return system


def test_cores_with_other_caches_are_of_another_kind(tmp_path: Path) -> None:
    fast, slow, slowest = core_kinds(range(8), hybrid(tmp_path))
    assert (fast.cpus, slow.cpus, slowest.cpus) == ((0, 1), (2, 3, 4, 5), (6, 7))
    assert [cache.bytes >> 10 for cache in fast.caches] == [48, 1280, 30 << 10]
    assert [cache.shared_by for cache in slow.caches] == [1, 4, 6]


def test_the_caches_that_every_allowed_core_can_count_on(tmp_path: Path) -> None:
    """The affinity mask decides which cores these are."""
    system = hybrid(tmp_path)
    for cpus, expected in (
        ((0, 1), [(1, 48, 1), (2, 1280, 1), (3, 30 << 10, 6)]),
        ((1, 2), [(1, 32, 1), (2, 2048, 4), (3, 30 << 10, 6)]),
        (range(8), [(1, 32, 1), (2, 2048, 4)]),
    ):
        caches = common_caches(core_kinds(cpus, system))
        assert [(cache.level, cache.bytes >> 10, cache.shared_by) for cache in caches] == expected


def test_a_stated_speed_tells_cores_apart(tmp_path: Path) -> None:
    for cpu, capacity in enumerate(("430", "430", "1024")):
        write_cpu(tmp_path, cpu, "64K", "512K", f"{cpu}", "0-2", capacity)
    slow, fast = core_kinds(range(3), tmp_path)
    assert (slow.cpus, slow.capacity, fast.cpus, fast.capacity) == ((0, 1), 430, (2,), 1024)
    assert list(replace(SMALL, kinds=(slow, fast)).layout()) == [
        "CPUs 0-1: L1 64 KiB, L2 512 KiB, L3 30 MiB, 42% as fast as the fastest",
        "CPUs 2: L1 64 KiB, L2 512 KiB, L3 30 MiB, 100% as fast as the fastest",
    ]


def test_cores_that_share_with_fewer_are_of_the_same_kind(tmp_path: Path) -> None:
    """Like the cores beside one that is switched off."""
    for cpu, pair in enumerate(("0-1", "0-1", "2")):
        write_cpu(tmp_path, cpu, "32K", "1M", pair, "")
    (kind,) = core_kinds(range(3), tmp_path)
    assert [cache.shared_by for cache in kind.caches] == [1, 2]
    assert common_caches([kind]) == kind.caches


def test_a_system_without_cpus_has_the_least_caches(tmp_path: Path) -> None:
    (kind,) = core_kinds((0, 1), tmp_path)
    assert (kind.cpus, kind.caches, common_caches([kind])) == ((0, 1), FALLBACK, FALLBACK)


def test_memory_nodes_of_the_allowed_cpus(tmp_path: Path) -> None:
    for node, cpus in ((0, "0-3,8-11"), (1, "4-7"), (2, ""), (10, "12")):
        (tmp_path / "node" / f"node{node}").mkdir(parents=True)
        (tmp_path / "node" / f"node{node}" / "cpulist").write_text(f"{cpus}\n")
    (tmp_path / "node" / "node_of_something").mkdir()
    found = memory_nodes((2, 3, 4, 12), tmp_path)
    assert [(node.number, node.cpus) for node in found] == [(0, (2, 3)), (1, (4,)), (10, (12,))]
    assert memory_nodes((2, 3), tmp_path / "absent") == ()
    assert next(replace(SMALL, nodes=found).layout()) == "CPUs 2-3 next to memory node 0"


@pytest.mark.parametrize(("text", "numbers"), [("0-3,8", (0, 1, 2, 3, 8)), ("7", (7,)), ("", ()), ("0-x", ())])
def test_lists_of_cpus(text: str, numbers: tuple[int, ...]) -> None:
    assert cpu_numbers(text) == numbers
    assert cpu_list(numbers) == (text if numbers else "")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "processor: 0\nmodel name\t: AMD EPYC\ncpu family\t: 25\nmodel\t: 17\n\nprocessor: 1",
            "AMD EPYC (family 25, model 17)",
        ),
        ("processor: 0\nCPU implementer: 0x41\nCPU part: 0xd0c\n", "ARM implementer 0x41, part 0xd0c"),
    ],
)
def test_the_name_holds_the_model_numbers(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert cpu_name(tmp_path / "cpuinfo") == name


def test_the_tightest_quota_of_a_group_and_its_ancestors_counts(tmp_path: Path) -> None:
    (tmp_path / "self").write_text("0::/outer/inner\n")
    (tmp_path / "mount" / "outer" / "inner").mkdir(parents=True)
    (tmp_path / "mount" / "outer" / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "mount" / "outer" / "inner" / "cpu.max").write_text("max 100000\n")
    assert cgroup_quota(tmp_path / "self", tmp_path / "mount") == 1.5


def test_a_quota_of_version_one_is_read(tmp_path: Path) -> None:
    (tmp_path / "self").write_text("3:cpu,cpuacct:/\n2:memory:/job\n")
    folder = tmp_path / "mount" / "cpu,cpuacct"
    folder.mkdir(parents=True)
    (folder / "cpu.cfs_quota_us").write_text("400000\n")
    (folder / "cpu.cfs_period_us").write_text("100000\n")
    assert cgroup_quota(tmp_path / "self", tmp_path / "mount") == 4


def test_no_quota_is_none(tmp_path: Path) -> None:
    (tmp_path / "self").write_text("3:cpu:/\n0::/\n")
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    assert cgroup_quota(tmp_path / "self", tmp_path) is None
    assert cgroup_quota(tmp_path / "absent", tmp_path) is None


def test_this_machine_has_a_first_level_cache_and_a_core() -> None:
    here = machine()
    assert here.cores >= 1
    assert here.caches[0].level == 1 and here.caches[0].bytes >= 8 << 10
    assert here.cache(9) is None


def test_a_core_gets_its_share_of_what_the_allowed_cores_share() -> None:
    assert (SMALL.share(L3), SMALL.share(L3, 2), SMALL.share(L3, 1)) == (16 << 20, 16 << 20, 32 << 20)
    assert SMALL.share(L1) == 32 << 10


def test_what_is_streamed_fits_its_level() -> None:
    sizes = dict(footprints(SMALL, threads=2))
    assert sizes == {"L1": 16 << 10, "L3": 8 << 20, "memory": 64 << 20}


class SharedLevel:
    """A core that reads up to `kept` bytes at 30 GB/s, and what lies beyond at 15."""

    def __init__(self, kept: int) -> None:
        self.kept = kept

    def read(self, footprint: int, threads: int = 1, seconds: float = 0.01) -> float:
        return 30.0 if footprint <= self.kept else 15.0

    triad = read


@pytest.mark.parametrize(
    ("kept", "held"), [(32 << 20, 0), (20 << 20, 0), (11 << 20, 16 << 20), (5 << 20, 8 << 20), (1, 0)]
)
def test_a_core_keeps_as_much_of_a_shared_level_as_it_reads_fast(kept: int, held: int) -> None:
    """All of 32 MB if half of it is read as fast as 4 MB, else twice what is; all where nothing is read faster."""
    here = replace(SMALL, caches=(L1, Cache(2, 1 << 20, 8, 64, 1), L3))
    found = {one.level: one for one in _bandwidths(here, SharedLevel(kept), threads=1)}
    assert (found["L3"].held, found["L1"].held, found["memory"].held) == (held, 0, 0)
    assert found["L3"].read == (30.0 if kept > 1 else 15.0)
    rates = replace(RATES, bandwidths=tuple(found.values()))
    assert rates.room("L3", 32 << 20) == (held or 32 << 20)
    assert nearest_level(here, rates, 12 << 20) == ("memory" if held == 8 << 20 else "L3")
    assert nearest_level(here, rates, 40 << 20) == "memory"


def test_rates_of_other_thread_counts_follow_from_those_measured() -> None:
    assert RATES.peak("f32", 2) == 190
    assert RATES.peak("f32", 3) == 300
    assert RATES.bandwidth("L1", 7).read == 400


def test_kept_rates_are_read_back_and_damaged_ones_measured_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fake(machine: Machine) -> Measured:
        calls.append(machine)
        return RATES

    module = __import__("poly.machine.calibration", fromlist=["measure"])
    monkeypatch.setattr(module, "measure", fake)
    put(_key(SMALL), "{ damaged")
    assert measured(SMALL) == RATES
    assert measured(SMALL) == RATES
    assert len(calls) == 1
    assert json.loads(get(_key(SMALL)) or "")["peaks"][1]["gflops"] == 190
    assert measured(SMALL, anew=True) == RATES
    assert len(calls) == 2


def test_the_probes_give_positive_rates() -> None:
    probe = probes(isa.host())
    assert probe.peak(f32, seconds=1e-5) > 0
    assert probe.read(8 << 10, seconds=1e-5) > 0
    assert probe.triad(8 << 10, seconds=1e-5) > 0
    assert min(probe.ahead(1 << 17, (0, 2048)).values()) > 0
    assert [rows for rows, seconds in probe.rows(1 << 20).items() if seconds > 0] == [2, 4]


def test_the_table_and_the_facts_name_everything() -> None:
    text = "\n".join(table(SMALL, RATES))
    for expected in ("some CPU", "portable", "32 KiB", "32 MiB", "8 CPUs", "190.0", "L1, 2 threads", "400.0  300.0"):
        assert expected in text
    made = facts(SMALL, RATES)
    assert json.loads(json.dumps(made))["caches"][1]["bytes"] == 32 << 20
    assert made["isa"] == "portable"


def test_sizes_in_words() -> None:
    assert [size_text(n) for n in (48 << 10, 1 << 20, 100)] == ["48 KiB", "1 MiB", "100 B"]
