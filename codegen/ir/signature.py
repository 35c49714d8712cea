"""A kernel's signature: its sizes and arguments, and how the sizes follow from the arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.ir.integer import Affine, Linear
from codegen.ir.program import Buffer, Program
from microkernels.cached import cached_property

ZERO: Affine = Linear()


@dataclass(frozen=True)
class SolvedSize:
    """A size that follows from an array: `size = (extent of array along dimension - rest)/coefficient`.

    With `stride`, it is the array's stride along the dimension, in elements.
    """

    size: str
    array: str
    dimension: int
    coefficient: int = 1
    rest: Affine = ZERO
    stride: bool = False


@dataclass(frozen=True)
class Signature:
    """The name of a kernel, its sizes in order, and its arrays and scalars in order (no locals).

    `scratch` is false if the kernel never needs a workspace. `fixed` are the sizes with a value fixed beforehand.
    `held` are arrays that the kernel itself adds to each call, behind those of the caller. `conditions` are values that
    are at least 0 at the sizes for which it was made.
    """

    name: str
    sizes: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    scratch: bool = True
    fixed: tuple[tuple[str, int], ...] = ()
    held: tuple[Buffer, ...] = ()
    conditions: tuple[Affine, ...] = ()

    @staticmethod
    def of(program: Program) -> Signature:
        arguments = [b for b in program.buffers if b.kind != "local"]
        scratch = bool(program.workspaces) or len(arguments) < len(program.buffers)
        given, held = (tuple(b for b in arguments if b.held == kept) for kept in (False, True))
        return Signature(program.name, program.sizes, given, scratch, program.fixed, held, program.conditions)

    @property
    def parameters(self) -> tuple[Buffer, ...]:
        """The arrays and scalars that the C function takes."""
        return (*self.buffers, *self.held)

    @property
    def arrays(self) -> tuple[Buffer, ...]:
        return tuple(b for b in self.buffers if b.kind != "scalar")

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        return tuple(b for b in self.buffers if b.kind in ("out", "inout"))

    @property
    def strided(self) -> bool:
        """Whether some array's strides are arguments."""
        return any(b.strides is not None for b in self.buffers)

    @property
    def in_parts(self) -> Signature:
        """The signature with complex arrays as those of their parts, with one more dimension."""
        return replace(self, buffers=tuple(replace(b, is_complex=False) for b in self.buffers))

    @cached_property
    def solved(self) -> tuple[SolvedSize, ...]:
        """How sizes follow from the arrays, plain shapes first: each entry needs only sizes of entries before it."""
        found = {step.size: step for step in self._strides()}
        progress = True
        while progress:
            progress = False
            for step in self._extents():
                if step.size not in found and step.rest.names <= found.keys():
                    found[step.size] = step
                    progress = True
        return tuple(found.values())

    @property
    def given(self) -> tuple[str, ...]:
        """The sizes that no array determines: a caller passes them by keyword."""
        known = {step.size for step in self.solved}
        return tuple(size for size in self.sizes if size not in known)

    def _strides(self) -> list[SolvedSize]:
        return [
            SolvedSize(stride, buffer.name, dimension, stride=True)
            for buffer in self.arrays
            for dimension, stride in enumerate(buffer.strides or ())
            if stride in self.sizes
        ]

    def _extents(self) -> list[SolvedSize]:
        """Each size in each shape, with the rest of the extent; extents that are just a size come first."""
        steps = [
            SolvedSize(size, buffer.name, dimension, coefficient, extent - Linear.name(size) * coefficient)
            for buffer in self.arrays
            for dimension, extent in enumerate(buffer.shape)
            for size, coefficient in extent.terms
        ]
        return sorted(steps, key=lambda step: (bool(step.rest.terms), step.rest.constant != 0 or step.coefficient != 1))


def describe(buffer: Buffer) -> str:
    """`A: f32[M, K]`, as in the nest."""
    is_number = buffer.kind == "scalar" or buffer.is_complex_value
    shape = "" if is_number else f"[{', '.join(map(str, buffer.extents))}]"
    return f"{buffer.name}: {buffer.element.name}{shape}"


def condition(value: Affine) -> str:
    """`R >= 1`, where `R - 1` must be at least 0."""
    terms, least = value - value.constant, -value.constant
    if all(factor < 0 for _, factor in terms.terms):
        return f"{-terms} <= {-least}"
    return f"{terms} >= {least}"
