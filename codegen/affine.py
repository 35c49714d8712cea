"""Integer affine expressions of names, as values: `2*i + M - 1`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Affine:
    """The sum of `coefficient * name` over `terms`, plus `constant`.

    `terms` is sorted by name and holds no zero coefficient, so equal expressions are equal values.
    `str` gives text that both isl and C read.
    """

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @staticmethod
    def make(terms: Mapping[str, int] | Iterable[tuple[str, int]], constant: int = 0) -> Affine:
        """Sum up terms of equal names and drop the zeros."""
        total: dict[str, int] = {}
        for name, coefficient in terms.items() if isinstance(terms, Mapping) else terms:
            total[name] = total.get(name, 0) + coefficient
        return Affine(tuple(sorted((n, c) for n, c in total.items() if c)), constant)

    @staticmethod
    def name(name: str) -> Affine:
        """The expression that is one name."""
        return Affine(((name, 1),))

    @staticmethod
    def of(value: Affine | int) -> Affine:
        """An integer, or an expression as it is."""
        return value if isinstance(value, Affine) else Affine((), int(value))

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.terms)

    @property
    def largest(self) -> int:
        """The integer in it that is furthest from 0, without its sign."""
        return max(abs(self.constant), *(abs(factor) for _, factor in self.terms), 0)

    def coefficient(self, name: str) -> int:
        """The factor of `name`; 0 where it doesn't occur."""
        return dict(self.terms).get(name, 0)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The integer for given values of all names."""
        return self.constant + sum(c * int(values[n]) for n, c in self.terms)

    def substitute(self, values: Mapping[str, Affine | int]) -> Affine:
        """Replace names by expressions or integers; names that are not in `values` stay."""
        result = Affine((), self.constant)
        for name, coefficient in self.terms:
            result = result + Affine.of(values.get(name, Affine.name(name))) * coefficient
        return result

    def __add__(self, other: Affine | int) -> Affine:
        other = Affine.of(other)
        return Affine.make(self.terms + other.terms, self.constant + other.constant)

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Affine | int) -> Affine:
        return self + -Affine.of(other)

    def __rsub__(self, other: int) -> Affine:
        return -self + other

    def __mul__(self, other: Affine | int) -> Affine:
        left, right = self, Affine.of(other)
        if right.terms:
            left, right = right, left
        if right.terms:
            raise TypeError(f"({self}) * ({other}) is not affine: one factor must be an integer")
        factor = right.constant
        return Affine.make(((n, c * factor) for n, c in left.terms), left.constant * factor)

    __radd__ = __add__
    __rmul__ = __mul__

    def __str__(self) -> str:
        text = ""
        for name, coefficient in self.terms:
            sign = "-" if coefficient < 0 else "+"
            factor = "" if abs(coefficient) == 1 else f"{abs(coefficient)}*"
            text += f" {sign} {factor}{name}"
        if self.constant or not self.terms:
            text += f" {'-' if self.constant < 0 else '+'} {abs(self.constant)}"
        text = text.strip()
        return "-" + text[2:] if text.startswith("- ") else text.removeprefix("+ ")

    __repr__ = __str__
