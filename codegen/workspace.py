"""Where scratch arrays lie in the workspace that the caller hands over: shared ones, then a part for each thread."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from codegen.affine import Affine
from codegen.integer import room, scaled
from codegen.names import c_name
from codegen.program import Buffer, Program, Workspace

ALIGN = "static inline int64_t align64(int64_t bytes) { return (bytes + 63)/64*64; }"

TOO_MANY = "INT64_MAX/2"
"""More bytes than there are: whatever is to allocate them fails."""

SAFE_FACTOR = 1 << 12
"""One size or extent, at most 2^48, times that is far from overflow."""


@dataclass(frozen=True)
class Layout:
    """The scratch arrays of a program, locals of the nest among the shared ones."""

    shared: tuple[Workspace, ...]
    private: tuple[Workspace, ...]

    @staticmethod
    def of(program: Program) -> Layout:
        placed = {w.name for w in program.workspaces}
        local = tuple(
            Workspace(b.name, b.dtype, elements(b), private=False)
            for b in program.buffers
            if b.kind == "local" and b.name not in placed
        )
        shared = tuple(w for w in program.workspaces if not w.private)
        return Layout(local + shared, tuple(w for w in program.workspaces if w.private))

    def needed(self, limited: bool) -> str:
        """A C expression for the bytes of a call with so many `threads`; TOO_MANY where it would overflow.

        `limited` says that arrays and locals are known to have far fewer bytes than would.
        """
        parts = [self.shared_bytes] * bool(self.shared) + [f"threads*({self.private_bytes})"] * bool(self.private)
        total = " + ".join(parts) or "0"
        large = [most for w in self.shared if (most := _most_bytes(w.count, w.dtype.size, limited))]
        private = (_most_bytes(w.count, w.dtype.size, limited) for w in self.private)
        return _checked(total, *large, *(f"(double)threads*{most}" for most in private if most))

    @property
    def shared_bytes(self) -> str:
        return total_bytes(self.shared)

    @property
    def private_bytes(self) -> str:
        return total_bytes(self.private)


def elements(buffer: Buffer) -> str:
    """How many elements a local array has, as C text."""
    return room([str(extent.substitute({n: Affine.name(c_name(n)) for n in extent.names})) for extent in buffer.shape])


def total_bytes(workspaces: Sequence[Workspace]) -> str:
    """A C expression for the bytes of all, each rounded up to whole cache lines."""
    known = 0
    texts: list[str] = []
    for workspace in workspaces:
        if workspace.count.isdigit():
            known += (int(workspace.count) * workspace.dtype.size + 63) // 64 * 64
        else:
            count = workspace.count if re.fullmatch(r"[\w*]+", workspace.count) else f"({workspace.count})"
            texts.append(f"align64({count}*{workspace.dtype.size})")
    return " + ".join(texts + [str(known)] * (known > 0 or not texts))


def array_bytes(count: str, size: int) -> str:
    """A C expression for the bytes of `count` elements (a product) of a `size`; TOO_MANY where it would overflow."""
    return _checked(scaled(count, size), *filter(None, [_most_bytes(count, size, limited=False)]))


def _checked(total: str, *most: str) -> str:
    return f"{' + '.join(most)} < 4e18 ? {total} : {TOO_MANY}" if most else total


def _most_bytes(count: str, size: int, limited: bool) -> str | None:
    """A C expression, in floating point, for the bytes of an array; None where these are far from overflow."""
    factors = _factors(count)
    known = prod((int(factor) for factor in factors if factor.isdigit()), start=size)
    opened = sum(not factor.isdigit() for factor in factors)
    if known <= SAFE_FACTOR and (limited or opened <= 1):
        return None
    return f"{'*'.join(factor if factor.isdigit() else f'(double){factor}' for factor in factors)}*{size}"


def _factors(count: str) -> list[str]:
    """The factors of a product in C, of which each is a name, a number, a call or in parentheses."""
    factors = [""]
    for part in re.split(r"([*])", count):
        if part == "*" and factors[-1].count("(") == factors[-1].count(")"):
            factors.append("")
        else:
            factors[-1] += part
    return factors


def pointers(workspaces: Sequence[Workspace], base: str, names: Mapping[str, str]) -> list[str]:
    """C declarations of some of the arrays that lie one behind the other from `base`, a `char *`.

    `names` tells for each one that is wanted, by its C name, what to call it here.
    """
    lines = []
    for position, workspace in enumerate(workspaces):
        name = names.get(c_name(workspace.name))
        if name is not None:
            offset = total_bytes(workspaces[:position])
            address = base if offset == "0" else f"{base} + {offset}"
            c_type = workspace.dtype.c_name
            lines.append(f"{c_type} *restrict const {name} = ({c_type} *)__builtin_assume_aligned({address}, 64);")
    return lines
