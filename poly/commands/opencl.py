"""`poly opencl`: write nests as OpenCL kernels with a C host program."""

from __future__ import annotations

from pathlib import Path

import click

from poly.commands.nestfile import open_nests
from poly.commands.options import (
    STEPS,
    GivenSteps,
    check_one_nest,
    check_open_sizes,
    nest_at,
    size_option,
    steps_option,
)
from poly.commands.outputs import folder_option
from poly.compilation import compile_nest
from poly.embed.opencl import write_opencl
from poly.ir.nest import Nest
from poly.opencl_kernel import OpenCLKernel
from poly.schedules.schedule import Schedule


def parse_target(context: click.Context, option: click.Parameter, text: str) -> str:
    """The target, which must be an OpenCL device."""
    if text.partition(":")[0] != "opencl":
        raise click.BadParameter(f"{text!r} is no OpenCL device: expected opencl, opencl:cpu, …", context, option)
    return text


@click.command("opencl")
@click.argument("nests", metavar="FILE[:NAME]")
@folder_option
@size_option
@steps_option("--steps", STEPS)
@click.option(
    "--target",
    default="opencl",
    show_default=True,
    callback=parse_target,
    help="The device to compile for, as for poly.compile: opencl:cpu, opencl:gpu, opencl:NAME.",
)
def command(nests: str, output: Path, sizes: dict[str, int], steps: GivenSteps | None, target: str) -> None:
    """Write a nest, or all nests in a file, as OpenCL kernels with a C library and a program that checks them.

    \b
    poly opencl gemm.py:matmul -o out
        writes out/matmul.cl, .h, .c and matmul_check.c
    cd out && cc -O2 matmul.c matmul_check.c -o check -lOpenCL -lm && ./check
        builds the check and runs it
    """
    opened = open_nests(nests)
    check_open_sizes(nests, opened.nests, sizes)
    check_one_nest(nests, opened.nests, steps)
    for nest in opened.nests:
        fixed = nest_at(nest, sizes, steps)
        write_opencl(output, _compiled(fixed, None if steps is None else steps.schedule(fixed), target))


def _compiled(nest: Nest, schedule: Schedule | None, target: str) -> OpenCLKernel:
    kernel = compile_nest(nest, schedule=schedule, target=target)
    assert isinstance(kernel, OpenCLKernel)
    return kernel
