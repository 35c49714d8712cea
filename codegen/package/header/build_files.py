"""Files by which build systems find a header: one for pkg-config, and a package for CMake's find_package.

Both name the header's directory relative to themselves, so that the files can be moved together. They say what a
program that includes the header is compiled and linked with; where the header's code is, in the one file that defines
PFX_IMPLEMENTATION, is the program's choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from codegen.ir.program import Threading

FLAGS: Mapping[Threading, str] = {"openmp": "-fopenmp", "pthreads": "-pthread", "none": ""}
"""What compilers and linkers need for parallel loops."""

PKG_CONFIG = """# The header {header}, for pkg-config: `pkg-config --cflags --libs {name}`.
prefix=${{pcfiledir}}/{folder}
includedir=${{prefix}}

Name: {name}
Description: Compiled loop nests in one C header, {header}
Version: {version}
Cflags: -I${{includedir}}{flags}
Libs: -lm{flags}
"""

CMAKE = """# The header {header}, for CMake: find_package({name} CONFIG REQUIRED), then link {name}::{name}.
include_guard(GLOBAL)
{find}if(NOT TARGET {name}::{name})
  add_library({name}::{name} INTERFACE IMPORTED)
  get_filename_component(_{name}_include "${{CMAKE_CURRENT_LIST_DIR}}/{folder}" ABSOLUTE)
  target_include_directories({name}::{name} INTERFACE "${{_{name}_include}}")
  target_link_libraries({name}::{name} INTERFACE m{link})
  unset(_{name}_include)
endif()
"""

CMAKE_VERSION = """# A program that asks for a version gets this one if it is as new, and of the same major version.
set(PACKAGE_VERSION "{version}")
string(REGEX MATCH "^[0-9]+" _major "${{PACKAGE_FIND_VERSION}}")
if("{major}" STREQUAL "${{_major}}" AND NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
else()
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
endif()
"""

FINDS: Mapping[Threading, str] = {
    "openmp": "include(CMakeFindDependencyMacro)\nfind_dependency(OpenMP COMPONENTS C)\n",
    "pthreads": "include(CMakeFindDependencyMacro)\nset(THREADS_PREFER_PTHREAD_FLAG ON)\nfind_dependency(Threads)\n",
    "none": "",
}
LINKS: Mapping[Threading, str] = {"openmp": " OpenMP::OpenMP_C", "pthreads": " Threads::Threads", "none": ""}


def pkg_config(name: str, header: str, folder: PurePosixPath, version: str, threads: Threading) -> str:
    """The text of `NAME.pc`; `folder` is the header's directory, relative to that of the file."""
    flags = f" {FLAGS[threads]}".rstrip()
    return PKG_CONFIG.format(name=name, header=header, folder=folder, version=version, flags=flags)


def cmake(name: str, header: str, folder: PurePosixPath, version: str, threads: Threading) -> dict[str, str]:
    """The texts of a CMake package by their files' names; `folder` is relative to the package's directory."""
    config = CMAKE.format(name=name, header=header, folder=folder, find=FINDS[threads], link=LINKS[threads])
    about = CMAKE_VERSION.format(version=version, major=version.partition(".")[0])
    return {f"{name}-config.cmake": config, f"{name}-config-version.cmake": about}
