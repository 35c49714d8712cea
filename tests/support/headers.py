"""Headers that are written, compiled and run: compilers at their strictest, other machines under emulation."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from cffi import FFI

import poly
from microkernels.isa import ISA, ISAS
from poly.embed import trials, write_header

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
"""The warnings that a header must not cause."""

SUFFIX = {"c": ".c", "c++": ".cc"}


@dataclass(frozen=True)
class Toolchain:
    """A compiler's command, and the emulator that runs its programs here, if any."""

    command: tuple[str, ...]
    language: Literal["c", "c++"] = "c"
    runner: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "".join(self.command)

    @property
    def is_clang(self) -> bool:
        return "clang" in self.command[0]


def newest(stem: str) -> str:
    """The newest `stem-N` on the PATH, as Debian names clang, or `stem` if there is none."""
    folders = [Path(folder) for folder in os.get_exec_path()]
    files = [file.name for folder in folders if folder.is_dir() for file in folder.iterdir()]
    versions = [int(name[len(stem) + 1 :]) for name in files if re.fullmatch(rf"{re.escape(stem)}-\d+", name)]
    return f"{stem}-{max(versions)}" if versions else stem


SHARED = ("-shared", "-fPIC", "-Wl,-z,nodelete")
"""Options for a library that Python loads. It stays loaded, since OpenMP's threads sleep in code that is otherwise
unloaded with the last such library."""
GCC = Toolchain(("gcc",))
GXX = Toolchain(("g++",), "c++")
CLANG = Toolchain((newest("clang"),))
CLANGXX = Toolchain((newest("clang++"),), "c++")
NATIVE = (GCC, GXX, CLANG, CLANGXX)
X86_32 = (Toolchain(("gcc", "-m32")), Toolchain(("g++", "-m32"), "c++"), Toolchain((newest("clang"), "-m32")))
AARCH64 = Toolchain(("aarch64-linux-gnu-gcc",), runner=("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"))
AARCH64_CLANG = Toolchain((newest("clang"), "--target=aarch64-linux-gnu"), runner=AARCH64.runner)
S390X = Toolchain(("s390x-linux-gnu-gcc",), runner=("qemu-s390x", "-L", "/usr/s390x-linux-gnu"))

STANDARDS = {"c": ("c99", "c11"), "c++": ("c++11", "c++20")}
"""By a toolchain's language."""

HERE = [name for name, isa in ISAS.items() if isa.runs_here()]
"""The instruction sets of this CPU, the best one first."""

SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
INTEGERS = ("-fsanitize=undefined,integer,float-cast-overflow", "-fno-sanitize-recover=all")
"""clang's checks that no integer changes its value without a cast, and that unsigned ones wrap only on purpose."""

CHECKED_FLOPS = 1 << 22
"""The most operations of a call in programs whose accesses are checked, which makes them ten to fifty times slower."""

NUMBERS = {name: number for number, name in enumerate(("portable", "neon", "avx2", "avx512"), start=1)}
"""The instruction sets as a header's `NAME_isa` counts them."""


def quick(toolchain: Toolchain) -> tuple[str, ...]:
    """Flags for a quick build: with functions that know their constants, gcc makes half of the code for a product."""
    return ("-O1",) if toolchain.is_clang else ("-Og", "-fipa-cp")


def at_any_level(path: Path) -> Path:
    """A header whose kernels gcc optimises as the flags say, not at -O3 whatever they are: a third of the time.

    For tests of what is around the kernels; others build headers as users do.
    """
    text = path.read_text()
    assert '"O3", ' in text
    path.write_text(text.replace('"O3", ', ""))
    return path


@cache
def missing(toolchain: Toolchain, *flags: str) -> str | None:
    """The reason why programs cannot be built and run here; None if they can."""
    for tool in (toolchain.command[0], *toolchain.runner[:1]):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    command = [*toolchain.command, *flags, "-x", toolchain.language, "-", "-o", os.devnull]
    done = subprocess.run(command, input="int main(void) { return 0; }\n", capture_output=True, text=True)
    return f"{' '.join((*toolchain.command, *flags))} cannot make programs: {done.stderr}" if done.returncode else None


def need(toolchain: Toolchain, *flags: str) -> None:
    """Skip the test where the compiler, its libraries or the emulator aren't installed."""
    reason = missing(toolchain, *flags)
    if reason is not None:
        pytest.skip(reason)


def need_tool(tool: str) -> None:
    """Skip the test where a program isn't installed."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")


def need_isa(isa: ISA | str) -> None:
    """Skip the test where this CPU cannot run an instruction set."""
    isa = ISAS[isa] if isinstance(isa, str) else isa
    if not isa.runs_here():
        pytest.skip(f"this CPU lacks {', '.join(isa.missing())}")


def succeed(command: Sequence[str | Path], **keywords: Any) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", **keywords)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def archer() -> dict[str, str]:
    """The environment in which clang's OpenMP reports its synchronisation to ThreadSanitizer."""
    library = Path(succeed([*CLANG.command, "-print-file-name=libarcher.so"]).strip())
    if not library.is_file():
        pytest.skip("clang has no libarcher.so: install its OpenMP")
    return {"OMP_TOOL_LIBRARIES": str(library), "TSAN_OPTIONS": "ignore_noninstrumented_modules=1"}


def build(toolchain: Toolchain, text: str, folder: Path, *flags: str, name: str = "program") -> Path:
    """Compile a program's text, without a warning, and link it; with `-c` among the flags, compile alone."""
    need(toolchain, *(flag for flag in flags if flag.startswith(("-fsanitize", "-fopenmp", "-flto"))))
    source = folder / f"{name}{SUFFIX[toolchain.language]}"
    source.write_text(text)
    target = folder / (f"{name}.o" if "-c" in flags else name)
    libraries = () if "-c" in flags else ("-lm", "-pthread")
    succeed([*toolchain.command, *STRICT, *flags, "-I", folder, source, "-o", target, *libraries])
    return target


def run(toolchain: Toolchain, binary: Path, *arguments: str, wrapper: Sequence[str] = (), **environment: str) -> str:
    """The output of a program, which must succeed, under emulation if necessary."""
    command = [*wrapper, *toolchain.runner, binary, *arguments]
    return succeed(command, env=os.environ | environment, timeout=300)


def implementation(prefix: str, *more: str) -> str:
    """The lines that put a header's implementation into a file."""
    macros = [f"#define {prefix.upper()}_{word}\n" for word in ("IMPLEMENTATION", *more)]
    return f'{"".join(macros)}#include "{prefix}.h"\n'


def once(name: str, asked: object, make: Callable[[Path], object]) -> Path:
    """The file or folder `name` that `make` writes, once per run of the tests for all workers.

    `asked` is the input that the file depends on.
    """
    folder = Path(os.environ["POLY_CACHE_DIR"]) / "made" / hashlib.sha256(repr(asked).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / name).exists():
            with tempfile.TemporaryDirectory(dir=folder) as own:
                make(Path(own) / name)
                (Path(own) / name).replace(folder / name)
    return folder / name


def header(
    folder: Path,
    *nests: Any,
    name: str = "",
    sizes: Sequence[dict[str, int]] = ({},),
    threads_of: int = 2,
    flops: int = trials.FLOPS,
    **options: Any,
) -> Path:
    """A header of nests at each of `sizes`, in `folder`; it is made once in a run of the tests.

    `threads_of` is the number that schedules are made for, `name` the file's (the nest's where there is one), `flops`
    the most operations of a timed call in its self-test, which checks calls of a thirty-second of them at most.
    """
    stem = name or nests[0].name
    asked = ([(nest.structure, nest.fixed) for nest in nests], sizes, threads_of, flops, sorted(options.items()))

    def make(path: Path) -> None:
        kernels = [poly.compile(nest, threads=threads_of, **known) for nest in nests for known in sizes]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trials, "FLOPS", flops)
            patch.setattr(trials, "ITERATIONS", min(trials.ITERATIONS, flops >> 5))
            write_header(path, kernels, **options)

    return Path(shutil.copy(once(f"{stem}.h", asked, make), folder))


def declared(path: Path) -> str:
    """The declarations, as cffi reads them."""
    with tempfile.TemporaryDirectory() as empty:
        (Path(empty) / "stdint.h").touch()
        return succeed(["gcc", "-E", "-P", "-nostdinc", "-isystem", empty, path])


def library(path: Path, toolchain: Toolchain = GCC, *flags: str) -> tuple[FFI, Any]:
    """The header's functions to be called from Python, built as a user would."""
    need(toolchain)
    prefix = path.stem
    told = (path.read_text(), toolchain, flags)

    def make(target: Path) -> None:
        source = path.parent / f"{prefix}{SUFFIX[toolchain.language]}"
        source.write_text(implementation(prefix))
        succeed([*toolchain.command, "-O2", *SHARED, *flags, source, "-o", target, "-lm", "-pthread"])

    target = once(f"{prefix}.so", told, make)
    ffi = FFI()
    ffi.cdef(declared(path))
    return ffi, ffi.dlopen(str(target))
