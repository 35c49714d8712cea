"""Elements of arrays in terms of C's variables: where each is in memory, and the names in its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add

from codegen.ir.expr import Load
from codegen.ir.integer import Int, Linear, Lookup, in_c, map_lookups, primary, product
from codegen.ir.program import Buffer
from codegen.ir.ranges import rejoined
from codegen.names import c_name


@dataclass(frozen=True)
class Element:
    """An array's element in terms of C's variables; a scalar has no indices."""

    array: str
    indices: tuple[Int, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset().union(*(index.names for index in self.indices))


@dataclass(frozen=True)
class ElementPrinter:
    """Prints elements, given the program's buffers, the values of sizes and iterators, and the variables that hold
    elements."""

    buffers: Mapping[str, Buffer]
    values: Mapping[str, Int]
    held: Mapping[Element, str] = field(default_factory=dict)

    def at(self, load: Load) -> Element:
        """The element that the statement accesses."""
        return Element(load.array, tuple(map_lookups(i.substitute(self.values), self._flat) for i in load.indices))

    def _flat(self, lookup: Lookup) -> Lookup:
        """The element that is looked up by its C name and its offset."""
        buffer = self.buffers[lookup.array]
        indices = (map_lookups(index, self._flat) for index in lookup.indices)
        steps = zip(indices, strides(buffer), strict=True)
        offset = reduce(add, (index * stride for index, stride in steps))
        return Lookup(c_name(buffer.name), (offset,), Linear())

    def element(self, element: Element) -> str:
        """`A[i*N + j]`, or a scalar's name."""
        buffer = self.buffers[element.array]
        if buffer.kind == "scalar" or (buffer.variable and not buffer.shape):
            return c_name(buffer.name)
        return f"{c_name(buffer.name)}[{self.offset(element)}]"

    def offset(self, element: Element) -> str:
        """The offset of an element in its array: `i*N + j`."""
        parts = [_scaled(index, stride) for index, stride in self._places(element)]
        return " + ".join(part for part in parts if part != "0").replace("+ -", "- ") or "0"

    def offset_names(self, element: Element) -> frozenset[str]:
        """The names in an element's offset."""
        return frozenset().union(*(_scaled_names(index, stride) for index, stride in self._places(element)))

    def _places(self, element: Element) -> list[tuple[Int, Int]]:
        """The indices and their strides; the quotient and the remainder of a flattened loop are one index."""
        found: list[tuple[Int, Int]] = []
        for index, stride in zip(element.indices, strides(self.buffers[element.array]), strict=True):
            found.append((index, stride))
            if len(found) > 1 and (one := _one_index(*found[-2:])) is not None:
                found[-2:] = [(one, stride)]
        return found

    def element_names(self, element: Element) -> frozenset[str]:
        """The names in an element's text."""
        if element in self.held:
            return frozenset({self.held[element]})
        return frozenset({c_name(self.buffers[element.array].name)}) | self.offset_names(element)


def strides(buffer: Buffer) -> tuple[Int, ...]:
    """The stride of each dimension in elements, in terms of C's variables."""
    if buffer.layout is not None:
        return buffer.layout
    if buffer.strides is not None:
        return tuple(Linear.of(int(s)) if s.isdigit() else Linear.name(c_name(s)) for s in buffer.strides)
    shape = tuple(map(in_c, buffer.shape))
    return tuple(product(shape[dimension + 1 :]) for dimension in range(len(shape)))


def _one_index(outer: tuple[Int, Int], inner: tuple[Int, Int]) -> Int | None:
    """The index that counts the elements of two dimensions: `i` for `[i/7, i % 7]` of rows of seven elements.

    None if it has all that the two have: `i/14` for `[i/196, i/14 - 14*(i/196)]` has less.
    """
    (first, apart), (second, stride) = outer, inner
    if not apart.number or not stride.number or apart.number % stride.number:
        return None
    both = first * (apart.number // stride.number) + second
    joined = rejoined(both)
    cancels = len(both.terms) < len({atom for index in (first, second) for atom, _ in index.terms})
    return joined if cancels or joined != both else None


def _scaled(index: Int, stride: Int) -> str:
    """`index*stride`, multiplied out if one of them is constant."""
    if stride.number is not None or index.number is not None:
        return str(index * stride)
    return f"{primary(index)}*{primary(stride)}"


def _scaled_names(index: Int, stride: Int) -> frozenset[str]:
    known = stride.number is not None or index.number is not None
    return (index * stride).names if known else index.names | stride.names
