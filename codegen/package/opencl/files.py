"""The files of a standalone device program."""

from __future__ import annotations

from codegen.package.comments import filled_comments
from codegen.package.opencl.check import check
from codegen.package.opencl.host import host
from codegen.package.opencl.interface import interface
from codegen.package.opencl.standalone import Standalone
from codegen.style import wrapped


def files(made: Standalone) -> dict[str, str]:
    """The texts of the files, by name: the same values give the same bytes."""
    return {
        f"{made.name}.cl": made.program.source,
        f"{made.name}.h": wrapped(filled_comments(interface(made))),
        f"{made.name}.c": wrapped(host(made)),
        f"{made.name}_check.c": wrapped(check(made)),
    }
