"""A nest compiled for an OpenCL device: a function of NumPy arrays, or of arrays in the device's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codegen.ir.signature import Signature
from codegen.opencl.values import DeviceProgram
from microkernels.cached import cached_property
from microkernels.isa import ISA
from poly.compiled import Basis, device_program
from poly.ir.nest import Nest
from poly.lowering.arguments import signature
from poly.scheduled import Scheduled

if TYPE_CHECKING:
    from pathlib import Path

    from codegen.opencl.devices import Device
    from poly.timing.benchmark import Benchmark


@dataclass(frozen=True, repr=False)
class OpenCLKernel(Scheduled):
    """A nest compiled for an OpenCL device.

    Call it on the arrays and scalars, in the order of the nest's arguments. NumPy arrays are copied to the device and
    the outputs back; the call returns when they have arrived. Arrays of `pyopencl.array` stay on the device: the call
    enqueues its launches on their queue, or on `queue=`, after the events `wait_for=`, and returns the event of the
    last one.

    Raises (when called):
        ArgumentError: an argument does not fit; no array has been changed.
        DeviceError: the device has no memory left, or is lost.
        ToolchainError: the device's compiler fails; the message has its log.
    """

    device: Device
    program: DeviceProgram
    """The device's source, its kernels, and the plan of launches."""

    @property
    def _place(self) -> str:
        return self.device.label

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.executable(*arguments, **keywords)

    @property
    def source(self) -> str:
        """The OpenCL C text."""
        return self.program.source

    @property
    def routines(self) -> str:
        """The microkernels in `source`, which are the same in each kernel that calls them."""
        return self.program.routines

    @cached_property
    def signature(self) -> Signature:
        """The nest's sizes and arguments."""
        return signature(self.nest, scratch=False)

    @cached_property
    def executable(self) -> Any:
        """The program on the device; it counts the copies between host and device."""
        from codegen.opencl.runtime import Executable

        return Executable(self.program, self.signature, self.device)

    def build(self) -> None:
        """Run the device's compiler now instead of at the first call. Raises ToolchainError."""
        self.executable.build()

    @property
    def copies(self) -> Any:
        """The copies between host and device that calls have made so far: their number and bytes."""
        return self.executable.copies

    def benchmark(self, *arrays: Any, seconds: float = 2.0, **sizes: int) -> Benchmark:
        """Measure calls with these arguments, for up to `seconds`; `print` shows the result.

        Calls with NumPy arrays include their copies to the device and back; those with arrays on the device, which
        need a queue, are enqueued in a row, and the last one's event ends the clock. Arrays that the nest writes are
        copied before, put back before each sample, and hold the same as before at the end. Nothing is stored.

        Raises:
            ArgumentError: an argument does not fit, as in a call, or `seconds` is not positive.
            DeviceError, ToolchainError: as a call does.
        """
        import numpy as np

        from codegen.calls.arguments import fit
        from codegen.opencl.device_arrays import check_alike, fitted_sizes
        from poly.timing.benchmark import python_timed
        from poly.timing.kernels import KernelCall, benchmark_kernel, named

        bound, extra = named(self.signature, arrays), arrays[len(self.signature.buffers) :]
        if check_alike(self.signature, bound):
            _, found = fitted_sizes(self.signature, bound, extra, sizes)
            written = [bound[buffer.name] for buffer in self.signature.outputs]
        else:
            fitted = fit(self.signature, bound, extra, sizes, True)
            found, written = fitted.sizes, [fitted.values[buffer.name] for buffer in self.signature.outputs]

        def run(times: int) -> float:
            for array in written:
                if not isinstance(array, np.ndarray):
                    array.finish()  # it may still be put back
            return python_timed(lambda: self._calls(times, arrays, sizes))(1)

        return benchmark_kernel(self, KernelCall(found, written, lambda: run, self.threads, self.device), seconds)

    def _calls(self, times: int, arrays: tuple[Any, ...], sizes: dict[str, int]) -> None:
        """So many calls, up to the end of the last one."""
        event = None
        for _ in range(times):
            event = self(*arrays, **sizes)
        if event is not None:
            event.wait()

    def write_opencl(self, directory: str | Path) -> Path:
        """Write the kernel as a `.cl` file with a C host program that runs and checks it. See `poly.write_opencl`."""
        from poly.embed.opencl import write_opencl

        return write_opencl(directory, self)


def opencl_kernel(nest: Nest, isa: ISA, threads: int, basis: Basis, device: Device) -> OpenCLKernel:
    """The kernel of a nest for a device, with a schedule from `basis`.

    Raises SpecError, ScheduleError, TargetError and ToolchainError, as `poly.compile` does.
    """
    return OpenCLKernel(nest, isa, threads, basis, device, device_program(nest, isa, threads, basis))
