"""Which two loops of each statement are the axes of a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from codegen.errors import ArgumentError
from microkernels.errors import shown
from poly.ir.nest import Nest
from poly.pictures.lattice import LatticePanel, Place

MOST = 6
"""The most statements that are drawn: those with the most loops."""

Names = tuple[str, ...]


@dataclass(frozen=True)
class Projection:
    """The axes of each drawn statement, as positions of its iterators, the outer one (down) first; at most two each."""

    nest: Nest
    axes: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def rows(self) -> Names:
        """The statements that are rows of one panel, as they have no second axis."""
        return tuple(name for name, axes in self.axes if len(axes) < 2)

    @property
    def left_out(self) -> Names:
        """The statements that are not drawn."""
        return tuple(s.name for s in self.nest.statements if s.name not in dict(self.axes))

    @property
    def panels(self) -> tuple[LatticePanel, ...]:
        """A panel for all statements with one axis, if there are such ones, and one for each of the others."""
        made = []
        for name, axes in self.axes:
            statement = self.nest.statement(name)
            if len(axes) == 2:
                down, across = self._names(name)
                made.append(LatticePanel(_title(name, statement.text), down, across))
            elif name == self.rows[0]:
                names = dict.fromkeys(self._names(other)[0] for other in self.rows if dict(self.axes)[other])
                title = _title(name, statement.text) if len(self.rows) == 1 else "one row a statement"
                made.append(LatticePanel(title, "", ", ".join(names), self.rows if len(self.rows) > 1 else ()))
        return tuple(made)

    def _names(self, statement: str) -> Names:
        iterators = self.nest.statement(statement).iterators
        return tuple(iterators[at] for at in dict(self.axes)[statement])

    @property
    def owners(self) -> Names:
        """The statement of each panel; of the panel with one row a statement, the first one."""
        return tuple(name for name, axes in self.axes if len(axes) == 2 or name == self.rows[0])

    def words(self, place: Place) -> str:
        """`S1[i = 2, j = 3]`."""
        owner = self.owners[place.panel]
        name = owner if len(dict(self.axes)[owner]) == 2 else self.rows[place.row]
        values = (place.row, place.column) if name == owner and len(dict(self.axes)[name]) == 2 else (place.column,)
        return f"{name}[{', '.join(f'{i} = {v}' for i, v in zip(self._names(name), values, strict=False))}]"

    def place(self, statement: str, point: Sequence[int]) -> Place | None:
        """Where an iteration lies; None if its statement is not drawn."""
        axes = dict(self.axes).get(statement)
        if axes is None:
            return None
        if len(axes) == 2:
            return Place(self.owners.index(statement), point[axes[0]], point[axes[1]])
        return Place(self.owners.index(self.rows[0]), self.rows.index(statement), point[axes[0]] if axes else 0)


def _title(name: str, text: str) -> str:
    """A statement with its name, shortened to a panel's width."""
    words = f"{name}: {text}" if text else name
    return words if len(words) <= 44 else f"{words[:43]}…"


def choices(nest: Nest) -> tuple[Names, ...]:
    """The pairs of loops by which a picture can be drawn; empty if no statement has more than two loops."""
    many = [s.iterators for s in nest.statements if len(s.iterators) > 2]
    return tuple(dict.fromkeys(pair for iterators in many for pair in combinations(iterators, 2)))


def projection(nest: Nest, names: Sequence[str], scores: Mapping[tuple[str, tuple[int, ...]], float]) -> Projection:
    """Statements along the loops with these names, as far as they have them; else along their best-scored pair.

    Of equal pairs it is the innermost. `scores` are those of a statement's pairs of iterators; a missing one is 0.
    """
    ranked = sorted(nest.statements, key=lambda statement: -len(statement.iterators))[:MOST]
    kept = {statement.name for statement in ranked}
    axes = []
    for statement in nest.statements:
        if statement.name not in kept:
            continue
        rank = range(len(statement.iterators))
        pairs: list[tuple[int, ...]] = [*combinations(rank, 2)] or [tuple(rank)]
        named = [at for at in rank if statement.iterators[at] in names]

        def worth(pair: tuple[int, ...], name: str = statement.name, asked: Sequence[int] = named) -> tuple[int, float]:
            return sum(at in pair for at in asked), scores.get((name, pair), 0.0)

        axes.append((statement.name, max(reversed(pairs), key=worth)))
    return Projection(nest, tuple(axes))


def checked_loops(nest: Nest, text: str | None) -> Names:
    """The loops that a user names: `i,k`; none if there is no text.

    Raises:
        ArgumentError: not one or two different loops of a statement.
    """
    if text is None:
        return ()
    names = tuple(part.strip() for part in text.split(","))
    known = _known(statement.iterators for statement in nest.statements)
    if len(set(names)) != len(names) or len(names) > 2 or not all(name in known for name in names):
        some = ", ".join(known) or "none"
        raise ArgumentError(f"{shown(text)} are not two loops of {nest.name}, as in i,j. Its loops: {some}.")
    return names


def _known(iterators: Iterable[Names]) -> Names:
    return tuple(dict.fromkeys(name for names in iterators for name in names))
