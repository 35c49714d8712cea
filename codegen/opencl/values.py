"""A program for an OpenCL device: its source, its kernels, and the plan by which the host launches them.

    for t in range(T):                    host plan   Loop t
      for i in range(N):  # groups                      Launch step, N groups, arguments N, A, B, t
        B[i] = …

Integer expressions and conditions are in terms of the sizes and the variables of enclosing host loops, by their names
in C. The host's C program and its Python function are printed from the same plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from codegen.ir.integer import Int, Test
from codegen.ir.program import Buffer
from microkernels.dtypes import DType


@dataclass(frozen=True)
class Argument:
    """One argument of a device kernel; a kernel declares its `__local` memory itself.

    buffer    `__global` memory that the caller passes: an array of the nest
    scratch   `__global` memory that the host allocates: the scratch array of that name
    scalar    a scalar of the nest, by value
    integer   a size, or the variable of a host loop, as a 64-bit integer
    """

    name: str
    kind: Literal["buffer", "scratch", "scalar", "integer"]
    dtype: DType | None = None


@dataclass(frozen=True)
class DeviceKernel:
    """A `__kernel` function of the source: its arguments in order, and a work-group's size along each dimension."""

    name: str
    arguments: tuple[Argument, ...]
    items: tuple[int, ...]


@dataclass(frozen=True)
class Launch:
    """Run a kernel with `groups` work-groups along each dimension; nothing runs if one of these is 0 or less."""

    kernel: str
    groups: tuple[Int, ...]


@dataclass(frozen=True)
class HostLoop:
    """`for (int64_t variable = start; condition; variable += step)` over launches."""

    variable: str
    start: Int
    condition: Test
    step: int
    body: tuple[HostNode, ...]


@dataclass(frozen=True)
class HostIf:
    """Launches under a condition."""

    condition: Test
    then: tuple[HostNode, ...]
    otherwise: tuple[HostNode, ...] = ()


HostNode: TypeAlias = Launch | HostLoop | HostIf


@dataclass(frozen=True)
class Scratch:
    """A `__global` array of `count` elements, in terms of the sizes, that lives for one call."""

    name: str
    dtype: DType
    count: Int


@dataclass(frozen=True)
class DeviceProgram:
    """All that a host needs to run a nest on a device: `source` is complete OpenCL C.

    The launches of `plan` run one after another, as on an in-order queue; nothing else synchronises them. `buffers` are
    the nest's arrays and scalars in the order of its arguments, `sizes` its open sizes and strides. `routines` is the
    part of the source that is microkernels. `registers` is the most that a work-item may have (0: no limit).
    """

    name: str
    sizes: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    source: str
    kernels: tuple[DeviceKernel, ...]
    plan: tuple[HostNode, ...]
    scratch: tuple[Scratch, ...] = ()
    routines: str = ""
    registers: int = 0

    def kernel(self, name: str) -> DeviceKernel:
        return next(kernel for kernel in self.kernels if kernel.name == name)
