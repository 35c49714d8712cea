"""Imports go down the layers only, without cycles; `import poly` does not import the slow packages."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import poly
from poly import siblings
from poly.siblings import SIBLINGS

LAYERS = ("microkernels", "codegen", "poly", "benchmarks")
"""Lowest first."""


def module_name(root: Path, path: Path) -> str:
    """`poly/ir/tree.py` is `poly.ir.tree`, `poly/__init__.py` is `poly`."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(root: Path) -> dict[str, Path]:
    """Every module of the four packages."""
    return {module_name(root, path): path for layer in LAYERS for path in sorted((root / layer).rglob("*.py"))}


def imported(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules of ours that a file imports anywhere in it: in functions and under TYPE_CHECKING too."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            source = absolute(name, path, node)
            for alias in node.names:
                submodule = f"{source}.{alias.name}"
                if submodule in known:
                    yield submodule
                elif source in known:
                    yield source


def absolute(name: str, path: Path, node: ast.ImportFrom) -> str:
    """The full name of what follows `from`."""
    if not node.level:
        return node.module or ""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def graph(root: Path) -> dict[str, set[str]]:
    """The imports of each module, itself left out."""
    known = modules(root)
    return {name: set(imported(name, path, known)) - {name} for name, path in known.items()}


def upward(imports: Mapping[str, set[str]]) -> list[str]:
    """The imports that go up the layers."""
    layer = {name: LAYERS.index(name.split(".")[0]) for name in imports}
    return [f"{a} imports {b}" for a, targets in imports.items() for b in sorted(targets) if layer[b] > layer[a]]


def between_parts(folder: str, imports: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The same for what is right below a folder: its files, and its folders each as a whole."""

    def part(name: str) -> str | None:
        inside = name.removeprefix(f"{folder}.")
        return None if inside == name else f"{folder}.{inside.partition('.')[0]}"

    found: dict[str, set[str]] = {}
    for name, targets in imports.items():
        own = part(name)
        if own is not None:
            others = {other for target in targets if (other := part(target)) not in (None, own)}
            found.setdefault(own, set()).update(others)
    return found


def folders(imports: Mapping[str, set[str]]) -> list[str]:
    return sorted(
        {".".join(parts[:depth]) for name in imports for parts in [name.split(".")] for depth in range(1, len(parts))}
    )


def circle(imports: Mapping[str, set[str]]) -> list[str]:
    """The modules of one circle, or none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_run_down(project: Path) -> None:
    imports = graph(project)
    assert {name.split(".")[0] for name in imports} == set(LAYERS)
    assert upward(imports) == []


def test_no_circle(project: Path) -> None:
    assert circle(graph(project)) == []


def test_no_circle_of_folders(project: Path) -> None:
    """Imports between what is right below a folder, files and folders, run one way, at every depth."""
    imports = graph(project)
    found = {folder: between_parts(folder, imports) for folder in folders(imports)}
    assert {"poly", "poly.autoschedule", "codegen.package"} <= set(found)
    assert {"poly.ir", "poly.lowering", "poly.kernel"} <= set(found["poly"]), "folders, and the files beside them"
    assert {folder: circular for folder, parts in found.items() if (circular := circle(parts))} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import poly.nest", {"poly.nest"}),
        ("from poly import nest", {"poly.nest"}),
        ("from poly import f32", {"poly"}),
        ("from poly.nest import Nest", {"poly.nest"}),
        ("from . import program", {"codegen.program"}),
        ("from .program import Program", {"codegen.program"}),
        ("def f():\n    from poly.nest import Nest", {"poly.nest"}),
        ("if TYPE_CHECKING:\n    import poly.nest", {"poly.nest"}),
        ("import numpy", set()),
    ],
)
def test_every_import_is_seen(tmp_path: Path, source: str, found: set[str]) -> None:
    files = {"poly/__init__.py": "", "poly/nest.py": "", "codegen/program.py": "", "codegen/here.py": source}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert graph(tmp_path)["codegen.here"] == found


def test_tests_import_helpers_and_no_other_tests(project: Path) -> None:
    """What two tests need is in tests/support."""
    files = {f"{path.parent.name}.{path.stem}": path for path in (project / "tests").rglob("*.py")}
    tests = {path.stem: path for path in files.values() if path.stem.startswith("test_")}
    assert len(tests) > 100
    assert {name: found for name, path in files.items() if (found := sorted(imported(name, path, tests)))} == {}


def test_an_arrow_upward_is_found() -> None:
    assert upward({"codegen.c": {"poly.nest"}, "poly.nest": {"microkernels.isa"}, "microkernels.isa": set()}) == [
        "codegen.c imports poly.nest"
    ]


def test_a_circle_is_found() -> None:
    assert set(circle({"poly.a": {"poly.b"}, "poly.b": {"poly.c"}, "poly.c": {"poly.b"}})) == {"poly.b", "poly.c"}


def test_a_circle_of_folders_is_found() -> None:
    """One that no two files make."""
    imports = {"poly.ir.a": {"poly.low.a"}, "poly.low.b": {"poly.ir.b"}, "poly.low.a": set(), "poly.ir.b": set()}
    assert circle(imports) == []
    assert folders(imports) == ["poly", "poly.ir", "poly.low"]
    assert set(circle(between_parts("poly", imports))) == {"poly.ir", "poly.low"}


def test_a_name_is_that_of_one_class(project: Path) -> None:
    """Two that differ have different names: who reads `Part` need not ask which one."""
    layers = [project / layer for layer in ("microkernels", "codegen", "poly")]
    taken_along = project / "codegen/package/wheel/runtime.py"  # by packages, in which there is no poly
    files = [path for layer in layers for path in layer.rglob("*.py") if path != taken_along]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text()))]
    names = Counter(n.name for n in nodes if isinstance(n, ast.ClassDef) and not n.name.startswith("_"))
    assert len(names) > 300
    assert [name for name, count in names.items() if count > 1] == []


def loaded(command: str, project: Path) -> set[str]:
    """The packages that a Python program loads, those of the standard library left out."""
    code = f"import sys\n{command}\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    names = {name.partition(".")[0] for name in done.stdout.splitlines()}
    return {name for name in names - sys.stdlib_module_names if not name.startswith("_")}


def test_importing_poly_is_cheap(project: Path) -> None:
    """It loads no package but itself: what a name needs is imported with the name."""
    here = {"sitecustomize", "usercustomize"}  # what an environment adds to every program
    assert loaded("import poly", project) - loaded("", project) - here == {"poly"}
    used = loaded("from poly import *", project)
    assert {"islpy", "numpy"} <= used
    assert used & {"scipy", "matplotlib", "cgen", "click", "rich", "pyopencl", "archspec"} == set()


def test_the_help_imports_no_command(project: Path) -> None:
    run = "import poly.cli\ntry: poly.cli.poly(['--help'])\nexcept SystemExit: pass"
    assert loaded(run, project) & {"numpy", "islpy", "rich", "benchmarks", "codegen", "pyopencl"} == set()


def test_a_name_is_imported_from_where_the_types_say(project: Path) -> None:
    """What type checkers read in `poly/__init__.py` is what Python finds."""
    tree = ast.parse((project / "poly" / "__init__.py").read_text())
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    told = {
        alias.asname or alias.name: f"{node.module}:{alias.name}" if alias.asname else node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == poly.LATER
    assert told.keys() == set(poly.__all__) - {"__version__"}
    assert all(getattr(poly, name) is not None for name in told)


def test_functions_are_not_hidden_by_modules_of_their_names(project: Path) -> None:
    names = "poly.machine, poly.tune, poly.microkernel"
    code = f"import {names}; print(*map(callable, ({names})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 3


@pytest.mark.parametrize("name", SIBLINGS)
def test_a_file_that_hides_a_package_is_named(name: str, project: Path, tmp_path: Path) -> None:
    """Like one in the folder where Python is started. It is not run."""
    file = tmp_path / f"{name}.py"
    file.write_text("print('run')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(project)))}
    command = [sys.executable, "-c", "import poly"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    (last,) = done.stderr.splitlines()[-1:]
    assert done.returncode == 1 and not done.stdout
    assert last.startswith(f"ImportError: {file} hides poly's package {name!r} in {project / name}: rename it, or ")


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "SIBLINGS", ("no_such_package",))
    with pytest.raises(ImportError, match=f"'no_such_package' is missing from {siblings.HOME}: install poly again"):
        siblings.need_siblings()
    assert siblings.hidden("no_such_package") is None and siblings.hidden("codegen") is None
