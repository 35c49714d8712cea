"""Pictures in files: the suffix selects the format. What would fail at the end is found before the work begins."""

from __future__ import annotations

import re
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from codegen.errors import ArgumentError
from poly.embed.files import write_output
from poly.pictures.scene import Scene
from poly.pictures.style import SETTINGS, with_variables
from poly.pictures.svg import svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
REMEDY = "pip install 'poly-loops[report]'"


def need(package: str, what: str) -> None:
    """Raise ArgumentError, with the remedy, if a package is missing that `what` needs."""
    if find_spec(package) is None:
        raise ArgumentError(f"{what} needs the package {package}: {REMEDY}.")


def settled() -> None:
    """Let matplotlib draw in files alone, in our style."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(SETTINGS)


def save(picture: Figure | Scene, path: Path, dpi: float = 160) -> None:
    """Write a picture atomically; without a suffix it becomes a PNG. Raises FileError."""
    path = path if path.suffix else path.with_suffix(".png")
    if isinstance(picture, Scene) and path.suffix == ".svg":
        write_output(path, svg(picture))
    else:
        write_output(path, _bytes(picture, path.suffix.removeprefix("."), dpi))


def _bytes(picture: Figure | Scene, kind: str, dpi: float) -> bytes:
    from poly.pictures.canvas import figure

    settled()
    made = figure(picture) if isinstance(picture, Scene) else picture
    written = BytesIO()
    made.savefig(written, format=kind, dpi=dpi, metadata={"CreationDate": None} if kind == "pdf" else None)
    return written.getvalue()


def inline(made: Figure, name: str) -> str:
    """A chart as an SVG element of a page, whose colours follow the reader's scheme; `name` is in all its ids."""
    picture = BytesIO()
    made.savefig(picture, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = picture.getvalue().decode()
    return with_variables(_own_ids(text[text.index("<svg") :].rstrip(), name))


def _own_ids(text: str, name: str) -> str:
    """The SVG without ids that nothing refers to, and with its name in the others: ids of a page are unique."""
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", text)
    return re.sub(r'((?:url\(|href=")#)', rf"\g<1>{name}-", text)
