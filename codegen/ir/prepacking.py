"""A program whose panels of an array are filled beforehand: one program fills them, the other one reads them.

                                  gemm_pack_B(B, B_panels):
gemm(A, B, C):                      pack B
  pack B                  ->
  for i_tile: …                   gemm(A, C, B_panels):
                                    for i_tile: …
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from codegen.ir.integer import Linear
from codegen.ir.loop_ir import names, restricted
from codegen.ir.program import Buffer, Instructions, Program, Workspace
from codegen.names import c_name
from microkernels.dtypes import DType


def panels_of(program: Program, array: str) -> tuple[Workspace, ...]:
    """The panels that a program fills with elements of an array."""
    return tuple(workspace for workspace in program.workspaces if workspace.copied == array)


def filling_name(kernel: str, array: str) -> str:
    """The name of the program that fills the panels of an array for a kernel."""
    return f"{kernel}_pack_{array}"


def open_sizes(program: Program, array: str) -> tuple[str, ...]:
    """The sizes on which the panels of an array depend: how many there are, or what is in them."""
    panels = panels_of(program, array)
    filled = {panel.filled_by for panel in panels}
    bodies = [program.statements[name].body for name in filled]
    own = [names(node) for body in bodies if isinstance(body, Instructions) for node in body.body(bounds=False).nodes]
    used = names(restricted(program.loops, filled.__contains__)).union(*own, *(panel.count.names for panel in panels))
    return tuple(size for size in program.sizes if {size, c_name(size)} & used)


def filling(program: Program, array: str) -> Program:
    """The program that fills all panels of an array, which are its outputs, and does nothing else.

    Their extents must be known, and what is copied must not depend on open sizes.
    """
    panels = panels_of(program, array)
    filled = {panel.filled_by for panel in panels}
    return replace(
        program,
        name=filling_name(program.name, array),
        sizes=(),
        buffers=(*(b for b in program.buffers if b.name == array), *(_buffer(panel, "out") for panel in panels)),
        loops=restricted(program.loops, filled.__contains__),
        workspaces=(),
        text="",
        comment=f"The panels of {array} that {program.name} reads.",
    )


def reading(program: Program, array: str) -> Program:
    """The program without these copies: it takes the panels, behind all other arguments, in place of the array.

    The loops that fill the panels must be outside all others, and nothing else may read the array.
    """
    panels = panels_of(program, array)
    filled = {panel.filled_by for panel in panels}
    return replace(
        program,
        buffers=(*(b for b in program.buffers if b.name != array), *(_buffer(panel, "in") for panel in panels)),
        loops=restricted(program.loops, lambda statement: statement not in filled),
        workspaces=tuple(workspace for workspace in program.workspaces if workspace not in panels),
        comment=f"{program.comment} It reads panels of {array} that were filled before.",
    )


def _buffer(panel: Workspace, kind: Literal["in", "out"]) -> Buffer:
    if panel.count.number is None:
        raise ValueError(f"the number of elements of {panel.name} is not known")
    return panel_buffer(panel.name, panel.dtype, panel.count.number, kind)


def panel_buffer(name: str, dtype: DType, count: int, kind: Literal["in", "out"]) -> Buffer:
    """Panels as an argument of the program that fills them (`out`), or of the one that reads them (`in`)."""
    return Buffer(name, dtype, (Linear.of(count),), kind, held=kind == "in")
