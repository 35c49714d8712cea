"""Which records are meant: those of a nest, a target, a machine, …"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RecordFilter:
    """What a record's key must be; None is anything. `outdated` means those of any engine but this one.

    `machines` names CPUs and devices, of which it must be one.
    """

    id: int | None = None
    nest: str | None = None
    target: str | None = None
    machines: tuple[str, ...] | None = None
    outdated: str | None = None

    def where(self) -> tuple[str, tuple[str | int, ...]]:
        """A condition of SQL on the table `keys`, and the values for its question marks."""
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
