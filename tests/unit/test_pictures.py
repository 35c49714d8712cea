"""Pictures of iterations: small instances show blocks and remainders, orders are those of the printed loops."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import click
import pytest
from shared_nests import matmul

import poly
from poly import f64
from poly.commands import poly as command
from poly.commands.outputs import check_plot
from poly.pictures.canvas import figure
from poly.pictures.files import save
from poly.pictures.flow import dependence_picture, notes
from poly.pictures.instance import MOST, SmallInstance, small
from poly.pictures.lattice import Lattice, LatticePanel, Place, drawn, with_notes
from poly.pictures.order import legend, order
from poly.pictures.projection import checked_loops, choices
from poly.pictures.scene import Scene, Text
from poly.pictures.style import PALETTE, light, with_variables
from poly.pictures.svg import svg
from poly.pictures.visits import blocks, pairs, visits

N, T = poly.sizes("N T")


@poly.nest
def solve(L: f64[N, N], b: f64[N], x: f64[N]):
    for i in range(N):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]


@poly.nest
def sweep(A: f64[N, N]):
    for t in range(T):  # noqa: B007
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = A[i - 1, j] + A[i, j - 1] + A[i, j]


@poly.nest
def chain(A: f64[N], X: f64[N], Y: f64[N]):
    for i in range(N):
        X[i] = 2.0 * A[i]
    for j in range(N):
        Y[j] = X[j] + 1.0


@poly.nest
def fixed(A: f64[100, 200], B: f64[100, 200]):
    for i in range(100):
        for j in range(i, 200):
            B[i, j] = A[i, j]


@poly.nest
def never(A: f64[N]):
    for i in range(N):
        for j in range(3, 2):  # noqa: B007
            A[i] = 1.0


def made(schedule: poly.Schedule, opened: poly.Nest) -> SmallInstance:
    found = small(opened, schedule.steps)
    assert found is not None
    return found


CASES = {
    "tiles": (poly.schedule(matmul).tile(i=96, j=64).tile(j=16).order("j_tile i_tile j_tile2 k i j"), matmul),
    "skewed": (poly.schedule(sweep).skew("j", by="i").split(i=8).order("t i_tile j i"), sweep),
    "fused": (poly.schedule(chain).fuse("S0", "S1", at="i"), chain),
    "triangle": (poly.schedule(solve), solve),
    "window": (poly.schedule(fixed).tile(i=32, j=32), fixed),
}


class Recorder:
    """Stands for an array: notes the element that is written."""

    def __init__(self, name: str, written: list[tuple[str, Any]]) -> None:
        self.name, self.written = name, written

    def __getitem__(self, index: Any) -> float:
        return 1.0

    def __setitem__(self, index: Any, value: float) -> None:
        self.written.append((self.name, index))


@pytest.mark.parametrize("name", CASES)
def test_the_order_is_that_of_the_printed_loops(name: str) -> None:
    instance = made(*CASES[name])
    nest = instance.schedule.nest
    written: list[tuple[str, Any]] = []
    exec(str(instance.schedule), {array.name: Recorder(array.name, written) for array in nest.arrays})
    found = []
    for visit in visits(instance.schedule):
        statement = nest.statement(visit.statement)
        values = dict(zip(statement.iterators, visit.point, strict=True))
        index = tuple(place.evaluate(values) for place in statement.target.indices)
        found.append((statement.target.array, index if len(index) > 1 else index[0]))
    assert found == written and 0 < len(found) <= MOST


def test_blocks_and_remainders_are_seen() -> None:
    """Every loop over blocks has at least two full blocks and a part of one."""
    instance = made(*CASES["tiles"])
    assert dict(instance.schedule.nest.fixed) == {"M": 5, "N": 7, "K": 4}
    assert blocks(instance.schedule) == {"S0": (3, 1)}
    columns = [{visit.point[1] for visit in visits(instance.schedule) if visit.value("j_tile") == n} for n in (0, 1)]
    assert columns == [{0, 1, 2, 3}, {4, 5, 6}]
    kinds = {frame.kind: len(frame.places) for frame in order(instance).frames}
    assert kinds.keys() == {"tile", "block"}
    assert {len(frame.places) for frame in order(instance).frames if frame.kind == "tile"} == {4, 2, 1}
    assert "split" not in instance.sizes and "tile(i=2, j=4), tile(j=2)" in instance.text


def test_steps_without_an_order_are_named_and_left_out() -> None:
    kernel = poly.schedule(matmul).split(i=6).split(j=64).order("i_tile j_tile i k j").vectorize("j").parallel("i_tile")
    instance = made(kernel, matmul)
    assert instance.left_out == ("vectorize('j')",)
    assert [step.name for step in instance.schedule.steps] == ["split", "split", "order", "parallel"]


def test_constant_bounds_give_a_window_and_a_nest_that_never_runs_nothing() -> None:
    instance = made(*CASES["window"])
    assert instance.window and instance.text.startswith("the first iterations of each loop")
    assert small(never, ()) is None


def test_dependences_are_those_of_the_instance() -> None:
    instance = made(poly.schedule(chain), chain)
    assert {(p.source, p.sink, p.kind) for p in pairs(instance.nest)} == {
        (("S0", (i,)), ("S1", (i,)), "flow") for i in range(10)
    }
    picture = dependence_picture(instance)
    assert len(picture.lattice.arrows) == 10 and picture.only == "" and list(picture.legend) == ["flow"]
    assert picture.lattice.panels[0].rows == ("S0", "S1"), "statements of one loop are rows of one panel"


def test_the_default_axes_show_the_most() -> None:
    reduction = dependence_picture(made(poly.schedule(matmul), matmul))
    assert reduction.lattice.panels[0].across == "k" and list(reduction.legend) == ["reduction"]
    time = dependence_picture(made(poly.schedule(sweep), sweep))
    assert time.lattice.panels[0].down == "t", "along i and j, arrows of different times would be opposite"
    assert order(made(*CASES["tiles"])).panels[0].down == "i" and order(made(*CASES["tiles"])).panels[0].across == "j"
    asked = order(made(*CASES["tiles"]), ("i", "k"))
    assert (asked.panels[0].down, asked.panels[0].across) == ("i", "k")


def test_too_many_dependences_are_those_of_one_place() -> None:
    picture = dependence_picture(made(poly.schedule(sweep), sweep))
    places = [{arrow.source, arrow.sink} for arrow in picture.lattice.arrows]
    assert len(set.intersection(*places)) == 1
    assert any("too many to draw" in note and picture.only in note for note in notes(picture))


def test_pairs_of_loops_to_choose_from() -> None:
    assert choices(matmul) == (("i", "j"), ("i", "k"), ("j", "k")) and choices(solve) == ()
    assert checked_loops(matmul, " i, k") == ("i", "k") and checked_loops(matmul, None) == ()
    for wrong in ("i,x", "i,j,k", "i,i", "", "<b>"):
        with pytest.raises(poly.ArgumentError, match=r"are not two loops of matmul, as in i,j\. Its loops: i, j, k\."):
            checked_loops(matmul, wrong)


@pytest.mark.parametrize("name", CASES)
def test_pictures_are_whole_and_equal_in_each_format(name: str, tmp_path: Path) -> None:
    lattice = order(made(*CASES[name]))
    scene = with_notes(drawn(lattice), "title", ["a note " * 30], legend(lattice))
    root = ElementTree.fromstring(svg(scene))
    circles = root.findall("{*}circle")
    assert len(circles) == len(set(lattice.order))
    turns = sorted(int(turn) for circle in circles for turn in circle.attrib["data-turns"].split())
    assert turns == list(range(len(lattice.order)))
    assert all(0 < float(c.attrib["cx"]) < scene.width and 0 < float(c.attrib["cy"]) < scene.height for c in circles)
    assert drawn(lattice).width <= 372, "a phone shows it without making it smaller"
    painted = figure(scene)
    assert len(painted.axes[0].texts) >= len(root.findall("{*}text"))
    save(scene, tmp_path / "order.png", dpi=40)
    assert (tmp_path / "order.png").read_bytes().startswith(b"\x89PNG")


def test_texts_are_escaped() -> None:
    text = svg(Scene(10, 10, (Text(0, 0, '<b>&"x', "title"),), label='"<&'))
    assert "<b>" not in text and ElementTree.fromstring(text).attrib["aria-label"] == '"<&'


def test_a_dot_stands_for_all_its_turns() -> None:
    panel, one, other = LatticePanel("p", "i", "j"), Place(0, 0, 0), Place(0, 0, 1)
    circles = ElementTree.fromstring(svg(drawn(Lattice((panel,), (one, other, one))))).findall("{*}circle")
    assert [circle.attrib["data-turns"] for circle in circles] == ["0 2", "1"]


def test_colours_are_told_apart_by_their_light_value() -> None:
    values = [colour.light for colour in PALETTE.values()]
    assert len(set(values)) == len(values)
    text = "".join(f'fill="{value}"' for value in values)
    assert "#" not in with_variables(text) and "#123456" in with_variables("#123456")
    assert with_variables(light("red")) == "var(--red)"


def test_a_plot_that_cannot_be_written_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_plot("--plot", tmp_path / "x.pdf")
    for path, words in (("x.gif", "must end in .png, .svg, .pdf"), ("no/x.png", "there is no such folder")):
        with pytest.raises(click.UsageError, match=words):
            check_plot("--plot", tmp_path / path)
    monkeypatch.setattr("poly.pictures.files.find_spec", lambda name: None)
    with pytest.raises(poly.ArgumentError, match="--plot needs the package matplotlib: pip install 'poly-loops"):
        check_plot("--plot", tmp_path / "x.png")


def test_the_command_draws_what_it_shows(tmp_path: Path) -> None:
    from click.testing import CliRunner

    (tmp_path / "loops.py").write_text(
        "import poly\nfrom poly import f64\nN = poly.sizes('N')\n\n@poly.nest\ndef twice(A: f64[N], B: f64[N]):\n"
        "    for i in range(N):\n        B[i] = 2 * A[i]\n"
    )
    nest = f"{tmp_path}/loops.py:twice"

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(command, ["show", nest, "--threads", "1", *arguments])

    for part in ("dependences", "schedule"):
        picture = tmp_path / f"{part}.svg"
        done = run(f"--{part}", "--plot", str(picture))
        assert done.exit_code == 0, done.output
        assert "twice" in picture.read_text() and ElementTree.fromstring(picture.read_text()) is not None
    for arguments, words in (
        (("--plot", "x.svg"), "--plot goes with one of --dependences, --schedule, --model"),
        (("--schedule", "--plot", "x.gif"), "the name must end in"),
        (("--schedule", "--plot", str(tmp_path / "x.svg"), "--loops", "i,q"), "are not two loops of twice"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2 or isinstance(done.exception, poly.ArgumentError)
        assert words in done.output + str(done.exception)
