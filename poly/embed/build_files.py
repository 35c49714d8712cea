"""Write the files by which build systems find a header that was written."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from codegen.package.header.build_files import cmake as cmake_texts
from codegen.package.header.build_files import pkg_config
from codegen.program import Threading
from poly.embed.files import make_folder, write_output


def write_build_files(
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
