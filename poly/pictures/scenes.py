"""Pictures of iterations for files: with a title, a legend, and what a reader must know."""

from __future__ import annotations

from poly.pictures.flow import dependence_picture, notes
from poly.pictures.instance import SmallInstance
from poly.pictures.lattice import drawn, with_notes
from poly.pictures.order import legend, order, undrawn
from poly.pictures.scene import Scene


def dependences_scene(instance: SmallInstance, names: tuple[str, ...] = ()) -> Scene:
    """The dependences with title, legend and notes."""
    made = dependence_picture(instance, names)
    words = [f"Drawn on {instance.sizes}.", *notes(made), *undrawn(instance.nest)]
    return with_notes(drawn(made.lattice), f"Dependences of {instance.nest.name}", words, made.legend)


def order_scene(instance: SmallInstance, names: tuple[str, ...] = ()) -> Scene:
    """The order of iterations with title, legend and notes."""
    made = order(instance, names)
    words = [f"Drawn on {instance.text}.", *undrawn(instance.schedule.nest)]
    return with_notes(drawn(made), f"The order of {instance.nest.name}", words, legend(made))
