"""docs/errors.md and docs/schedules.md run as they show, and leave nothing public out."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from headers import need_isa
from opencl_device import device
from pages import check_page, played

import poly
from benchmarks.published import stored
from microkernels import isa
from poly.machine import targets
from poly.schedules.steps import STEPS, own
from poly.version import RELEASE


def page(project: Path, name: str) -> Path:
    return project / "docs" / f"{name}.md"


def script(path: Path) -> ModuleType:
    """A program that makes a part of the pages, as a module."""
    name = f"docs_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_errors_are_as_shown(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    device()
    monkeypatch.setenv("POLY_RECORDS", "unused.sqlite")  # the page changes both, and they are put back
    monkeypatch.delenv("POLY_CC", raising=False)
    path = page(project, "errors")
    check_page(path, played(path.read_text(), tmp_path, capsys))


def test_each_error_and_warning_has_a_section_with_an_example(project: Path) -> None:
    public = {name for name in poly.__all__ if isinstance(getattr(poly, name), type)}
    kinds = {name for name in public if issubclass(getattr(poly, name), (poly.PolyError, Warning))}
    sections = re.split(r"^## ", page(project, "errors").read_text(), flags=re.MULTILINE)[1:]
    examples = {title: text for title, _, text in (section.partition("\n") for section in sections)}
    assert examples.keys() == kinds - {"PolyError"}
    for name, text in examples.items():
        assert re.search(rf"^```text\n(?:.*\n)*?{name}: ", text, re.MULTILINE), name
        assert "*What to do:*" in text, name


def test_extensions_are_as_shown(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (isa, own, targets):
        monkeypatch.setattr(module, "_OWN", {})
    monkeypatch.syspath_prepend(str(project / "examples" / "extending" / "src"))
    path = page(project, "extending")
    need_isa("avx2")  # its instruction set is for such CPUs
    check_page(path, played(path.read_text(), tmp_path, capsys))


def test_schedules_are_as_shown(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = page(project, "schedules")
    check_page(path, played(path.read_text(), tmp_path, capsys))


def test_each_step_has_a_section_with_loops_before_and_after_and_errors(project: Path) -> None:
    text = page(project, "schedules").read_text()
    sections = dict(re.findall(r"^## `(\w+)`\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL))
    assert sections.keys() == STEPS | {"loops"}
    assert re.findall(r"^\| \[`(\w+)`\]\(#(\w+)\) \|", text, re.MULTILINE) == [(name, name) for name in sections]
    for name, section in sections.items():
        assert len(re.findall(r"^```text\n(?:for |if |#)", section, re.MULTILINE)) >= 2, name
        assert "*Errors:*" in section and ("*Arguments:*" in section or "| argument |" in section), name


def test_pictures_are_drawn_and_shown(project: Path) -> None:
    folder = project / "docs" / "pictures"
    drawn = script(folder / "make.py").pictures()
    shown = re.findall(r"\]\(pictures/([\w.]+)\)", page(project, "schedules").read_text())
    assert sorted(shown) == sorted(drawn) == sorted(path.name for path in folder.glob("*.svg"))
    for name, text in drawn.items():
        assert (folder / name).read_text() == text, f"{name}: renew it with `python docs/pictures/make.py`"


def test_the_reference_has_each_public_name(project: Path) -> None:
    """Once each, where Sphinx puts its docstring; methods, and so steps, come with their class."""
    page_text = page(project, "api").read_text()
    described = re.findall(r"^\.\. auto(?:function|class|data|exception):: ([\w.]+)$", page_text, re.MULTILINE)
    assert len(set(described)) == len(described)
    assert {f"poly.{name}" for name in poly.__all__ if not name.startswith("_")} <= set(described)
    modules = [name.rpartition(".") for name in described]
    assert [name for folder, _, name in modules if not hasattr(importlib.import_module(folder), name)] == []


PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/*.md")
LAYERS = ("poly", "codegen", "microkernels", "benchmarks", "tests", "docs", "examples")


def pages(project: Path) -> list[Path]:
    return [path for pattern in PAGES for path in sorted(project.glob(pattern))]


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_lead_somewhere(project: Path) -> None:
    links = [(page, link) for page in pages(project) for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text())]
    inside = [(page, *link.partition("#")[::2]) for page, link in links if "://" not in link]
    assert len(inside) > 50
    targets = [(page, (page.parent / file) if file else page, anchor) for page, file, anchor in inside]
    assert [f"{page.name}: {path.name}" for page, path, _ in targets if not path.exists()] == []
    assert [f"{page.name}: {path.name}#{at}" for page, path, at in targets if at and at not in anchors(path)] == []


def test_files_that_the_pages_name_exist(project: Path) -> None:
    path = re.compile(rf"`(?:python )?((?:{'|'.join(LAYERS)})/[\w./]+)`")
    named = [(page, name) for page in pages(project) for name in path.findall(page.read_text())]
    assert len(named) > 40
    gone = {"docs/map.md"}  # the changelog says what became of it
    assert [f"{page.name}: {name}" for page, name in named if not (project / name).exists() and name not in gone] == []


def test_results_are_those_of_the_stored_runs(project: Path) -> None:
    results = script(project / "docs" / "make_results.py")
    for path, text in results.files(project, stored(project / "docs" / "results")):
        assert path.read_text() == text, f"python docs/make_results.py renews {path.name}"


def test_the_release_is_the_same_everywhere(project: Path) -> None:
    assert f"## {RELEASE} " in (project / "CHANGELOG.md").read_text()
    assert f"\nversion: {RELEASE}\n" in (project / "CITATION.cff").read_text()
    for file in ("pyproject.toml", "benchmarks/pyproject.toml"):
        assert f'\nfallback-version = "{RELEASE}.dev0"\n' in (project / file).read_text(), file
