"""The layout of scratch arrays in the workspace that the caller passes: shared ones, then a part for each thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codegen.ir.integer import Int, Linear, element_count, factors_of, in_c, primary, quotient
from codegen.ir.program import Buffer, Program, Workspace
from codegen.names import c_name
from codegen.style import Line

LINE = 64
"""The alignment of scratch arrays in bytes."""

TOO_MANY = "INT64_MAX/2"
"""More bytes than any allocation can have: the attempt fails."""

SAFE_FACTOR = 1 << 12
"""A size or extent, at most 2^48, times this factor is far from overflow."""


@dataclass(frozen=True)
class Layout:
    """The scratch arrays of a program, with the nest's locals among the shared ones."""

    shared: tuple[Workspace, ...]
    private: tuple[Workspace, ...]

    @staticmethod
    def of(program: Program) -> Layout:
        placed = {w.name for w in program.workspaces}
        local = tuple(
            Workspace(b.name, b.dtype, elements(b), private=False)
            for b in program.buffers
            if b.kind == "local" and b.name not in placed and not b.variable
        )
        shared = tuple(w for w in program.workspaces if not w.private)
        return Layout(local + shared, tuple(w for w in program.workspaces if w.private))

    def needed(self, limited: bool) -> str:
        """A C expression for the bytes of a call with `threads` threads; TOO_MANY if they would overflow.

        `limited` says that arrays and locals are known to be too small for an overflow.
        """
        total = self.bytes_of("threads")
        large = [most for w in self.shared if (most := _most_bytes(w.count, w.dtype.size, limited))]
        private = (_most_bytes(w.count, w.dtype.size, limited) for w in self.private)
        return _checked(total, *large, *(f"(double)threads*({most})" for most in private if most))

    def bytes_of(self, threads: str) -> Int:
        """The bytes of a call with so many threads."""
        return self.shared_bytes + Linear.name(threads) * self.private_bytes

    @property
    def shared_bytes(self) -> Int:
        return total_bytes(self.shared)

    @property
    def private_bytes(self) -> Int:
        return total_bytes(self.private)


def elements(buffer: Buffer) -> Int:
    """The number of elements of a local array."""
    return element_count(map(in_c, buffer.shape))


def total_bytes(workspaces: Sequence[Workspace]) -> Int:
    """The bytes of all arrays, each rounded up to whole cache lines."""
    lines = (quotient(w.count * w.dtype.size + (LINE - 1), LINE) for w in workspaces)
    return sum(lines, Linear()) * LINE


def array_bytes(count: Int, size: int) -> str:
    """A C expression for the bytes of `count` elements of `size` bytes; TOO_MANY if they would overflow."""
    return _checked(count * size, *filter(None, [_most_bytes(count, size, limited=False)]))


def _checked(total: Int, *most: str) -> str:
    return f"{' + '.join(most)} < 4e18 ? {total} : {TOO_MANY}" if most else str(total)


def _most_bytes(count: Int, size: int, limited: bool) -> str | None:
    """A C expression, in floating point, for the bytes of an array; None if these are far from overflow."""
    known = (sum(abs(factor) for _, factor in count.terms) + abs(count.constant)) * size
    opened = max((len(factors_of(atom)) for atom, _ in count.terms), default=0)
    if known <= SAFE_FACTOR and (limited or opened <= 1):
        return None
    return _in_double(count * size)


def _in_double(value: Int) -> str:
    """C text of the value in floating point, so that its products cannot overflow as integers might."""
    texts = [f"{value.constant}.0"] * bool(value.constant or not value.terms)
    for atom, coefficient in value.terms:
        factors = (f"(double){primary(factor)}" for factor in factors_of(atom))
        texts.append("*".join([f"{coefficient}.0", *factors]))
    return " + ".join(texts)


def pointers(workspaces: Sequence[Workspace], base: str, names: Mapping[str, str]) -> list[Line]:
    """Declarations of arrays that follow one another from `base`, a `char *`.

    `names` maps the C names of those that are wanted to the names to declare.
    """
    lines = []
    for position, workspace in enumerate(workspaces):
        name = names.get(c_name(workspace.name))
        if name is not None:
            offset = total_bytes(workspaces[:position])
            address = base if offset == Linear() else f"{base} + {offset}"
            c_type = workspace.dtype.c_name
            text = f"{c_type} *restrict const {name} = ({c_type} *)__builtin_assume_aligned({address}, 64);"
            lines.append(Line(text, offset.names | {"workspace"}))
    return lines
