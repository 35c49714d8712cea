"""`poly build`: write nests as a Python package that needs neither poly nor a compiler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from codegen.ir.program import Threading
from poly.commands.header import cores_option, isas_option, special_option, tuned_option
from poly.commands.headerplan import HeaderPlan
from poly.commands.nestfile import open_nests
from poly.commands.options import check_open_sizes, compiler_option, flags_option, size_option
from poly.commands.outputs import folder_option
from poly.embed.build import write_package


@click.command("build")
@click.argument("nests", metavar="FILE[:NAME]")
@folder_option
@size_option
@special_option
@tuned_option
@isas_option
@click.option(
    "--threads",
    type=click.Choice(["openmp", "pthreads", "none"]),
    default="pthreads",
    show_default=True,
    help="How parallel loops run; openmp needs its library wherever the package is used.",
)
@cores_option
@click.option("--name", help="The package's name (the nest's, or the file's if there are several nests).")
@click.option("--version", default="1.0", show_default=True, help="The package's version.")
@click.option("--dense", is_flag=True, help="Arrays have no gaps between rows.")
@compiler_option
@flags_option
def command(
    nests: str,
    output: Path,
    sizes: dict[str, int],
    special: list[dict[str, int]],
    tuned: bool,
    isas: Sequence[str] | None,
    threads: Threading,
    cores: int | None,
    name: str | None,
    version: str,
    dense: bool,
    compiler: str | None,
    flags: tuple[str, ...],
) -> None:
    """Compile a nest, or all nests in a file, to a Python package and its wheel.

    Its functions need NumPy alone, and run the best kernel for the CPU that they find.

    \b
    poly build gemm.py -o package    package/gemm/, and package/gemm-1.0-….whl
    pip install package/gemm-1.0-….whl
    python -c 'import gemm; help(gemm)'
    """
    opened = open_nests(nests)
    for given in (sizes, *special):
        check_open_sizes(nests, opened.nests, given)
    wanted = name or (opened.nests[0].name if len(opened.nests) == 1 else opened.sources[0].stem)
    plan = HeaderPlan(wanted, opened.nests, sizes, None, special, tuned, isas, threads, cores, None, dense)
    kernels = [kernel for nest in opened.nests for kernel in plan.kernels(nest)]
    made = write_package(
        output,
        kernels,
        name=wanted,
        version=version,
        isas=isas,
        threads=threads,
        dense=dense,
        compiler=compiler,
        flags=flags,
    )
    click.echo(made)
