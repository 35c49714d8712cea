"""The tests' common ground: a cache directory of their own, hypothesis's profile, and no silent skips in CI."""

from __future__ import annotations

import gc
import importlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import pytest
from described import calibrate
from hypothesis import settings

from codegen.errors import ToolchainError
from codegen.toolchain import build
from microkernels.isa import ISAS

settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

SHORT = ("unit", "golden", "errors")
"""The folders of short tests, those of `make test-quick`: with the marker `slow`, a test of theirs is long."""

UNOPTIMISED = ("property", "bench", "errors")
"""The folders whose OpenCL kernels are not optimised."""

OPTIMISED, QUICKLY_BUILT = build.FLAGS, ("-Og", "-fipa-cp", *build.FLAGS[1:])
"""The compiler's flags that users have, and those of `tests/bench`, `tests/errors` and nine in ten tests in
`tests/property` and `tests/unit`: these kernels are built in half of the time, as are seven in ten of the fuzzer's.
Without constants in functions (`-fipa-cp`), a microkernel's edges are twice as large."""

NUMBERS = count()
"""Tells the tests of this process apart."""

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

NEEDED_TOOLS = re.compile(
    r"(?<!\w)(gcc|g\+\+|cc|clang[\w-]*|compilers?|cmake|valgrind|qemu[\w-]*|aarch64[\w-]*|s390x[\w-]*|pocl|pyopencl|libblas-test|chromium)(?!\w)",
    re.IGNORECASE,
)
"""A skip whose reason names one of these is no option of the user's: CI must have the tool."""


def pytest_configure(config: pytest.Config) -> None:
    """One cache directory for all workers of this run, and never the user's: it may hold tuning records."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        directory = tempfile.mkdtemp(prefix="poly-tests-")
        os.environ["POLY_CACHE_DIR"] = directory
        os.environ["POCL_CACHE_DIR"] = os.path.join(directory, "pocl")
        config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        os.environ["POLY_CALIBRATE"] = "never"  # no processes beside the tests
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # many tests start Python
        calibrate()
        if getattr(config.option, "numprocesses", None):
            _precompile()


def _precompile() -> None:
    """What gcc reads first in most kernels, once for a large run: the libraries that it makes are the same."""
    isas = [isa.flags for isa in ISAS.values() if isa.runs_here() and isa.flags]

    def made(flags: tuple[str, ...]) -> None:
        with suppress(ToolchainError):
            build.precompile(flags)

    every = [(*flags, *more) for flags in isas for more in ((), ("-fopenmp", "-Wl,-z,nodelete"))]
    for level in (OPTIMISED, QUICKLY_BUILT):
        build.FLAGS = level
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(made, every))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are CPUs: about a sixth of the tests' time is spent waiting for other processes."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection(session: pytest.Session) -> None:
    """Workers begin to import the tests' files at different ones: what one has compiled, the others read."""
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER"), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    if worker is not None:
        gc.disable()
        folders = (path for path in map(Path, session.config.args) if path.is_dir())
        files = sorted(file for folder in folders for file in folder.rglob("test_*.py"))
        first = len(files) * int(worker.removeprefix("gw")) // int(workers)
        for file in (*files[first:], *files[:first]):
            sys.path.insert(0, str(file.parent))
            with suppress(Exception, pytest.skip.Exception):  # collecting it tells of that
                importlib.import_module(file.stem)
            sys.path.remove(str(file.parent))


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: the garbage collector need not look at it again and again."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The short tests last, so that no worker waits long for another one at the end."""
    items.sort(key=_is_short)


def _is_short(item: pytest.Item) -> bool:
    return item.path.parent.name in SHORT and item.get_closest_marker("slow") is None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tuning records of its own for each test: what one test tunes must not change what another one compiles.

    Where PoCL compiles hundreds of kernels only for their results, it does not optimise them, which saves a third of
    the time. Tests of other folders, and the fuzzer, compile them as a user does. What gcc compiles for the property
    and unit tests is optimised for one test in ten, always the same ones, and for mistakes and benchmarks not at all.
    """
    folder = item.path.parent.name
    quick = folder in ("bench", "errors") or (folder in ("property", "unit") and crc32(item.nodeid.encode()) % 10 >= 1)
    build.FLAGS = QUICKLY_BUILT if quick else OPTIMISED
    name = f"records-{os.getpid()}-{next(NUMBERS)}.sqlite"
    os.environ["POLY_RECORDS"] = os.path.join(os.environ["POLY_CACHE_DIR"], name)
    os.environ["POCL_EXTRA_BUILD_FLAGS"] = "-cl-opt-disable" if folder in UNOPTIMISED else ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    return _refuse_skip(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    return _refuse_skip(report)


def _refuse_skip(report: Report) -> Report:
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    if os.environ.get("CI") and NEEDED_TOOLS.search(reason):
        report.outcome = "failed"
        report.longrepr = f"skipped where CI must have the tool: {reason}"
    return report


@pytest.fixture
def project() -> Path:
    """The root of the checkout."""
    return Path(__file__).parent.parent
