"""The style of all commands: help texts in whole words and sentences, and messages on stderr that begin alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

SPACE, HYPHEN = "\N{NO-BREAK SPACE}", "\N{NON-BREAKING HYPHEN}"
"""They stand for a space and a hyphen at which no line may end, until the text is written."""


def styled(command: click.Command) -> click.Command:
    """The command with this style, and all commands below it; a command that has the style is left unchanged."""
    if command.context_class is not Context:
        command.context_class = Context
        if command.short_help is None:
            command.short_help = first_sentence(command.help or "")
        for below in command.commands.values() if isinstance(command, click.Group) else ():
            styled(below)
    return command


def first_sentence(text: str) -> str:
    """The first sentence of a help text, in one line."""
    words = text.partition("\n\n")[0].split()
    ends = (number for number, word in enumerate(words, 1) if word.endswith("."))
    return " ".join(words[: next(ends, None)])


def warn(message: object) -> None:
    """Print a warning on stderr."""
    click.echo(f"Warning: {message}", err=True)


class Formatter(click.HelpFormatter):
    """A formatter that ends no line at a hyphen or within `[default: …]`: an option's name stays on one line."""

    def write(self, string: str) -> None:
        super().write(string.replace(SPACE, " ").replace(HYPHEN, "-"))

    def write_text(self, text: str) -> None:
        super().write_text(_kept(text))

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, _kept(args), prefix)

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(term, _kept(text)) for term, text in rows], col_max, col_spacing)


def _kept(text: str) -> str:
    """The text with the hyphens and spaces at which no line may end."""
    return text.replace("-", HYPHEN).replace("[default: ", f"[default:{SPACE}")


class Context(click.Context):
    """A context whose help is written in this style."""

    formatter_class: Any = Formatter
