"""A kernel for an OpenCL device as files: the kernels, a C library that launches them, and a program that checks it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from microkernels.errors import shown
from microkernels.isa import PORTABLE
from microkernels.opencl_isa import DeviceISA
from poly.analysis.bounds import check
from poly.analysis.facts import delicate, drifts
from poly.checks import checked_path
from poly.compiled import device_program
from poly.embed.files import make_folder, write_output
from poly.embed.naming import check_arguments, check_numbers
from poly.embed.routine import note
from poly.embed.trials import trials
from poly.errors import SpecError
from poly.lowering.lower import lower
from poly.scheduled import Scheduled
from poly.schedules.schedule import schedule
from poly.version import RELEASE

if TYPE_CHECKING:
    from codegen.package.opencl.standalone import Standalone


def write_opencl(directory: str | Path, kernel: Scheduled) -> Path:
    """Write a kernel as OpenCL and C files, and return the directory.

    For a nest `matmul`, the files are `matmul.cl`, the kernels; `matmul.h` and `matmul.c`, a C99 library that builds
    and launches them; and `matmul_check.c`, a program that checks them against the plain loops on any device, and
    measures them. The same kernel gives the same bytes.

    Raises:
        SpecError: not an OpenCL kernel, a nest with f16 or bf16 numbers or without results, or a size or array whose
            name may clash with a function of the library.
        ArgumentError: not a path.
        FileError: a file cannot be written; an existing one is left unchanged.
    """
    from codegen.package.opencl.files import files

    texts = files(standalone(kernel))
    folder = checked_path("the directory", directory)
    make_folder(folder)
    for name, text in texts.items():
        write_output(folder / name, text)
    return folder


def standalone(kernel: Scheduled) -> Standalone:
    """The contents of the files. Raises SpecError as `write_opencl` does."""
    from codegen.package.opencl.standalone import Standalone

    if not isinstance(kernel, Scheduled) or not isinstance(kernel.isa, DeviceISA):
        raise SpecError(f"{shown(kernel)} is no OpenCL kernel: make one with poly.compile(nest, target='opencl').")
    nest = check(kernel.nest)
    check_arguments(nest, nest.name)
    check_numbers(nest)
    reference = lower(nest, schedule(nest).tree, PORTABLE)
    return Standalone(
        name=nest.name,
        program=device_program(kernel.nest, kernel.isa, kernel.threads, kernel.basis),
        isa=kernel.isa,
        math=nest.source[nest.source.index("def ") :].rstrip(),
        loops=str(kernel.schedule),
        reference=replace(reference, name="plain_loops"),
        trials=trials(nest, []),
        delicate=delicate(nest),
        drifts=drifts(nest),
        notes=(note(kernel),),
        version=RELEASE,
    )
