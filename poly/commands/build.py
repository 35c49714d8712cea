"""`poly build`: write nests as a Python package that needs neither poly nor a compiler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from codegen.program import Threading
from microkernels.isa import ISAS
from poly.commands.header import kernels_of, parse_isas, parse_special
from poly.commands.nestfile import open_nests
from poly.commands.options import check_open_sizes, compiler_option, flags_option, size_option
from poly.embed.build import write_package
from poly.machine.target import checked_threads


@click.command("build")
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
    "--special",
    multiple=True,
    metavar="M=512,N=512,…",
    callback=parse_special,
    help="Sizes with a specialised kernel, in a function that serves any size; may be repeated.",
)
@click.option("--tuned", is_flag=True, help="A specialised kernel for each size that was tuned on this machine.")
@click.option(
    "--isa", "isas", callback=parse_isas, metavar="NAME,…", help=f"Instruction sets, of {', '.join(ISAS)} (all)."
)
@click.option(
    "--threads",
    type=click.Choice(["openmp", "pthreads", "none"]),
    default="pthreads",
    show_default=True,
    help="How parallel loops run; openmp needs its library wherever the package is used.",
)
@click.option("--cores", type=click.IntRange(min=1), help="Threads that the schedules assume (this machine's).")
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
    poly build gemm.py -o package             package/gemm/, and package/gemm-1.0-….whl
    pip install package/gemm-1.0-….whl
    python -c 'import gemm; help(gemm)'
    """
    opened = open_nests(nests)
    for given in (sizes, *special):
        check_open_sizes(nests, opened.nests, given)
    count = 1 if threads == "none" else checked_threads(cores)
    kernels = [kernel for nest in opened.nests for kernel in kernels_of(nest, sizes, None, special, tuned, count)]
    wanted = name or (opened.nests[0].name if len(opened.nests) == 1 else opened.sources[0].stem)
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
