"""What a schedule touches and when: each access as a relation from time to elements.

The time of an instance is a vector as in ir/paths.py: the values of the loops around it and its positions in sequences.
Instances run in the lexicographic order of these vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl


@dataclass(frozen=True)
class Touch:
    """One access of a statement or a copy: `{ [time] -> A[x0, x1] }`.

    `instances` is `{ [time] -> S[i, j] }`; `text` is the access as written. `loops` names the loop of each entry of the
    time (None: a position in a sequence). The first `depth` entries determine the instance or, if a microkernel
    computes the statement (`is_call`), its call. `role` is the operand's role in the microkernel (`left`, `right`).
    """

    statement: str
    text: str
    array: str
    writes: bool
    elements: isl.Map
    instances: isl.Map
    loops: tuple[str | None, ...]
    depth: int
    is_call: bool = False
    role: str | None = None


@dataclass(frozen=True)
class Memory:
    """An array or a copy: the bytes of an element, and the extent of each dimension (row-major)."""

    name: str
    size: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Trace:
    """Everything that a schedule without open sizes touches. All times are padded with zeros to `length` entries."""

    touches: tuple[Touch, ...]
    memories: tuple[Memory, ...]
    length: int

    def memory(self, array: str) -> Memory:
        return next(memory for memory in self.memories if memory.name == array)
