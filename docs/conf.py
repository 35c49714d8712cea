"""How Sphinx makes a site of the pages (`make docs`): the Markdown files as they are, and the docstrings in api.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import poly

project = "poly"
author = "the authors of poly"
version = release = poly.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
# The sources are all Markdown pages of the repository, so that links between them hold.
include_patterns = ["*.md", "docs/*.md"]
root_doc = "docs/index"
html_theme = "furo"


html_title = f"poly {poly.version.RELEASE}"
# Headings are linked to as on the pages of a repository.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# A name in single backquotes is code, as in Markdown.
default_role = "code"
# Some blocks leave parts of a text out, so that they are not quite C; some pages leave levels of headings out.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_use_rtype = False
python_maximum_signature_line_length = 100

SECTION = re.compile(r"(Args|Returns|Raises|Yields|Attributes)( \(.*\))?:$")
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)\)")


def with_examples(lines: list[str]) -> Iterator[str]:
    """The lines of a docstring, with a mark before each example: an indented paragraph that is no part of a section."""
    section = example = False
    for number, line in enumerate(lines):
        if SECTION.match(line):
            section = True
        elif line and not line.startswith(" "):
            section = example = False
        begins = line.startswith("    ") and number and not lines[number - 1]
        if begins and not section and not example:
            example = True
            yield from ("::", "")
        yield line


def mark_examples(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Examples in docstrings are indented, as in Markdown."""
    lines[:] = with_examples(lines)


def without_folders(app: Any, page: str, source: list[str]) -> None:
    """A link to a folder of the repository, of which there is no page, becomes its text."""
    here = Path(app.env.doc2path(page)).parent
    source[0] = LINK.sub(lambda link: link[1] if (here / link[2]).is_dir() else link[0], source[0])


def setup(app: Any) -> None:
    """Examples are marked before napoleon replaces the sections."""
    app.connect("autodoc-process-docstring", mark_examples, priority=100)
    app.connect("source-read", without_folders)
