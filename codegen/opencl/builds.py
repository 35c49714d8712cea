"""Builds OpenCL C with the device's own compiler.

Built programs stay in memory for their context. On disk they are cached by the platform, or else by pyopencl.
"""

from __future__ import annotations

import functools
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from codegen.errors import ToolchainError
from codegen.system.cache import digest, private_directory
from codegen.system.files import write_file

OPTIONS = ("-cl-std=CL1.2",)
"""The options of every build: the version that all devices know."""

LIMITS = "cl_nv_compiler_options"
"""The extension of compilers that take a limit of registers."""


_lock = threading.Lock()


def built(source: str, context: Any, label: str, registers: int = 0) -> Any:
    """pyopencl's program for a text, built for a context's device; `label` names the device in messages.

    `registers` is the most that a work-item may have, on devices whose compiler takes a limit (0: no limit).

    One thread builds at a time, so nothing is built twice. Raises ToolchainError with the compiler's log and the path
    of the text.
    """
    with _lock:
        return _built(source, context, label, registers)


@functools.lru_cache(maxsize=512)
def _built(source: str, context: Any, label: str, registers: int) -> Any:
    import pyopencl as cl

    program, options = cl.Program(context, source), _options(context.devices[0], registers)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)
            return program.build(options=options)
    except (cl.Error, MemoryError) as error:
        raise ToolchainError(
            f"the OpenCL compiler of {label} failed.\nOptions: {' '.join(options)}\nSource: {_kept(source)}\n"
            f"It said:\n{_log(str(error)) or '(nothing)'}"
        ) from error


def _options(device: Any, registers: int) -> list[str]:
    """The options for a device: quotients and roots are rounded as in C, where it can do that."""
    import pyopencl as cl

    exact = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    return [
        *OPTIONS,
        *["-cl-fp32-correctly-rounded-divide-sqrt"] * bool(exact),
        *[f"-cl-nv-maxrregcount={registers}"] * (registers > 0 and LIMITS in device.extensions.split()),
    ]


def _log(message: str) -> str:
    """The compiler's output from pyopencl's message: the lines below the one that names the device."""
    lines = message.splitlines()
    start = next((n + 1 for n, line in enumerate(lines) if line.startswith("Build on ")), 0)
    words = [line for line in lines[start:] if not line.startswith(("(options: ", "(source saved as "))]
    return "\n".join(words).strip()


def _kept(source: str) -> str:
    """The path to which the text was written for the user to read."""
    with suppress(ToolchainError, OSError):
        path: Path = private_directory("opencl") / f"{digest(source)}.cl"
        write_file(path, source, mode=0o600, sync=False)
        return str(path)
    return "(could not be kept: the cache directory cannot be written)"
