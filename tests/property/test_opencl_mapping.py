"""Loops given to work-groups and work-items: the steps, what is refused and why, where barriers stand, the text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from doc_nests import chain, copy, dot, late, matmul, wave
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mapping_nests import (
    elimination,
    far,
    histogram,
    jacobi,
    mapped,
    running,
    same,
    scaled,
    scan,
    sums,
    three,
)
from random_nests import VALUE_OF_N, fixed, nests
from work_item_races import barriers, races

import poly
from codegen.ir.integer import Affine
from codegen.opencl.items import SharedLoop
from codegen.opencl.plan import device_program
from microkernels.opencl_isa import OPENCL512, OPENCLGPU
from poly import ScheduleError, schedule
from poly.ir.nest import Nest
from poly.ir.tree import Band, Copy, Leaf, Node, Sequence, bands
from poly.lowering.box_copy import with_boxes
from poly.lowering.lower import lower
from poly.lowering.mapping.items import with_items
from poly.lowering.mapping.partials import Shared
from poly.schedules.schedule import Schedule

GPU = replace(OPENCLGPU, max_items=4096)


def lowered(made: Schedule, **sizes: int) -> Shared:
    """The tree with partial results and barriers, with all sizes fixed."""
    known = made.on(made.nest.with_sizes(sizes)) if sizes else made
    return with_items(with_boxes(known.nest, known.tree, GPU), GPU)


def source(made: Schedule) -> str:
    return device_program(lower(made.nest, made.tree, GPU)).source


def outline(node: Node) -> str:
    """The loops and statements in a line: `t(S0 barrier S1)`."""
    match node:
        case Leaf(name):
            return name
        case Band(name=name, body=body):
            return f"{name}({outline(body)})"
        case Copy(body=body):
            return outline(body)
        case Sequence(nodes):
            return " ".join(map(outline, nodes))
    raise TypeError(type(node).__name__)


# --- the steps ------------------------------------------------------------------------------------------------------


def test_the_loops_say_who_shares_them() -> None:
    made = schedule(matmul).tile(i=8, j=32).groups("i_tile", "j_tile").items(i=8, j=32)
    marks = {band.name: (band.group, band.parallel, band.items) for band in bands(made.tree)}
    assert marks == {
        "i_tile": (True, True, 0),
        "j_tile": (True, True, 0),
        "i": (False, False, 8),
        "j": (False, False, 32),
        "k": (False, False, 0),
    }
    assert [line.partition("  # ")[2] for line in str(made).split("\n")] == [
        "groups",
        "groups",
        "8 items",
        "32 items",
        "",
        "",
    ]


def test_python_and_json_make_the_same_schedule() -> None:
    made = schedule(copy).tile(i=8).groups("i_tile").items(i=8, j=32)
    assert repr(made) == "schedule(copy).tile(i=8).groups('i_tile').items(i=8, j=32)"
    for again in (eval(repr(made), {"schedule": schedule, "copy": copy}), Schedule.from_json(copy, made.to_json())):
        assert repr(again) == repr(made)
        assert [b.items for b in bands(again.tree)] == [0, 8, 32]


@pytest.mark.parametrize(
    ("made", "marks"),
    [
        (lambda: schedule(copy).groups("i").tile(i=4), {"i_tile": "groups", "i": "", "j": ""}),
        (lambda: schedule(copy).items(j=16).split(j=64), {"i": "", "j_tile": "", "j": "16 items"}),
        (lambda: schedule(copy).items(i=4, j=8).items(i=1), {"i": "", "j": "8 items"}),
        (lambda: schedule(copy).items(i=4, j=8).interchange("i", "j"), {"j": "8 items", "i": "4 items"}),
        (lambda: schedule(chain).items(i=4, j=4).fuse("S0", "S1", at="i"), {"i": "4 items"}),
        (lambda: schedule(chain).groups("i").fuse("S0", "S1", at="i"), {"i": ""}),
        (
            lambda: schedule(sums).groups("i").items(j=16).distribute("i"),
            {"i": "groups", "i_2": "groups", "j": "16 items"},
        ),
    ],
)
def test_marks_go_with_their_loops(made, marks: dict[str, str]) -> None:
    shown = [line.strip() for line in str(made()).split("\n") if line.strip().startswith("for")]
    assert {line.split()[1]: line.partition("  # ")[2] for line in shown} == marks


# --- what is refused ------------------------------------------------------------------------------------------------

STRICT = replace(dot, reassociate=False)
REFUSED = [
    (
        lambda: schedule(dot).groups("i"),
        "groups(i) is illegal: S0[0] and S0[1] update one element of s (reduction, distance (1), with N = 2).",
    ),
    (
        lambda: schedule(matmul).groups("i", "j", "k"),
        "groups(i, j, k) is illegal: loop k is shared by work-groups, and S0[0, 0, 0] and S0[0, 0, 1] update one "
        "element of C (reduction, distance (0, 0, 1), with M = 1, K = 2, N = 1). Remedy: groups(i, j).",
    ),
    (
        lambda: schedule(wave).groups("t"),
        "groups(t) is illegal: S0[1, 1] must run before S0[2, 0] (flow on u, distance (1, -1), with T = 3, N = 3). "
        "Remedy: groups(x).",
    ),
    (lambda: schedule(matmul).groups("j", "i"), "groups takes loops outermost first: i, j."),
    (lambda: schedule(matmul).groups(), "groups needs loops, outermost first, such as 'i_tile'. Loops: i, j, k."),
    (
        lambda: schedule(matmul).tile(i=8, j=8).groups("i_tile", "j_tile", "i", "j"),
        "groups(i_tile, j_tile, i, j): a device counts work-groups along 3 dimensions.",
    ),
    (
        lambda: schedule(copy).tile(i=8, j=8).groups("i_tile", "j_tile", "i").groups("j"),
        "groups(j) does not fit: 3 loops are shared by groups already: i_tile, j_tile, i.",
    ),
    (
        lambda: schedule(matmul).tile(i=8, j=8).groups("i_tile", "i"),
        "groups(i_tile, i) does not fit: loop i is not directly in loop i_tile, which groups share: loop j_tile stands "
        "between.",
    ),
    (
        lambda: schedule(sums).groups("i", "j"),
        "groups(i, j) does not fit: loop j is not directly in loop i, which groups share: S0 stands between.",
    ),
    (
        lambda: schedule(copy).pack("A", at="i").groups("i", "j"),
        "groups(i, j) does not fit: loop j is not directly in loop i, which groups share: a copy of A stands between.",
    ),
    (
        lambda: schedule(matmul).parallel("i").groups("j"),
        "groups(j) does not fit: loop i is parallel beside loop j, which groups share. Remedy: groups(i, j).",
    ),
    (
        lambda: schedule(matmul).items(i=8).groups("j"),
        "groups(j) does not fit: work-items share loop i, which is around loop j, which groups share.",
    ),
    (
        lambda: schedule(copy).groups("i").items(i=8),
        "items(i=8) does not fit: work-groups and work-items share loop i. Remedy: split it, and give items the inner "
        "one.",
    ),
    (
        lambda: schedule(copy).items(j=8).vectorize("j"),
        "vectorize(j) does not fit: loop j is vectorised and shared by work-items. Remedy: split it, and share one of "
        "the two.",
    ),
    (
        lambda: schedule(chain).items(i=8, j=16),
        "items(i=8, j=16) does not fit: 8 work-items share S0, and 16 share S1 of the same group. Remedy: items(i=16).",
    ),
    (
        lambda: schedule(sums).items(i=8, j=4),
        "items(i=8, j=4) does not fit: 8 work-items share S0, and 32 share S1 of the same group. Remedy: distribute(i) "
        "first.",
    ),
    (
        lambda: schedule(copy).items(j=0),
        "the number of work-items that share loop j must be an integer from 1 up, not 0.",
    ),
    (lambda: schedule(copy).items(z=4), "there is no loop z. Loops: i, j."),
    (
        lambda: schedule(copy.with_sizes({"N": 8})).items(i=4, j=4).flatten("i", "j"),
        "work-items share loop i. Remedy: flatten first, then items.",
    ),
    (
        lambda: schedule(scan).items(i=8),
        "items(i=8) is illegal: S0[1] must run before S0[2] (flow on y, distance (1), with N = 3), and different "
        "work-items run them in loop i, where they cannot wait for each other.",
    ),
    (
        lambda: schedule(wave).items(t=8),
        "items(t=8) is illegal: S0[1, 1] must run before S0[2, 0] (flow on u, distance (1, -1), with T = 3, N = 3), "
        "and different work-items run them in loop t, where they cannot wait for each other. Remedy: items(x=8).",
    ),
    (
        lambda: schedule(histogram).items(i=8),
        "items(i=8) is illegal: S0[0, 1] and S0[1, 0] update one element of h (reduction, distance (1, -1), with M = 2"
        ", N = 2), and different work-items run them in loop i: the iterations of loop i update several elements of h. "
        "Remedy: items(j=8).",
    ),
    (
        lambda: schedule(matmul).items(i=8, k=8),
        "items(i=8, k=8) is illegal: S0[0, 0, 0] and S0[0, 0, 1] update one element of C (reduction, distance "
        "(0, 0, 1), with M = 1, K = 2, N = 1), and different work-items run them in loop i: the iterations of loop i "
        "update several elements of C. Remedy: items(i=8).",
    ),
    (
        lambda: schedule(running).items(i=4),
        "items(i=4) is illegal: S0[0] must run before S1[1] (flow on s, with N = 2), and different work-items run them "
        "in loop i, where they cannot wait for each other.",
    ),
    (
        lambda: schedule(STRICT).items(i=8),
        "items(i=8) is illegal: S0[0] and S0[1] update one element of s (reduction, distance (1), with N = 2), and "
        "different work-items run them in loop i, where they cannot wait for each other.",
    ),
    (
        lambda: schedule(late).items(i=4, j=4).fuse("S0", "S1", at="i"),
        "fuse(S0, S1, at=i) is illegal: S0[1] must run before S1[0] (flow on X, with N = 1). Remedy: shift(j, by=1).",
    ),
]


@pytest.mark.parametrize(("made", "message"), REFUSED, ids=[message.partition(":")[0] for _, message in REFUSED])
def test_what_is_refused_and_why(made, message: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        made()
    assert str(refused.value) == message


def test_a_dependence_at_a_multiple_of_the_items_stays_with_one() -> None:
    assert races(lowered(schedule(far).items(i=4), N=21)) == []
    with pytest.raises(ScheduleError):
        schedule(far).items(i=3)


def test_more_items_than_a_group_has_are_refused() -> None:
    made = schedule(copy).items(i=32, j=32)
    with pytest.raises(ScheduleError) as refused:
        lower(made.nest, made.tree, OPENCLGPU)
    assert str(refused.value) == (
        "this makes groups of 1024 work-items (i=32, j=32), and openclgpu has at most 256 here. "
        "Remedy: smaller numbers in items."
    )


def test_in_c_the_loops_run_one_iteration_after_the_other() -> None:
    made = schedule(scaled).groups("i").items(j=32, j_2=32, j_3=32)
    assert "barrier" not in poly.compile(scaled, schedule=made, target="c").source


# --- barriers -------------------------------------------------------------------------------------------------------

PLACED = [
    (
        lambda: schedule(jacobi).items(i=32, i_2=32),
        "_t(i(S0) barrier i_2(S1) barrier_2)",
    ),
    (
        lambda: schedule(scaled).groups("i").items(j=32, j_2=32, j_3=32),
        "i(S0 S1_start j(S1) S1_join S1_end S2 S4_start barrier j_2(S3 S4) S4_join S4_end barrier_2 j_3(S5))",
    ),
    (lambda: schedule(same).items(i=32, j=32), "i(S0) j(S1)"),
    (lambda: schedule(same).items(i=32), "i(S0) barrier j(S1)"),
    (lambda: schedule(same).items(i=32).groups("j"), "i(S0) j(S1)"),
    (lambda: schedule(three).items(i=8, j=8, k=8), "i(S0) j(S1) barrier k(S2)"),
    (lambda: schedule(late).items(i=8, j=8), "i(S0) barrier j(S1)"),
    (lambda: schedule(wave).items(x=8), "t(x(S0) barrier)"),
    (lambda: schedule(elimination).items(i=16, j=16), "k(i(S0) barrier i_2(j(S1)) barrier_2)"),
    (lambda: schedule(elimination).items(i=16, i_2=4, j=4), "k(i(S0) barrier i_2(j(S1)) barrier_2)"),
    (lambda: schedule(dot).items(i=16), "S0_start i(S0) S0_join S0_end"),
    (lambda: schedule(dot).split(i=8).items(i=16), "i_tile(S0_start i(S0) S0_join S0_end)"),
    (lambda: schedule(dot).split(i=8).items(i_tile=16), "S0_start i_tile(i(S0)) S0_join S0_end"),
    (lambda: schedule(sums).items(j=16), "i(S0 S1_start j(S1) S1_join S1_end)"),
    (lambda: schedule(matmul).tile(i=8, j=8).groups("i_tile", "j_tile").items(i=8, j=8), "i_tile(j_tile(i(j(k(S0)))))"),
    (
        lambda: schedule(matmul).tile(i=8, j=8).split(k=4).order("i_tile j_tile k_tile i j k")
        .groups("i_tile", "j_tile").items(i=8, j=8),
        "i_tile(j_tile(k_tile(i(j(k(S0))))))",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("made", "expected"), PLACED, ids=[expected for _, expected in PLACED])
def test_barriers_stand_where_dependences_cross_items_and_nowhere_else(made, expected: str) -> None:
    shared = with_items(with_boxes(made().nest, made().tree, GPU), GPU)
    assert outline(shared.tree) == expected
    small = lowered(made(), **dict.fromkeys(made().nest.sizes, 9))
    assert races(small) == []
    for one in barriers(small):
        assert races(small, frozenset({one})), f"{one} is not needed"


def test_a_copy_in_local_memory_waits_for_its_readers_and_they_for_it() -> None:
    """With two boxes in turn, the barrier before the readers is enough."""
    tiled = schedule(matmul.with_sizes({"K": 48})).tile(i=8, j=8).split(k=16).order("i_tile j_tile k_tile i j k")
    shared = tiled.groups("i_tile", "j_tile").items(i=8, j=8)
    one = shared.pack("A", at="k_tile", memory="local")
    both = one.pack("B", at="k_tile", memory="local", buffers=2)
    double = shared.pack("A", at="k_tile", memory="local", buffers=2).pack("B", at="k_tile", memory="local", buffers=2)
    for made, number in ((one, 2), (both, 2), (double, 1)):
        assert source(made).count("barrier(CLK_LOCAL_MEM_FENCE);") == source(made).count("barrier(") == number
        small = lowered(made, M=5, N=4)
        assert races(small) == [] and len(barriers(small)) == number
        assert all(races(small, frozenset({barrier})) for barrier in barriers(small))


def test_a_device_of_one_item_a_group_gets_no_barriers() -> None:
    made = schedule(jacobi).vectorize("i")
    assert "barrier" not in device_program(lower(made.nest, made.tree, OPENCL512)).source


def test_a_shared_loop_that_runs_once_is_one_kernel() -> None:
    """isl divides such a loop: the panel would be packed by one kernel, and read by another one from its own memory."""
    known = schedule(matmul.with_sizes({"M": 1, "N": 2, "K": 1}))
    tiled = known.split(i=32).tile(j=16, i=8).microkernel("gemm_opencl512_8x16")
    made = tiled.pack("A", at="j_tile").parallel("i_tile2")
    program = device_program(lower(made.nest, made.tree, OPENCL512))
    assert [name for name in ("pack", "gemm") if name in program.source.split("__kernel")[-1]] == ["pack", "gemm"]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(nests(), st.data())
def test_no_mapping_that_is_accepted_has_a_race(nest: Nest, data: st.DataObject) -> None:
    made = data.draw(mapped(nest))
    known, tree = fixed(made.nest, made.tree, VALUE_OF_N)
    shared = with_items(with_boxes(known, tree, GPU), GPU)
    assert races(shared) == []
    assert repr(Schedule.from_json(nest, made.to_json())) == repr(made)


# --- the text -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "own", "first"),
    [
        (SharedLoop(32, 1, 32), "item", "N + item"),
        (SharedLoop(32, 1, 256), "item % 32", "N + item % 32"),
        (SharedLoop(8, 32, 256), "item/32", "N + item/32"),
        (SharedLoop(4, 8, 256), "item/8 % 4", "N + item/8 % 4"),
    ],
)
def test_which_share_is_an_items_own(share: SharedLoop, own: str, first: str) -> None:
    assert share.own == own
    assert share.first(Affine.name("N") * share.count).replace(f"{share.count}*N", "N") == first


@pytest.mark.parametrize("count", [1, 2, 3, 8, 12, 32])
@pytest.mark.parametrize("start", [-70, -1, 0, 1, 5, 31, 64])
def test_an_item_starts_at_its_first_iteration(count: int, start: int) -> None:
    """Known starts, and starts that only the device knows, in C's arithmetic."""
    share = SharedLoop(count, 1, count)
    for item in range(count):
        expected = next(i for i in range(start, start + count) if i % count == item)
        known, open_ = share.first(Affine.of(start)), share.first(Affine.name("s"))
        assert c_value(known, item, start) == c_value(open_, item, start) == expected
        for value in range(start, start + count):
            owns = bool(c_value(share.owns(Affine.of(value)), item, start))
            assert owns == (value == expected) == bool(c_value(share.owns(Affine.name("s")), item, value))


def c_value(text: str, item: int, start: int) -> int:
    """The value of an expression in C, where the remainder has the dividend's sign."""
    python = text.replace("%", "@").replace("/", "//")
    return int(eval(python, {"item": Remaining(item), "s": Remaining(start)}))


class Remaining(int):
    """An integer with C's remainder as the operator `@`."""

    def __matmul__(self, other: int) -> Remaining:
        return Remaining(abs(self) % other * (-1 if self < 0 else 1))

    def __add__(self, other: int) -> Remaining:
        return Remaining(int(self) + other)

    def __radd__(self, other: int) -> Remaining:
        return Remaining(other + int(self))

    def __sub__(self, other: int) -> Remaining:
        return Remaining(int(self) - other)

    def __rsub__(self, other: int) -> Remaining:
        return Remaining(other - int(self))


def test_the_text_of_a_shared_reduction() -> None:
    text = source(schedule(sums).groups("i").items(j=32))
    body = text[text.index("{\n    const int item") :]
    assert body == SUMS


SUMS = """{
    const int item = (int)get_local_id(0);
    double s_sum[1] __attribute__((aligned(64)));
    __local double f64_shares[32] __attribute__((aligned(64)));
    const int64_t i = (int64_t)get_group_id(0);
    if (item == 0) {
        s[i] = 0.0;
    }
    s_sum[0] = 0.0;
    for (int64_t j = item; j < N; j += 32) {
        s_sum[0] += A[i*N + j];
    }
    f64_shares[item] = s_sum[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < 16) {
        f64_shares[item] += f64_shares[item + 16];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < 8) {
        f64_shares[item] += f64_shares[item + 8];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < 4) {
        f64_shares[item] += f64_shares[item + 4];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < 2) {
        f64_shares[item] += f64_shares[item + 2];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < 1) {
        f64_shares[item] += f64_shares[item + 1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        if (N > 0) {
            s[i] += f64_shares[0];
        }
    }
}
"""
