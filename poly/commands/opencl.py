"""`poly opencl`: write nests as OpenCL kernels with a C host program."""

from __future__ import annotations

from pathlib import Path

import click

from poly.commands.nestfile import open_nests
from poly.commands.options import size_option
from poly.compilation import compile_nest
from poly.embed.opencl import write_opencl
from poly.errors import SpecError
from poly.ir.nest import Nest
from poly.opencl_kernel import OpenCLKernel


def parse_target(context: click.Context, option: click.Parameter, text: str) -> str:
    """The target, which must be an OpenCL device."""
    if text.partition(":")[0] != "opencl":
        raise click.BadParameter(f"{text!r} is no OpenCL device: expected opencl, opencl:cpu, …", context, option)
    return text


@click.command("opencl")
@click.argument("nests", metavar="FILE[:NAME]")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory to write into; it is created if it does not exist.",
)
@size_option
@click.option(
    "--target",
    default="opencl",
    show_default=True,
    callback=parse_target,
    help="The device to compile for, as for poly.compile: opencl:cpu, opencl:gpu, opencl:NAME.",
)
def command(nests: str, output: Path, sizes: dict[str, int], target: str) -> None:
    """Write a nest, or all nests in a file, as OpenCL kernels with a C library and a program that checks them.

    \b
    poly opencl gemm.py:matmul -o out                    writes out/matmul.cl, .h, .c and matmul_check.c
    cd out && cc -O2 matmul.c matmul_check.c -o matmul_check -lOpenCL -lm && ./matmul_check
    """
    opened = open_nests(nests)
    known = {size for nest in opened.nests for size in nest.sizes}
    unknown = sorted(sizes.keys() - known)
    if unknown:
        open_sizes = ", ".join(sorted(known)) or "none"
        raise SpecError(f"{nests}: there is no size {unknown[0]} that is still open; open sizes: {open_sizes}")
    for nest in opened.nests:
        kernel = _compiled(nest, {name: value for name, value in sizes.items() if name in nest.sizes}, target)
        write_opencl(output, kernel)


def _compiled(nest: Nest, sizes: dict[str, int], target: str) -> OpenCLKernel:
    kernel = compile_nest(nest, sizes=sizes, target=target)
    assert isinstance(kernel, OpenCLKernel)
    return kernel
