"""The arguments and options that several commands share."""

from __future__ import annotations

import re

import click

from codegen.compiler import Toolchain, toolchain
from codegen.errors import ArgumentError
from microkernels.errors import shown


def parse_sizes(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, int]:
    """The sizes and their values in each `M=512`."""
    sizes = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name.isidentifier() or not re.fullmatch("[0-9]{1,20}", value):
            raise click.BadParameter(f"{shown(text)} is not of the form M=512", context, option)
        sizes[name] = int(value)
    return sizes


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
