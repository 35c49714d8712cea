"""Select records: those of a nest, a target, a machine, …"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RecordFilter:
    """Conditions on a record's key; None accepts anything. `outdated` selects all engines except the one given.

    `machines` lists the accepted CPUs and devices.
    """

    id: int | None = None
    nest: str | None = None
    target: str | None = None
    machines: tuple[str, ...] | None = None
    outdated: str | None = None

    def where(self) -> tuple[str, tuple[str | int, ...]]:
        """An SQL condition on the table `keys`, and the values for its placeholders."""
        conditions = {
            "keys.id = ?": self.id,
            "keys.name = ?": self.nest,
            "keys.target = ?": self.target,
            "keys.engine <> ?": self.outdated,
        }
        used = {text: value for text, value in conditions.items() if value is not None}
        values = (*used.values(), *(self.machines or ()))
        if self.machines is not None:
            used[f"keys.machine IN ({', '.join('?' * len(self.machines))})"] = ""
        return " AND ".join(used) or "1", values
