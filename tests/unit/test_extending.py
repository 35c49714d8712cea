"""What poly is extended by: the example package outside of it, and things that lie."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import islpy as isl
import numpy as np
import pytest
from click.testing import CliRunner
from headers import need_isa

import poly
from benchmarks.contender import Failed
from benchmarks.peers import PEERS
from benchmarks.problems.matmul import Matmul
from microkernels import isa as isas
from microkernels import plugins
from microkernels.isa import ISA, PORTABLE, host_machine
from poly import commands, f32, f64
from poly.autoschedule.derive import derive
from poly.autoschedule.rules import own as rules
from poly.extending import (
    Form,
    OwnTarget,
    edit,
    find_loop,
    map_functions,
    register_isa,
    register_rule,
    register_step,
    register_target,
)
from poly.ir.tree import Leaf
from poly.machine import targets
from poly.model.core import Caches, Target
from poly.model.rates import nominal
from poly.schedules.schedule import Schedule
from poly.schedules.steps import STEPS
from poly.schedules.steps import own as steps
from poly.search.strategies import strategy

HERE = Target(PORTABLE, Caches(32 << 10, 1 << 20, 4 << 20), nominal(PORTABLE), 1)
EXAMPLE = Path(__file__).parents[2] / "examples" / "extending" / "src"
M, N, K = poly.sizes("M N K")


@poly.nest
def product(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def running(x: f64[N]):
    for i in range(1, N):
        x[i] = x[i] + x[i - 1]


@poly.nest
def scaled(x: f64[N], y: f64[N]):
    for i in range(N):
        y[i] = 2 * x[i]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a test registers stays; the example package can be imported."""
    for module, name in ((steps, "_OWN"), (rules, "_OWN"), (isas, "_OWN"), (targets, "_OWN")):
        monkeypatch.setattr(module, name, {})
    monkeypatch.syspath_prepend(str(EXAMPLE))


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that offers a value under a name of a group, as an installed package does."""
    module, entries = ModuleType("lying_package"), []
    monkeypatch.setitem(sys.modules, "lying_package", module)
    monkeypatch.setattr(plugins, "entry_points", lambda **wanted: EntryPoints(entries).select(**wanted))

    def offer(group: str, name: str, value: Any) -> None:
        setattr(module, name, value)
        entries.append(EntryPoint(name, f"lying_package:{name}", group))

    return offer


def test_a_step_of_another_package() -> None:
    """It is proven, shown, kept as JSON, made again from it, and runs."""
    from poly_extras.step import Unwind

    register_step(Unwind)
    nest = product.with_sizes({"M": 7, "N": 5, "K": 4})
    made = poly.schedule(nest).unwind("i", extent=7).interchange("j", "k")
    assert "(13 - i) // 2" in str(made)
    assert repr(made) == "schedule(product).unwind('i', extent=7).interchange('j', 'k')"
    assert Schedule.from_json(nest, made.to_json()) == made
    assert str(Schedule.from_json(nest, made.to_json())) == str(made)
    assert eval(repr(made), {"schedule": poly.schedule, "product": nest}) == made
    kernel = poly.compile(nest, schedule=made, threads=1, records=False)
    a, b, c = (np.random.default_rng(0).random(shape, np.float32) for shape in ((7, 4), (4, 5), (7, 5)))
    expected = c + a @ b
    kernel(a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5)


def test_a_step_of_another_package_is_refused_with_a_witness() -> None:
    from poly_extras.step import Unwind

    register_step(Unwind)
    with pytest.raises(poly.ScheduleError, match=r"unwind\(i, extent=8\) is illegal: S0\[\d\] must run before S0\["):
        poly.schedule(running.with_sizes({"N": 8})).unwind("i", extent=8)
    with pytest.raises(poly.ScheduleError, match="there is no loop q"):
        poly.schedule(running).unwind("q", extent=8)
    with pytest.raises(poly.ScheduleError, match="must be a name"):
        poly.schedule(running).apply(Unwind(3, 8))
    with pytest.raises(AttributeError, match="no step or attribute 'unwinds'"):
        _ = poly.schedule(running).unwinds
    with pytest.raises(poly.ScheduleError, match="does not fit"):
        Schedule.from_json(running, '[{"step": "unwind", "args": [], "kwargs": {"by": 3}}]')


@dataclass(frozen=True)
class Lies:
    """A step whose result is what `kind` says; it claims to reorder nothing."""

    kind: str
    name: ClassVar[str] = "lies"
    reorders: ClassVar[bool] = False

    def apply(self, nest: poly.Nest, tree: Any) -> Any:
        band = find_loop(tree, "i")
        match self.kind:
            case "fails":
                raise KeyError("lost")
            case "text":
                return "for i in range(3)"
            case "less":
                return Leaf("S9")
            case "part":
                half = isl.Set("[N] -> { S0[i] : i < 3 }")
                return edit(tree, band, map_functions(band, lambda _, value: value.intersect_domain(half)))
        return edit(tree, band, map_functions(band, lambda _, value: value.neg()))

    def arguments(self) -> tuple[tuple[object, ...], dict[str, object]]:
        return (), {} if self.kind == "json" else {"kind": self.kind}


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("fails", poly.PluginError, r"the step lies \(test_extending.Lies\) failed: KeyError: 'lost'"),
        ("text", poly.PluginError, "made no loops of running: it returned 'for i in range"),
        ("less", poly.PluginError, "made no loops of running: it holds the statements S9, not S0"),
        ("part", poly.PluginError, "the loop i has no value for some instances of S0"),
        ("json", poly.PluginError, "has no JSON text: TypeError"),
        ("order", poly.ScheduleError, r"lies\(kind=order\) is illegal: S0\[1\] must run before S0\[2\]"),
    ],
)
def test_a_step_that_lies_is_found_out(kind: str, error: type[Exception], message: str) -> None:
    register_step(Lies)
    with pytest.raises(error, match=message):
        poly.schedule(running).apply(Lies(kind))


def test_what_is_no_step() -> None:
    @dataclass(frozen=True)
    class Tile(Lies):
        name: ClassVar[str] = "tile"

    @dataclass(frozen=True)
    class Real(Lies):
        name: ClassVar[str] = "real"
        factor: float = 0.5

    class Plain:
        name = "plain"

    for kind, message in ((Tile, "cannot be called tile"), (Real, "factor must be str"), (Plain, "is no step")):
        with pytest.raises(poly.ScheduleError, match=message):
            register_step(kind)
    with pytest.raises(poly.ScheduleError, match="is no step"):
        poly.schedule(running).apply(Lies("order"))
    names = {name for name in (*dir(Schedule), *Schedule.__dataclass_fields__) if not name.startswith("_")}
    assert names <= STEPS | set(steps.OF_SCHEDULE)


def test_a_rule_of_another_package() -> None:
    """Its points are in the space, each legal; where it does not apply there are none."""
    from poly_extras.rule import BACKWARDS

    register_rule(BACKWARDS)
    space = derive(scaled.with_sizes({"N": 100}), HERE)
    own = [one for one in space.structures if ("rule", "backwards") in one.traits]
    assert [knob.values for one in own for knob in one.knobs] == [(8, 32, 128)]
    assert "for i_tile in range(-12, 1)" in str(own[0].schedule({"block": 8}))
    assert own[0].predict({"block": 8}).seconds > 0
    assert not any("rule" in dict(one.traits) for one in derive(running.with_sizes({"N": 100}), HERE).structures)


def test_a_rule_that_lies_is_found_out() -> None:
    class Rule:
        name = "lying"

        def __init__(self, made: Any) -> None:
            self.made = made

        def forms(self, nest: poly.Nest, target: Any) -> Any:
            return self.made(nest)

    def illegal(nest: poly.Nest) -> Any:
        plain = poly.schedule(nest)
        wrong = Schedule(nest, poly.schedule(scaled).reverse("i").steps, plain.tree)
        return [Form.fixed((), wrong)]

    for made, message in (
        (lambda nest: 1 // 0, "the rule lying of the space failed: ZeroDivisionError"),
        (lambda nest: ["form"], "made 'form', which is no form"),
        (lambda nest: [Form.fixed((), "schedule")], "made 'schedule', which is no schedule"),
        (illegal, r"made a form that is not legal at its usual sizes: reverse\(i\) is illegal"),
    ):
        register_rule(Rule(made))
        with pytest.raises(poly.PluginError, match=message):
            derive(running.with_sizes({"N": 50}), HERE)
    with pytest.raises(poly.ScheduleError, match="is no rule"):
        register_rule("rule")


def test_an_instruction_set_of_another_package() -> None:
    """poly's microkernels, and one of the package, compute in its vectors."""
    from poly_extras.isa import SSE4

    need_isa(SSE4)
    register_isa(SSE4)
    from poly_extras.microkernel import outer

    rng = np.random.default_rng(0)
    a, b = rng.random((21, 17), np.float32), rng.random((17, 19), np.float32)
    tiled = poly.schedule(product).tile(i=4, j=4).microkernel(outer.name)
    for schedule in (None, tiled):
        kernel = poly.compile(product, schedule=schedule, target="c:sse4", threads=1, records=False, M=21, N=19, K=17)
        c = np.ones((21, 19), np.float32)
        kernel(a, b, c)
        np.testing.assert_allclose(c, 1 + a @ b, rtol=1e-5)
        assert "_mm_loadu_ps" in kernel.source
    assert "gemm_sse4_" in repr(poly.compile(product, target="c:sse4", threads=1, records=False).schedule)
    with pytest.raises(poly.TargetError, match="only for poly's own instruction sets, and sse4 is none"):
        poly.compile(scaled, N=4, records=False, threads=1).write_header("x.h", isas=["sse4"])


def test_what_is_no_instruction_set() -> None:
    for wrong, message in (
        (ISA("avx2", 32, 16, ()), "cannot be called avx2"),
        (ISA("Wide", 32, 16, ()), "cannot be called Wide"),
        (ISA("wide", 24, 16, (), layer="x", tiles=((1, 1),)), "vectors of 24 bytes"),
        (ISA("wide", 32, 16, ()), "needs a layer"),
        (ISA("wide", 32, 16, (), layer="x", tiles=((8, 2),)), "a tile \\(8, 2\\) that its 16 registers"),
        (3, "3 is no instruction set"),
    ):
        with pytest.raises(poly.TargetError, match=message):
            register_isa(wrong)
    assert PORTABLE.layer == ""


def test_a_target_of_another_package() -> None:
    """Its flags are the compiler's last ones, and those of a call replace them."""
    from poly_extras.target import SIZE

    register_target(SIZE)
    x, y = np.arange(5.0), np.zeros(5)
    kernel = poly.compile(scaled, N=5, target="size", threads=1, records=False)
    kernel(x, y)
    assert list(y) == [0, 2, 4, 6, 8]
    assert (kernel.isa, kernel.toolchain.flags) == (PORTABLE, ("-Os", "-fno-unroll-loops"))
    other = poly.compile(scaled, N=5, target="size", flags=["-O1"], threads=1, records=False)
    assert other.toolchain.flags == ("-O1",)
    assert other._library.path != kernel._library.path
    for wrong, error in (
        (OwnTarget("c"), poly.TargetError),
        (OwnTarget("a b"), poly.TargetError),
        (5, poly.TargetError),
    ):
        with pytest.raises(error):
            register_target(wrong)
    with pytest.raises(poly.TargetError, match="unknown target 'c:none'"):
        register_target(OwnTarget("mine", isa="c:none"))
    with pytest.raises(poly.ArgumentError, match="'O1' is no flag"):
        register_target(OwnTarget("mine", flags=["O1"]))


def test_the_example_package_is_found_when_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the entry points in its project file: step, instruction set, target, strategy, rule, peer and command."""
    project = tomllib.loads((EXAMPLE.parent / "pyproject.toml").read_text())["project"]
    info = tmp_path / "poly_extras-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    text = "".join(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in found.items()) for group, found in groups)
    (info / "entry_points.txt").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "nests.py").write_text(
        "import poly\nN = poly.sizes('N')\n\n@poly.nest\ndef doubled(x: poly.f32[N]):\n"
        "    for i in range(N):\n        x[i] = 2 * x[i]\n"
    )
    known = running.with_sizes({"N": 6})
    with pytest.raises(poly.ScheduleError, match=r"unwind\(i, extent=6\) is illegal"):
        Schedule.from_json(known, '[{"step": "unwind", "args": ["i"], "kwargs": {"extent": 6}}]')
    assert [dict(one.traits).get("rule") for one in derive(scaled.with_sizes({"N": 9}), HERE).structures][
        -1
    ] == "backwards"
    assert strategy("downhill").__module__ == "poly_extras.strategy"
    assert poly.compile(scaled, N=5, target="size", threads=1, records=False).toolchain.flags[0] == "-Os"
    if host_machine() == "x86_64":
        assert poly.schedule(product).tile(i=4, j=4).microkernel("outer_sse4_4x4").steps
    arrays = tuple(np.random.default_rng(0).random((5, 5), np.float32) for _ in range(3))
    expected = arrays[2] + arrays[0] @ arrays[1]
    contender = PEERS["tensordot"].prepare(Matmul(5, 5, 5), arrays, 1)
    assert contender is not None and contender.run(1) > 0
    np.testing.assert_allclose(contender.result(), expected, rtol=1e-5)
    assert PEERS["tensordot"].prepare(Matmul(5, 5, 5), arrays, 2) is None
    assert "tensordot" in PEERS and "numpy" in PEERS and "else" not in PEERS
    listed = CliRunner().invoke(commands.poly, ["--help"])
    assert "Count the schedules that a search chooses from." in listed.output
    monkeypatch.setattr("poly.space", lambda nest, sizes: derive(nest.with_sizes(sizes), HERE))
    done = CliRunner().invoke(commands.poly, ["count", str(tmp_path / "nests.py:doubled"), "--size", "N=9"])
    assert done.output == "4\n", done.output


def test_a_peer_or_a_command_that_fails_is_named(offered: Any) -> None:
    """It does not end the others."""

    class Peer:
        name = "peer"

        def prepare(self, *_: Any) -> Any:
            raise KeyError("lost")

    class Other(Peer):
        name = "other"

        def prepare(self, *_: Any) -> Any:
            return "ready"

    offered("poly.peers", "peer", Peer())
    offered("poly.peers", "other", Other())
    offered("poly.peers", "wrong", Peer())
    offered("poly.commands", "broken", "no command")
    with pytest.raises(Failed, match="the peer peer failed: KeyError: 'lost'"):
        PEERS["peer"].prepare(Matmul(5, 5, 5), (), 1)
    with pytest.raises(Failed, match="the peer other prepared 'ready', which is no contender"):
        PEERS["other"].prepare(Matmul(5, 5, 5), (), 1)
    with pytest.raises(poly.PluginError, match=r"wrong of the group poly\.peers, lying_package:wrong, is no peer"):
        _ = PEERS["wrong"]
    listed = CliRunner().invoke(commands.poly, ["--help"])
    assert listed.exit_code == 0 and "(cannot be loaded)" in listed.output and "machine" in listed.output
    done = CliRunner().invoke(commands.poly, ["broken", "--any", "thing"])
    assert done.exit_code == 2 and "lying_package:broken, is no command" in done.output


def test_what_packages_offer_is_looked_at(offered: Any) -> None:
    """An error names the entry point, and what is wrong with it."""
    offered("poly.steps", "lies", Lies)
    assert Schedule.from_json(scaled, '[{"step": "lies", "args": [], "kwargs": {"kind": "order"}}]').steps
    for group, ask in (
        ("poly.steps", lambda: poly.schedule(running).bad),
        ("poly.isas", lambda: poly.compile(running, target="c:bad")),
        ("poly.targets", lambda: poly.compile(running, target="bad")),
        ("poly.strategies", lambda: strategy("bad")),
        ("poly.microkernels", lambda: poly.schedule(product).microkernel("bad")),
        ("poly.rules", lambda: derive(running, HERE)),
    ):
        offered(group, "bad", "what it is not")
        with pytest.raises(poly.PluginError, match=rf"the entry point bad of the group {group}, lying_package:bad,"):
            ask()


def test_a_package_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "broken_package.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("near", "broken_package:near", "poly.strategies")
    monkeypatch.setattr(plugins, "entry_points", lambda **wanted: EntryPoints([entry]).select(**wanted))
    with pytest.raises(poly.PluginError, match=r"broken_package:near, cannot be loaded: ModuleNotFoundError"):
        strategy("near")
