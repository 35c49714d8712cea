"""The body of a kernel: loops and statements as one work-group runs them."""

from __future__ import annotations

from dataclasses import dataclass, field

from codegen.loops import Writer


@dataclass
class DeviceWriter(Writer):
    """Walks what one work-group runs.

    The group has `items` work-items. `declarations` are lines that belong at the kernel's top.
    """

    items: int = 1
    declarations: list[str] = field(default_factory=list)
