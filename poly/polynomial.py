"""Polynomials in the sizes, as values: strides and offsets of dense arrays (`M*N + 2*N`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codegen.affine import Affine

Monomial = tuple[str, ...]


@dataclass(frozen=True)
class Polynomial:
    """The sum of `coefficient * product of names` over `terms`, which holds no zero coefficient and is sorted."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @staticmethod
    def make(terms: Mapping[Monomial, int]) -> Polynomial:
        return Polynomial(tuple(sorted((m, c) for m, c in terms.items() if c)))

    @staticmethod
    def of(value: Polynomial | Affine | int | str) -> Polynomial:
        match value:
            case Polynomial():
                return value
            case Affine(terms, constant):
                return Polynomial.make({(n,): c for n, c in terms} | {(): constant})
            case str():
                return Polynomial((((value,), 1),))
        return Polynomial.make({(): int(value)})

    @property
    def constant(self) -> int | None:
        """The integer that it is, or None where a name occurs."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for monomial, _ in self.terms for name in monomial)

    def coefficient(self, name: str) -> Polynomial:
        """What `name` is multiplied by, where it occurs linearly."""
        found = {m: c for m, c in self.terms if name in m}
        return Polynomial.make({tuple(n for n in m if n != name): c for m, c in found.items()})

    def without(self, name: str) -> Polynomial:
        """The terms in which `name` doesn't occur."""
        return Polynomial(tuple((m, c) for m, c in self.terms if name not in m))

    def renamed(self, names: Mapping[str, str]) -> Polynomial:
        """The same with other names; those that `names` doesn't have stay."""
        return Polynomial.make({tuple(sorted(names.get(n, n) for n in monomial)): c for monomial, c in self.terms})

    def __add__(self, other: Polynomial | Affine | int | str) -> Polynomial:
        total = dict(self.terms)
        for monomial, coefficient in Polynomial.of(other).terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return Polynomial.make(total)

    def __mul__(self, other: Polynomial | Affine | int | str) -> Polynomial:
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in Polynomial.of(other).terms:
                monomial = tuple(sorted(left + right))
                total[monomial] = total.get(monomial, 0) + a * b
        return Polynomial.make(total)

    def __str__(self) -> str:
        """C text; a sum is not parenthesised."""
        text = ""
        for monomial, coefficient in sorted(self.terms, key=lambda term: (-len(term[0]), term[0])):
            factors = [str(abs(coefficient))] if abs(coefficient) != 1 or not monomial else []
            text += f" {'-' if coefficient < 0 else '+'} {'*'.join([*factors, *monomial])}"
        text = text.strip()
        return ("-" + text[2:] if text.startswith("- ") else text.removeprefix("+ ")) or "0"
