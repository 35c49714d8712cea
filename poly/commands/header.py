"""`poly header`: write nests as a single C header."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from codegen.program import Threading
from microkernels.isa import ISAS
from poly.blas import ROUTINES, write_blas
from poly.blas.write import checked_names
from poly.commands.nestfile import NestFile, open_nests
from poly.commands.options import (
    STEPS,
    GivenSteps,
    check_one_nest,
    check_open_sizes,
    nest_at,
    parse_sizes,
    size_option,
    steps_option,
)
from poly.commands.outputs import check_file
from poly.compilation import compile_nest
from poly.embed import write_header
from poly.embed.build_files import write_build_files
from poly.embed.files import write_output
from poly.embed.naming import checked_version
from poly.embed.tuned import tuned_sizes
from poly.errors import SpecError
from poly.ir.nest import Nest
from poly.kernel import Kernel
from poly.machine.target import checked_threads


def parse_isas(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """The instruction sets in `avx2,neon`."""
    names = None if text is None else tuple(name.strip() for name in text.split(","))
    unknown = sorted(set(names or ()) - ISAS.keys())
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(ISAS)}", context, option)
    return names


def parse_routines(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """The BLAS routines in `gemm,gemv`."""
    if text is None:
        return None
    try:
        return checked_names([name.strip() for name in text.split(",")])
    except SpecError as error:
        raise click.BadParameter(str(error), context, option) from error


def parse_special(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> list[dict[str, int]]:
    """The sizes in each `M=512,N=512`."""
    return [parse_sizes(context, option, tuple(text.split(","))) for text in texts]


@click.command("header")
@click.argument("nests", metavar="[FILE[:NAME]]", required=False)
@click.option(
    "--blas", callback=parse_routines, metavar="NAME,…", help=f"BLAS routines in place of nests: {', '.join(ROUTINES)}."
)
@click.option(
    "-o", "--output", metavar="FILE", required=True, type=click.Path(path_type=Path), help="The file to write."
)
@size_option
@steps_option("--steps", STEPS)
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
    default="openmp",
    show_default=True,
    help="How parallel loops run.",
)
@click.option("--cores", type=click.IntRange(min=1), help="Threads that the schedules assume (this machine's).")
@click.option("--prefix", help="The prefix of every name (the nest's name, or the file's).")
@click.option("--dense", is_flag=True, help="Arrays have no gaps between rows: the functions take no strides.")
@click.option(
    "--pkgconfig",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Also write a file for pkg-config into this directory.",
)
@click.option(
    "--cmake",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Also write a package for CMake into this directory.",
)
@click.option("--version", default="1.0", show_default=True, help="The version in these files.")
@click.option("-MD", "depends", is_flag=True, help="Also write the header's dependencies, for make or ninja.")
@click.option(
    "-MF", "depend_file", metavar="FILE", type=click.Path(path_type=Path), help="The file for these (OUTPUT.d)."
)
def command(
    nests: str | None,
    blas: tuple[str, ...] | None,
    output: Path,
    sizes: dict[str, int],
    steps: GivenSteps | None,
    special: list[dict[str, int]],
    tuned: bool,
    isas: Sequence[str] | None,
    threads: Threading,
    cores: int | None,
    prefix: str | None,
    dense: bool,
    pkgconfig: Path | None,
    cmake: Path | None,
    version: str,
    depends: bool,
    depend_file: Path | None,
) -> None:
    """Write a nest, or all nests in a file, as a single C header without dependencies.

    \b
    poly header gemm.py:matmul -o matmul.h
        any size
    poly header gemm.py:matmul -o matmul.h --special M=512,N=512,K=512
        and a specialised kernel for one size
    poly header gemm.py:matmul -o matmul.h --size M=16 --size N=16
        only these sizes
    poly header --blas gemm,gemv,syrk -o blas.h
        cblas_sgemm, cblas_dgemm and so on
    """
    check_file("-o", output)
    check_file("-MF", depend_file)
    if blas is not None:
        given = nests or sizes or steps or special or tuned or cores or dense or depends or depend_file
        if given or pkgconfig or cmake:
            raise click.UsageError("--blas goes with -o, --isa, --threads and --prefix alone.")
        write_blas(output, blas, prefix=prefix, isas=isas, threads=threads)
        return
    if nests is None:
        raise click.UsageError("give a file with nests, or --blas.")
    opened = open_nests(nests)
    for given in (sizes, *special):
        check_open_sizes(nests, opened.nests, given)
    check_one_nest(nests, opened.nests, steps)
    count = 1 if threads == "none" else checked_threads(cores)
    kernels = [kernel for nest in opened.nests for kernel in kernels_of(nest, sizes, steps, special, tuned, count)]
    checked_version(version)
    write_header(output, kernels, prefix=prefix, isas=isas, threads=threads, dense=dense)
    write_build_files(output, version, threads, pkgconfig, cmake)
    if depends or depend_file:
        write_output(depend_file or output.with_suffix(".d"), _rules(output, opened))


def kernels_of(
    nest: Nest,
    sizes: dict[str, int],
    steps: GivenSteps | None,
    special: list[dict[str, int]],
    tuned: bool,
    threads: int,
) -> list[Kernel]:
    """The kernels of one nest: the general one, with `sizes` fixed and the given steps, and the specialised ones."""
    fixed = nest_at(nest, sizes, steps)
    base = compile_nest(fixed, schedule=None if steps is None else steps.schedule(fixed), threads=threads)
    found = [{**one} for one in special if one.keys() <= set(base.nest.sizes)]
    if tuned:
        found += [one for one in tuned_sizes(base.nest, base.isa, threads) if one not in found]
    return [base, *(compile_nest(base.nest, sizes=one, threads=threads) for one in found)]


def _rules(output: Path, opened: NestFile) -> str:
    """The header's dependencies as a rule for make; a source that no longer exists is not an error."""
    names = [str(path).replace(" ", "\\ ").replace("$", "$$") for path in opened.sources]
    target = str(output).replace(" ", "\\ ").replace("$", "$$")
    return "".join([f"{target}: {' '.join(names)}\n", *(f"\n{name}:\n" for name in names)])
