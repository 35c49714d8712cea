"""Write kernels as a Python package that needs neither poly nor a compiler: a folder to import, and its wheel."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path

from codegen.errors import ToolchainError
from codegen.ir.program import Threading
from codegen.names import function_name
from codegen.system.cache import get_file
from codegen.toolchain.build import build
from codegen.toolchain.compiler import toolchain, using
from microkernels.errors import plain
from poly.checks import checked_path
from poly.embed.files import make_folder, write_output
from poly.embed.naming import checked_version
from poly.embed.write import listed, make
from poly.errors import SpecError
from poly.scheduled import Scheduled
from poly.version import __version__


def write_package(
    path: str | Path,
    kernels: Scheduled | Iterable[Scheduled],
    *,
    name: str | None = None,
    version: str = "1.0",
    isas: Sequence[str] | None = None,
    threads: Threading | None = None,
    dense: bool = False,
    compiler: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
) -> Path:
    """Write kernels as a Python package into the directory `path`, and return the path of its wheel.

    The package is a folder there, `name` (default: the nest's name, or the directory's if there are several nests),
    which can be imported from it, and whose wheel beside it can be installed. A function for each nest takes NumPy
    arrays, checks them and runs the kernel for this CPU; those of bf16 have the type of ml_dtypes, or are their bits
    in uint16. The folder also has the C header of these kernels, of which the library is compiled. Neither poly nor a
    compiler is needed to use them. `isas` and `dense` are as for
    `poly.write_header`; `threads` is "pthreads" by default, since OpenMP's library may be missing elsewhere, or "none"
    if the kernels were compiled for one thread. `compiler` and `flags` are as for `poly.compile`.

    Raises:
        SpecError: as `poly.write_header`; also a name that Python can't import, or an invalid version.
        TargetError, ArgumentError: as `poly.write_header`.
        ToolchainError: the C compiler is missing or fails.
        FileError: a file cannot be written.
    """
    from codegen.package.header.text import header_text
    from codegen.package.wheel.archive import platform_tag, wheel, wheel_name
    from codegen.package.wheel.module import OWN, module_text, name_of, stub_text

    folder, found = checked_path("the path of the package", path), listed(kernels)
    several = len({kernel.nest.name for kernel in found}) > 1
    usual = re.sub(r"\W", "_", folder.resolve().name) if several or not found else found[0].nest.name
    package = checked_name(usual if name is None else name)
    checked_version(version)
    chosen = toolchain(compiler, flags)
    way: Threading = threads or ("pthreads" if any(kernel.threads > 1 for kernel in found) else "none")
    header = make(package, found, f"{package}_c" if function_name(package) != package else package, isas, way, dense)
    for routine in header.routines:
        if iskeyword(name_of(routine, header)) or name_of(routine, header) in OWN:
            raise SpecError(f"the package has {name_of(routine, header)} of its own, or Python has: rename the nest.")
    text = header_text(header)
    source = f"#define {header.prefix.upper()}_IMPLEMENTATION\n{text}"
    with using(chosen):
        built = get_file(build(source, ("-pthread",) * (way == "pthreads") + ("-lm",)))
    if built is None:
        raise ToolchainError("the library that was built has been damaged: run it again.")
    library = f"_{package}.so"
    inside = {
        "__init__.py": module_text(header, package, library, version).encode(),
        "__init__.pyi": stub_text(header).encode(),
        "py.typed": b"",
        "runtime.py": (files("codegen.package.wheel") / "runtime.py").read_bytes(),
        f"{header.prefix}.h": text.encode(),
        library: built,
    }
    make_folder(folder / package)
    for file, content in inside.items():
        write_output(folder / package / file, content)
    tag, summary = platform_tag(built), f"Compiled kernels: {', '.join(name_of(r, header) for r in header.routines)}"
    target = folder / wheel_name(package, version, tag)
    packed = {f"{package}/{file}": content for file, content in inside.items()}
    write_output(target, wheel(packed, package, version, summary, tag, __version__))
    return target


def checked_name(name: object) -> str:
    """The name of a package. Raises SpecError if Python cannot import it, or has a module of that name."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,100}", name) or iskeyword(name):
        raise SpecError(f"{plain(name)} is no name of a package: take letters, digits and _, beginning with a letter.")
    if name in sys.stdlib_module_names or name in ("numpy", "poly"):
        raise SpecError(f"a package called {name} would hide Python's own, or NumPy or poly: give another name.")
    return name
