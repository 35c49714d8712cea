"""`poly header`: write nests as a single C header."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import click

from codegen.ir.program import Threading
from codegen.package.header.build_files import cmake as cmake_texts
from codegen.package.header.build_files import pkg_config
from microkernels.isa import ISAS
from poly.blas import ROUTINES, write_blas
from poly.blas.write import checked_names
from poly.checks import checked_path
from poly.commands.headerplan import HeaderPlan
from poly.commands.nestfile import NestFile, open_nests
from poly.commands.options import (
    STEPS,
    GivenSteps,
    check_one_nest,
    check_open_sizes,
    parse_sizes,
    size_option,
    steps_option,
)
from poly.commands.outputs import check_file
from poly.embed.files import make_folder, write_output
from poly.embed.naming import checked_version
from poly.errors import SearchError, SpecError


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


special_option = click.option(
    "--special",
    multiple=True,
    metavar="M=512,N=512,…",
    callback=parse_special,
    help="Sizes with a specialised kernel, in a function that serves any size; may be repeated.",
)
tuned_option = click.option(
    "--tuned", is_flag=True, help="A specialised kernel for each size that was tuned on this machine."
)
isas_option = click.option(
    "--isa", "isas", callback=parse_isas, metavar="NAME,…", help=f"Instruction sets, of {', '.join(ISAS)} (all)."
)
cores_option = click.option(
    "--cores", type=click.IntRange(min=1), help="Threads that the schedules assume (this machine's)."
)


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
@special_option
@tuned_option
@isas_option
@click.option(
    "--threads",
    type=click.Choice(["openmp", "pthreads", "none"]),
    default="openmp",
    show_default=True,
    help="How parallel loops run.",
)
@cores_option
@click.option("--prefix", help="The prefix of every name (the nest's name, or the file's).")
@click.option("--dense", is_flag=True, help="Arrays have no gaps between rows: the functions take no strides.")
@click.option(
    "--workers", metavar="ADDRESS", help="Make one on each kind of machine of a dask cluster, by its records."
)
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
    workers: str | None,
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
        given = nests or sizes or steps or special or tuned or cores or dense or workers or depends or depend_file
        if given or pkgconfig or cmake:
            raise click.UsageError("--blas goes with -o, --isa, --threads and --prefix alone.")
        write_blas(output, blas, prefix=prefix, isas=isas, threads=threads)
        return
    if nests is None:
        raise click.UsageError("give a file with nests, or --blas.")
    if workers is not None and (depends or depend_file or pkgconfig or cmake):
        raise click.UsageError("--workers makes several headers, and goes without -MD, -MF, --pkgconfig and --cmake.")
    opened = open_nests(nests)
    for given in (sizes, *special):
        check_open_sizes(nests, opened.nests, given)
    check_one_nest(nests, opened.nests, steps)
    checked_version(version)
    plan = HeaderPlan(output.stem, opened.nests, sizes, steps, special, tuned, isas, threads, cores, prefix, dense)
    if workers is not None:
        _write_each_kind(output, plan, workers)
        return
    write_output(checked_path("the path of the header", output), plan.text())
    _write_build_files(output, version, threads, pkgconfig, cmake)
    if depends or depend_file:
        write_output(depend_file or output.with_suffix(".d"), _rules(output, opened))


def _write_each_kind(output: Path, plan: HeaderPlan, workers: str) -> None:
    """Write the header of each kind of machine in a cluster, named after the machine."""
    from poly.cluster import WorkerCall, connected

    with connected(workers) as crew:
        texts = crew.each_kind(WorkerCall(HeaderPlan.text, (plan,), None))
    for machine, text in texts.items():
        name = re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")
        path = output.with_stem(f"{output.stem}-{name}")
        if text is None:
            raise SearchError(f"{path} was not made: the workers on {machine} died.")
        write_output(path, text)
        click.echo(path)


def _rules(output: Path, opened: NestFile) -> str:
    """The header's dependencies as a rule for make; a source that no longer exists is not an error."""
    names = [str(path).replace(" ", "\\ ").replace("$", "$$") for path in opened.sources]
    target = str(output).replace(" ", "\\ ").replace("$", "$$")
    return "".join([f"{target}: {' '.join(names)}\n", *(f"\n{name}:\n" for name in names)])


def _write_build_files(
    header: Path, version: str, threads: Threading, pkgconfig: Path | None, cmake: Path | None
) -> None:
    """Write `NAME.pc` and the CMake package of a header `NAME.h` into these directories, where they are given.

    Raises FileError.
    """
    name = header.stem
    if pkgconfig is not None:
        make_folder(pkgconfig)
        text = pkg_config(name, header.name, _from(pkgconfig, header), version, threads)
        write_output(pkgconfig / f"{name}.pc", text)
    if cmake is not None:
        make_folder(cmake)
        for file, text in cmake_texts(name, header.name, _from(cmake, header), version, threads).items():
            write_output(cmake / file, text)


def _from(folder: Path, header: Path) -> PurePosixPath:
    """The header's directory, relative to another one."""
    return PurePosixPath(os.path.relpath(header.resolve().parent, folder.resolve()))
