"""The programs in `examples/embed_*` are built as their files say, run, and are out of date when their nests change."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from headers import GCC, GXX, need, need_tool, quick, succeed
from scripts import quick_poly

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
POLY = f"{sys.executable} -m poly"


def copied(name: str, folder: Path) -> Path:
    """The example's own folder, without what somebody has built in it."""
    return Path(shutil.copytree(ROOT / "examples" / name, folder / name, ignore=shutil.ignore_patterns("build")))


def make(folder: Path, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("MAKEFLAGS", None)
    return succeed(["make", f"POLY={POLY}", *arguments], cwd=folder, env=environment)


def test_c_with_make(tmp_path: Path) -> None:
    need_tool("make")
    need(GCC, "-fopenmp")
    folder = copied("embed_c", tmp_path)
    quick_poly(tmp_path / "poly")
    run = ("run", f"CFLAGS={' '.join(quick(GCC))} -Wall -Wextra -Werror -std=c99", f"POLY={tmp_path}/poly")
    assert "300 rows, each of which sums up to 1" in make(folder, *run)
    assert "/poly header" not in make(folder, "-n", *run), "nothing has changed"
    with (folder / "nests.py").open("a") as nests:
        nests.write("\n# changed\n")
    assert "/poly header" in make(folder, "-n", *run)


def test_cpp_with_cmake(tmp_path: Path) -> None:
    need_tool("cmake")
    need(GXX)
    folder = copied("embed_cpp", tmp_path)
    quick_poly(tmp_path / "poly")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    flags = ("-DCMAKE_CXX_FLAGS=-Werror", f"-DCMAKE_CXX_FLAGS_RELEASE={' '.join(quick(GXX))}")
    succeed(["cmake", "-B", "build", f"-DPOLY={tmp_path}/poly", *flags], cwd=folder)
    assert "heat.h" in succeed(["cmake", "--build", "build"], cwd=folder, env=environment)
    printed = succeed([folder / "build" / "plate"])
    assert "nine digits" in printed
    assert "refused: threads" in printed
    assert "Generating" not in succeed(["cmake", "--build", "build", "--", "-n"], cwd=folder, env=environment)
    (folder / "nests.py").touch()
    assert "Generating heat.h" in succeed(["cmake", "--build", "build", "--", "-n"], cwd=folder, env=environment)


def test_rust_through_the_c_abi(tmp_path: Path) -> None:
    need_tool("make")
    need(GCC)
    need_tool("rustc")
    assert "1000 values, from 1 down to 0.000003" in make(copied("embed_rust", tmp_path), "run")


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples").glob("embed_*")))
def test_every_example_is_tested(example: str) -> None:
    assert f'"{example}"' in Path(__file__).read_text()
