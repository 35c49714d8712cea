"""Loops of a planned tree: groups of axes as one loop, and bands from the text of their functions."""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from poly.nest import Nest, Statement
from poly.roles import Axis
from poly.tree import Band, Leaf, Node


@dataclass(frozen=True)
class Loop:
    """A flattened group of axes: its name, the function of the iterators that it counts, and its extent."""

    name: str
    function: str
    extent: int


def joined(axes: list[Axis]) -> Loop:
    """The axes as one loop, the last the fastest."""
    weight, terms = 1, []
    for axis in reversed(axes):
        terms.append(axis.iterator if weight == 1 else f"{weight}{axis.iterator}")
        weight *= axis.guess
    return Loop("".join(axis.iterator for axis in axes), " + ".join(reversed(terms)), weight)


def band(nest: Nest, s: Statement, name: str, function: str, body: Node | None = None, parallel: bool = False) -> Band:
    text = f"[{', '.join(nest.sizes)}] -> {{ {s.name}[{', '.join(s.iterators)}] -> [({function})] }}"
    return Band(name, ((s.name, isl.PwAff(text)),), body or Leaf(s.name), parallel)
