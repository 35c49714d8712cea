"""The place where a nest's libraries are timed: a child process, the trusted result, and the arrays."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from poly.measure.child import Child, Died
from poly.measure.timer import Timer, Timing
from poly.measure.trusted import Recipe


class Station:
    """Times libraries of one nest, in a folder for its files. `patience` is that of `Timer`.

    The child process starts at once; the trusted result and the arrays come with `prepare`, or with the first library.
    """

    def __init__(self, folder: Path, patience: float) -> None:
        self.folder = folder
        self._patience = patience
        self._child = Child(folder)
        self._timer: Timer | None = None

    @property
    def prepared(self) -> bool:
        return self._timer is not None

    def start(self) -> None:
        """Start the child process ahead of its first order, which reports why if that fails."""
        with suppress(Died):
            self._child.start()

    def prepare(self, recipe: Recipe) -> None:
        """Compute the trusted result. Raises SearchError if the nest itself cannot be measured."""
        self._timer = Timer(self._child, recipe.prepared(self._child, self.folder), self._patience)

    def timing(self, library: Path, rival: Path | None, expected: float, samples: int) -> Timing:
        """Time a library whose calls are expected to take some seconds, in turn with a rival if there is one.

        Without a rival, it gets a number of samples.
        """
        assert self._timer is not None, "the station is prepared"
        if rival is None:
            return self._timer.alone(library, expected, samples)
        return self._timer.against(rival, library, expected)

    def pause(self) -> None:
        """End the child process, whose arrays take memory; the next library starts another."""
        self._child.close()

    def close(self) -> None:
        """End the child process, whatever it does."""
        self._child.close(kill=True)
