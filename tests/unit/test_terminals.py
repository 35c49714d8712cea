"""Help texts and tables at any width: lines are not longer than the terminal, words stay whole, and nothing is cut."""

from __future__ import annotations

import io
import random
import string
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from poly import commands
from poly.commands import tables
from poly.commands.style import first_sentence

WIDTHS = (80, 120)


def every_command(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands below a group, with the words that call them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        command = command.load() if isinstance(command, commands.Deferred) else command
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))


ALL = [((), commands.poly), *every_command(commands.poly)]


def words(text: str) -> list[str]:
    return text.replace("\b", " ").split()


def is_within(part: list[str], whole: list[str]) -> bool:
    """Whether words follow each other in a text."""
    return any(whole[at : at + len(part)] == part for at in range(len(whole)))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) or "poly" for path, _ in ALL])
def test_a_help_text_is_whole(
    path: tuple[str, ...], command: click.Command, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    if path == ("fuzz",):  # its help is that of the tests' command
        return
    done = CliRunner().invoke(commands.poly, [*path, "--help"])
    assert done.exit_code == 0
    assert max(map(len, done.output.splitlines())) <= width
    shown = words(done.output)
    if path != ("bench",):  # the help of its default command
        assert is_within(words(command.help or ""), shown)
        for option in command.params:
            record = option.get_help_record(click.Context(command, info_name=path[-1] if path else "poly"))
            assert record is None or is_within(words(record[1]), shown)
        if isinstance(command, click.Group):
            below = (command.get_command(click.Context(command), name) for name in command.list_commands(done))
            assert all(is_within(words(first_sentence(one.help or "")), shown) for one in below if one)


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) or "poly" for path, _ in ALL])
def test_every_option_says_what_it_is_for(path: tuple[str, ...], command: click.Command) -> None:
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert not [option.name for option in options if not option.hidden and not option.help]


def awkward(choose: random.Random, longest: int) -> str:
    """Some words of letters, hyphens and brackets."""
    letters = string.ascii_letters + "-=.[]/µ"
    lengths = (choose.randint(1, longest) for _ in range(choose.choice((0, 1, 1, 2, 9))))
    return " ".join("".join(choose.choices(letters, k=length)) for length in lengths)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("seed", range(40))
def test_a_table_fits_the_terminal_in_whole_words(seed: int, width: int) -> None:
    choose = random.Random(seed)
    columns = choose.randint(1, 14)
    head = [f"head{n}" for n in range(columns)]
    rows = [[awkward(choose, 30) for _ in head] for _ in range(choose.randint(0, 5))]
    lines = list(tables.table_lines(head, rows, width))
    assert max(map(len, lines)) <= width
    shown = words(" ".join(lines).replace("head0,", "head0 "))
    for word in {*head, *(word for row in rows for cell in row for word in cell.split())}:
        assert word in shown or f"{word}," in shown, word


def test_elsewhere_a_row_is_one_line() -> None:
    cells = ["a name " * 20, "text " * 50]
    assert len(list(tables.table_lines(["one", "two"], [cells, cells], None))) == 3


@pytest.mark.parametrize("width", WIDTHS)
def test_facts_and_lines_are_continued_below_their_text(width: int) -> None:
    text = "a long-winded text, " * 20
    lines = list(tables.fact_lines([("label", text), ("other label", "short")], width, "  "))
    assert max(map(len, lines)) <= width
    assert words(" ".join(lines)) == ["label", *words(text), "other", "label", "short"]
    beside = len("  other label  ")
    assert lines[0][beside - 2 : beside].isspace() and lines[1][:beside].isspace() and not lines[1][beside].isspace()
    below = tables.text_lines(f"OpenCL      {text}", width)
    assert max(map(len, below)) <= width and below[1].index(below[1].strip()) == len("OpenCL      ")


@pytest.mark.parametrize("plain", [False, True])
def test_a_heading_is_bold_unless_styles_are_refused(plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal."""
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1" if plain else "")
    tables.print_table(["nest", "sizes"], [["[red]a", "M=1"], ["b", "M=2000"]])
    assert ("\x1b" in terminal.getvalue()) is not plain
    assert "[red]a" in terminal.getvalue() and "M=2000" in terminal.getvalue()
