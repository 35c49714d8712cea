"""README's Python passes mypy in strict mode, and the public names have their types."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import poly

TYPES = """
reveal_type(poly.ArgumentError)
reveal_type(poly.explain)
reveal_type(matmul)
reveal_type(kernel)
reveal_type(device_kernel)
"""


@pytest.mark.slow
def test_the_readme_passes_mypy_and_names_have_types(project: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (project / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    file = tmp_path / "readme.py"
    file.write_text("\n".join(blocks) + TYPES)
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}", "--no-color-output"]
    done = subprocess.run([*command, str(file)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    told = re.findall(r'Revealed type is "(.*)"', done.stdout)
    ends = ("ArgumentError", "Explanation", "Function", "Kernel", "OpenCLKernel")
    assert len(told) == len(ends), done.stdout
    for text, end in zip(told, ends, strict=True):
        assert text.endswith(end) and "Any" not in text.split(" -> ")[-1], text


def test_each_package_says_that_it_has_types(project: Path) -> None:
    for package in ("microkernels", "codegen", "poly", "benchmarks"):
        assert (project / package / "py.typed").exists(), package


def test_both_views_of_the_scalar_types_are_complete(project: Path) -> None:
    """`poly/any_types.py` is for mypy, the classes in `poly/scalar_types.py` for others."""
    names = {name for name in poly.__all__ if isinstance(getattr(poly, name), poly.DType)}
    view = re.findall(r"^(\w+): Any$", (project / "poly" / "any_types.py").read_text(), re.MULTILINE)
    text = (project / "poly" / "scalar_types.py").read_text()
    assert set(view) == names == set(re.findall(r"^    class (\w+)\(_Argument, ", text, re.MULTILINE))
