"""The pictures of a report as files: the same as on its page, each with a title and what a reader must know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from poly.pictures.charts import Heading
from poly.pictures.files import save
from poly.pictures.levels import levels
from poly.pictures.roofline import roofline
from poly.pictures.scene import Scene
from poly.pictures.scenes import dependences_scene, order_scene
from poly.pictures.trail import trail
from poly.report.content import Content

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_pictures(content: Content, folder: Path, kind: str) -> Iterator[Path]:
    """Write the pictures that there are into a folder, which exists, and give their paths. Raises FileError."""
    for name, picture in pictures(content):
        path = folder / f"{name}.{kind}"
        save(picture, path)
        yield path


def pictures(content: Content) -> Iterator[tuple[str, Figure | Scene]]:
    """The pictures by name."""
    explained, cpu, nest = content.explanation, content.machine.cpu, content.nest
    if content.instance is not None:
        yield "dependences", dependences_scene(content.instance, content.loops)
        yield "order", order_scene(content.instance, content.loops)
    if explained is not None:
        yield "levels", levels(explained, cpu)
        roof = roofline({nest.name: explained}, cpu)
        if roof is not None:
            yield "roofline", roof
    sizes = ", ".join(f"{name} = {value}" for name, value in nest.fixed)
    tried = trail(content.trials, Heading(f"Tuning of {nest.name}", "; ".join(filter(None, (sizes, cpu)))))
    if tried is not None:
        yield "trail", tried
