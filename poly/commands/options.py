"""The arguments and options that several commands share."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from codegen.errors import ArgumentError
from codegen.toolchain.compiler import Toolchain, toolchain
from microkernels.errors import shown
from poly.errors import SpecError
from poly.ir.nest import Nest
from poly.schedules.schedule import Schedule

STDIN = "-"
Command = TypeVar("Command", bound=Callable[..., Any])


def parse_sizes(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, int]:
    """The sizes and their values in each `M=512`."""
    sizes = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name.isidentifier() or not re.fullmatch("[0-9]{1,20}", value):
            raise click.BadParameter(f"{shown(text)} is not of the form M=512", context, option)
        sizes[name] = int(value)
    return sizes


@dataclass(frozen=True)
class GivenSteps:
    """The steps of a schedule, as the JSON that Schedule.from_json reads, and the sizes that were fixed for them."""

    text: str
    sizes: dict[str, int] = field(default_factory=dict)

    def schedule(self, nest: Nest) -> Schedule:
        """The schedule of a nest with these steps. Raises ScheduleError if there is none, or it is illegal."""
        return Schedule.from_json(nest, self.text)


def parse_steps(context: click.Context, option: click.Parameter, text: str | None) -> GivenSteps | None:
    """The steps in a JSON text, in a file, or on standard input: a list, or within what another command printed."""
    if text is None:
        return None
    try:
        found = _steps(json.loads(_content(text)))
    except (OSError, ValueError, RecursionError) as error:
        problem = error.strerror if isinstance(error, OSError) else f"this is neither JSON nor a file of it ({error})"
        raise click.BadParameter(f"{shown(text)}: {problem}", context, option) from error
    if found is None:
        raise click.BadParameter(
            f"{shown(text)} has no steps, or several schedules: give the steps that Schedule.to_json writes, or the "
            "object of poly tune --json, poly show --model --json or poly records show --json",
            context,
            option,
        )
    return found


def _content(text: str) -> str:
    """The JSON text that the option stands for."""
    if text == STDIN:
        return sys.stdin.read()
    if text.lstrip()[:1] in ("[", "{"):
        return text
    path = Path(text)
    if not (path.is_file() or path.is_fifo()):  # a device may have no end
        raise ValueError("no such file")
    return path.read_text()


def _steps(value: Any) -> GivenSteps | None:
    """The steps in a value: themselves, those of an object's `steps` or `schedule`, or of the one object in a list."""
    if isinstance(value, list):
        records = [one for one in value if isinstance(one, dict) and "step" not in one]
        if records:
            return _steps(records[0]) if len(value) == 1 else None
        return GivenSteps(json.dumps(value))
    if not isinstance(value, dict):
        return None
    steps = value.get("steps", value.get("schedule"))
    steps = json.loads(steps) if isinstance(steps, str) else steps
    return GivenSteps(json.dumps(steps), _fixed_sizes(value)) if isinstance(steps, list) else None


def _fixed_sizes(value: dict[str, Any]) -> dict[str, int]:
    """The sizes in such an object; those of a record belong to its key."""
    key = value.get("key")
    sizes = value.get("sizes", key.get("sizes") if isinstance(key, dict) else None)
    pairs = sizes.items() if isinstance(sizes, dict) else ()
    return {name: size for name, size in pairs if type(size) is int and size >= 0}


def steps_option(name: str, help: str) -> Callable[[Command], Command]:
    """An option that takes the steps of a schedule, as a value of GivenSteps."""
    return click.option(name, metavar="JSON|FILE", callback=parse_steps, help=help)


STEPS = "The steps of its schedule: the JSON of Schedule.to_json, poly tune or poly records, a file of it, or -."


def nest_at(nest: Nest, sizes: Mapping[str, int], steps: GivenSteps | None) -> Nest:
    """The nest at those of the user's sizes that it has, and at those of the steps that are then still open."""
    for known in (sizes, steps.sizes if steps else {}):
        nest = nest.with_sizes({name: value for name, value in known.items() if name in nest.sizes})
    return nest


def check_one_nest(where: str, nests: Sequence[Nest], steps: GivenSteps | None) -> None:
    """Check that steps are given for one nest. Raises SpecError."""
    if steps is not None and len(nests) > 1:
        names = ", ".join(nest.name for nest in nests)
        raise SpecError(
            f"{where} has several nests ({names}), and --steps is for one: name it, {where}:{nests[0].name}"
        )


def check_open_sizes(where: str, nests: Sequence[Nest], sizes: dict[str, int]) -> None:
    """Check that each size belongs to a nest. Raises SpecError."""
    known = {size for nest in nests for size in nest.sizes}
    unknown = sorted(sizes.keys() - known)
    if unknown:
        open_sizes = ", ".join(sorted(known)) or "none"
        raise SpecError(f"{where}: there is no size {unknown[0]} that is still open; open sizes: {open_sizes}")


nest_argument = click.argument("nest", metavar="FILE:NAME")
size_option = click.option(
    "--size", "sizes", multiple=True, metavar="M=512", callback=parse_sizes, help="Fix a size; may be repeated."
)
target_option = click.option(
    "--target", default="c", show_default=True, help="C, or an OpenCL device, as for poly.compile."
)
threads_option = click.option("--threads", type=click.IntRange(min=1), help="Threads of a call.")
compiler_option = click.option("--compiler", metavar="COMMAND", help="The C compiler, as clang-19.")
flags_option = click.option(
    "--flag", "flags", multiple=True, metavar="FLAG", help="A flag for the C compiler, as --flag=-O2; may be repeated."
)


def chosen_toolchain(compiler: str | None, flags: tuple[str, ...]) -> Toolchain:
    """The toolchain of these options. Raises click's UsageError."""
    try:
        return toolchain(compiler, flags)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from error
