"""How a nest that is called gets its kernels: the options of `@poly.nest`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from codegen.calls.arguments import check_threads
from microkernels.errors import did_you_mean, shown
from poly.checks import checked_text
from poly.compilation import compile_nest
from poly.errors import SearchError, SearchWarning, warn

if TYPE_CHECKING:
    from poly.ir.nest import Nest
    from poly.kernel import Kernel
    from poly.opencl_kernel import OpenCLKernel
    from poly.tuning.options import Options


@dataclass(frozen=True)
class Direct:
    """Where the kernels of a nest that is called run, and whether they are tuned.

    `tune` has the options of the tuning that the first call with new sizes does; without it, the model decides.
    """

    target: str = "c"
    threads: int | None = None
    tune: Options | None = None

    def kernel(self, nest: Nest, sizes: Mapping[str, int]) -> Kernel | OpenCLKernel:
        """The kernel for some sizes; the others stay open. Raises the errors of `poly.compile`."""
        records = self.tune is None or self.tune.records
        found = compile_nest(nest, sizes=sizes, target=self.target, threads=self.threads, records=records)
        if self.tune is None or (found.record is not None and found.record.finished):
            return found
        return self._tuned(nest, sizes, self.tune) or found

    def _tuned(self, nest: Nest, sizes: Mapping[str, int], options: Options) -> Kernel | OpenCLKernel | None:
        """The kernel that a search finds; None, with a warning, where there is nothing to search."""
        from poly.tuning.outcome import interruption  # a nest that is not tuned needs no search
        from poly.tuning.problem import problem
        from poly.tuning.together import tuned

        try:
            (kernel,) = tuned([problem(nest, self.target, self.threads, sizes, None)], options)
            if isinstance(kernel, SearchError):
                raise kernel
        except SearchError as error:
            warn(f"{error} The call follows the model's schedule.", SearchWarning)
            return None
        if kernel.tuning.interrupted:
            warn(interruption([kernel.tuning]), SearchWarning)
        return kernel


BY_MODEL = Direct()
"""Without options: the kernels that `poly.compile` makes."""


def direct(tune: bool | int | Mapping[str, Any] | None, target: str, threads: int | None) -> Direct:
    """The options of `@poly.nest`, checked.

    Raises:
        SearchError: `tune` is neither True, nor a number of trials, nor a dictionary of the options of `poly.tune`.
        TargetError, ArgumentError: `target` is not a text, or `threads` is out of range.
    """
    checked_text("target", target, "'c' or 'opencl'")
    return Direct(target, None if threads is None else check_threads(threads), _options(tune))


def _options(tune: Any) -> Options | None:
    if tune is None or tune is False:
        return None
    from poly.tuning.options import Options

    if tune is True:
        return Options()
    if isinstance(tune, int):
        return Options(trials=tune)
    if not isinstance(tune, Mapping):
        forms = "True, a number of trials, or a dictionary of poly.tune's options such as {'seconds': 5}"
        raise SearchError(f"tune must be {forms}, not {shown(tune)}.")
    known = [field.name for field in fields(Options)]
    for name in tune:
        if name not in known:
            hint = did_you_mean(name, known)
            raise SearchError(f"tune has no option {shown(name)}.{hint} The options: {', '.join(known)}.")
    return Options(**tune)
