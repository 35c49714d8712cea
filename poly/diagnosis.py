"""What poly needs and what it can use, each tried here, with a remedy for what does not work."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from codegen.errors import ToolchainError
from codegen.opencl.advice import CPU_REMEDY, nvidia_remedy
from codegen.opencl.devices import reason, usable
from codegen.opencl.survey import survey
from codegen.system.cache import cache_dir, get, private_directory, put
from codegen.toolchain.build import OPENMP, load
from codegen.toolchain.compiler import compiler_name, find_compiler
from poly.errors import RecordError
from poly.machine import machine
from poly.machine.calibration import NEVER, VARIABLE, kept
from poly.machine.description import microarchitecture
from poly.machine.topology import cpu_list, size_text
from poly.records import Store
from poly.siblings import HOME, SIBLINGS, hidden

DISTRIBUTION = "poly-loops"
OWN_EXTRAS = {"bench", "bench-needs", "dev", "docs"}
"""The extras for work on poly itself, and that of the benchmarks, which say by themselves what they miss."""
PATIENCE = 60.0
"""Seconds after which a compiler is assumed to hang."""

State = Literal["ok", "note", "broken"]


@dataclass(frozen=True)
class Diagnosis:
    """One thing that was tried: `broken` if poly needs it and it does not work, `note` if poly works without it."""

    name: str
    state: State
    text: str
    remedy: str = ""


def diagnoses() -> Iterator[Diagnosis]:
    """Each thing as it was found. Some tries take a second: the compiler runs twice, new OpenCL devices are tested."""
    for name, check in CHECKS.items():
        try:
            yield from check(name)
        except Exception as error:  # what was tried may fail in any way, and the others are to be tried all the same
            yield Diagnosis(name, "broken", f"{type(error).__name__}: {error}", "report this")


def python(name: str) -> Iterator[Diagnosis]:
    """Python, and the packages that poly requires."""
    yield Diagnosis(name, "ok", f"{platform.python_version()}, {sys.executable}")
    try:
        required = [line for line in metadata.requires(DISTRIBUTION) or () if "extra ==" not in line]
    except metadata.PackageNotFoundError:
        text = f"poly runs from {HOME}, and is not installed"
        yield Diagnosis("packages", "note", text, f"pip install {HOME}")
        return
    missing = _missing(required)
    if missing:
        yield Diagnosis(
            "packages", "broken", f"missing or too old: {', '.join(missing)}", f"pip install {shlex.join(missing)}"
        )
    else:
        yield Diagnosis("packages", "ok", f"all {len(required)} that poly requires are installed")


def names(name: str) -> Iterator[Diagnosis]:
    """Files that hide our packages, or would hide them from a Python that is started in the working folder."""
    folder = Path.cwd()
    problems = [problem for package in SIBLINGS if (problem := hidden(package))]
    for package in ("poly", *SIBLINGS, "benchmarks"):
        found = next((p for p in (folder / package / "__init__.py", folder / f"{package}.py") if p.is_file()), None)
        if found and folder.resolve() != HOME:
            problems.append(f"{found} hides poly's package {package!r} from a Python that is started in {folder}")
    for problem in problems:
        yield Diagnosis(name, "note", problem, "rename it")
    if not problems:
        yield Diagnosis(name, "ok", "no file in the working folder hides a package of poly")


def compiler(name: str) -> Iterator[Diagnosis]:
    """The C compiler, by a library that it builds and Python loads."""
    try:
        text = f"{compiler_name(PATIENCE)}, {find_compiler()[0]}"
        if _built("int32_t poly_doctor(void) { return 42; }") != 42:
            raise ToolchainError("a function that returns 42 returns something else")
    except ToolchainError as error:
        remedy = "install gcc (apt install gcc) or clang, or name a compiler that works in POLY_CC"
        yield Diagnosis(name, "broken", str(error), remedy)
    else:
        yield Diagnosis(name, "ok", f"{text}: its libraries are built and loaded")


def openmp(name: str) -> Iterator[Diagnosis]:
    """OpenMP, by two threads that count themselves."""
    loop = "int32_t n = 0;\n#pragma omp parallel num_threads(2) reduction(+ : n)\n    n += 1;\n    return n;"
    try:
        threads = _built(f"#include <omp.h>\nint32_t poly_doctor(void) {{\n    {loop}\n}}", *OPENMP)
    except ToolchainError as error:
        remedy = "install the compiler's OpenMP: gcc brings it; for clang, apt install libomp-dev"
        yield Diagnosis(name, "broken", str(error), remedy)
        return
    if threads == 2:
        yield Diagnosis(name, "ok", "threads start and join")
    else:
        limits = ", ".join(variable for variable in ("OMP_THREAD_LIMIT", "OMP_DYNAMIC") if variable in os.environ)
        text = f"of 2 threads asked for, {threads} ran{f' ({limits} is set)' if limits else ''}"
        yield Diagnosis(name, "note", text, "unset OMP_THREAD_LIMIT and OMP_DYNAMIC")


def cache(name: str) -> Iterator[Diagnosis]:
    """The cache directory: whether it can be written, by this user alone, and how large it is."""
    try:
        private_directory("kept")
        put("doctor", "a text")
        if get("doctor") != "a text":
            raise ToolchainError(f"what is written to {cache_dir()} cannot be read back")
    except ToolchainError as error:
        yield Diagnosis(name, "broken", str(error), "set POLY_CACHE_DIR to a directory that is yours alone")
        return
    sizes = list(_sizes(cache_dir()))
    count = f"{len(sizes)} file{'s' if len(sizes) != 1 else ''}"
    yield Diagnosis(name, "ok", f"{cache_dir()}: {sum(sizes) / 1e6:.1f} MB in {count}, written by this user alone")


def records(name: str) -> Iterator[Diagnosis]:
    """The tuning records. A damaged file is left as it is."""
    store = Store.open()
    if not store.exists():
        yield Diagnosis(name, "ok", f"none yet; poly.tune will write {store.path}")
        return
    try:
        store.sound_records()
    except RecordError as error:
        remedy = f"move {store.path} away, or set POLY_RECORDS to another file"
        yield Diagnosis(name, "broken", str(error), remedy)
        return
    yield Diagnosis(name, "ok", f"{store.path}: {store.count()}")


def here(name: str) -> Iterator[Diagnosis]:
    """The machine, and its calibration."""
    found = machine()
    design = microarchitecture()
    cores = f"{found.cores} core{'s' if found.cores != 1 else ''}"
    caches = ", ".join(f"L{cache.level} {size_text(cache.bytes)}" for cache in found.caches)
    about = f"{found.cpu}{f', {design}' if design else ''}, {found.isa.name}, {cores}, {caches}"
    yield Diagnosis(name, "ok", about)
    if len(found.kinds) > 1:
        text = f"cores of {len(found.kinds)} kinds: {'; '.join(found.layout())}"
        remedy = f"for one kind alone, start programs with taskset -c {cpu_list(found.kinds[0].cpus)}"
        yield Diagnosis(name, "note", text, remedy)
    if len(found.nodes) > 1:
        number, cpus = found.nodes[0].number, cpu_list(found.nodes[0].cpus)
        text = f"{len(found.nodes)} memory nodes; an array lies in the node of the thread that writes it first"
        remedy = f"for one node alone, numactl --membind={number} --physcpubind={cpus}"
        yield Diagnosis(name, "note", text, remedy)
    rates = kept(found)
    if rates is not None:
        peak = f"{rates.peak('f32', 1):.0f} GFLOP/s in f32 on one thread"
        yield Diagnosis("calibration", "ok", f"{peak}, measured for {found.isa.name}")
    else:
        never = f"; {VARIABLE}={NEVER} is set" if os.environ.get(VARIABLE) == NEVER else ""
        text = f"none yet: the model uses that of a similar CPU{never}"
        yield Diagnosis("calibration", "note", text, "poly machine --calibrate, on a quiet machine")


def opencl(name: str) -> Iterator[Diagnosis]:
    """OpenCL's devices, and why others cannot be used."""
    findings = survey()
    devices = usable()
    for device in devices:
        yield Diagnosis(name, "ok", f"{device.label}: {device.platform}, driver {device.driver}")
    remedy = " ".join(nvidia_remedy()) if devices else " ".join([*nvidia_remedy(), CPU_REMEDY])
    for problem in dict.fromkeys(reason(finding) for finding in findings if not finding.usable):
        yield Diagnosis(name, "note", problem, remedy)


def extras(name: str) -> Iterator[Diagnosis]:
    """The packages that poly can use, by the extra that brings them."""
    with suppress(metadata.PackageNotFoundError):
        known = metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
        lines = metadata.requires(DISTRIBUTION) or []
        for extra in sorted(set(known) - OWN_EXTRAS):
            wanted = [line for line in lines if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", line)]
            missing = _missing(wanted)
            if missing:
                text = f"{extra}: {', '.join(missing)} is not installed"
                yield Diagnosis(name, "note", text, f"pip install '{DISTRIBUTION}[{extra}]'")
            elif wanted:
                yield Diagnosis(name, "ok", f"{extra}: installed")


CHECKS: dict[str, Callable[[str], Iterator[Diagnosis]]] = {
    "Python": python,
    "names": names,
    "compiler": compiler,
    "OpenMP": openmp,
    "cache": cache,
    "records": records,
    "machine": here,
    "OpenCL": opencl,
    "extras": extras,
}
"""What is tried, by what it is about."""


def _built(function: str, *flags: str) -> int:
    """The result of the function `poly_doctor` of a C text, which is compiled anew and not kept."""
    text = f"#include <stdint.h>\n/* {os.getpid()} {os.urandom(8).hex()} */\n{function}\n"
    library = load(text, "int32_t poly_doctor(void);", flags, PATIENCE)
    for path in (library.path, library.path.with_suffix(".c")):
        path.unlink(missing_ok=True)
    return int(library.lib.poly_doctor())


def _sizes(folder: Path) -> Iterator[int]:
    """The sizes of all files in a folder; others may come and go meanwhile."""
    for path in folder.rglob("*"):
        with suppress(OSError):
            if path.is_file():
                yield path.stat().st_size


def _missing(requirements: list[str]) -> list[str]:
    """The requirements, without their conditions, that no installed distribution meets."""
    found = []
    for line in requirements:
        wanted = line.partition(";")[0].strip()
        try:
            installed = metadata.version(re.split(r"[^\w.-]", wanted)[0])
        except metadata.PackageNotFoundError:
            found.append(wanted)
            continue
        least = re.search(r">=\s*([\d.]+)", wanted)
        if least and _numbers(installed) < _numbers(least[1]):
            found.append(wanted)
    return found


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers with which a version begins, by which it is compared; `2.0` is `2`."""
    text = re.match(r"[\d.]*", version)
    numbers = [int(part) for part in (text[0] if text else "").split(".") if part]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
